"""What training platforms tell, and how many devices each Pod asked for."""

import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

# Before alternatives were left open, each Pod's devices stand in its ask.
FILL = """
UPDATE devices_stagetimes AS times SET devices = counted.devices
FROM (
    SELECT claim, jsonb_object_agg(class, many) AS devices
    FROM (
        SELECT ask.id AS claim, device ->> 'device_class' AS class,
            sum(coalesce((device ->> 'count')::int, 1)) AS many
        FROM devices_claim AS ask, jsonb_array_elements(ask.devices) AS device
        WHERE NOT jsonb_path_exists(ask.devices, '$[*].alternatives[*]')
            AND coalesce(device ->> 'device_class', '') <> ''
        GROUP BY 1, 2
    ) AS each GROUP BY claim
) AS counted WHERE counted.claim = times.claim_id;
SET CONSTRAINTS ALL IMMEDIATE;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0018_isolation'),
        ('tenants', '0008_scope_signal'),
    ]

    operations = [
        migrations.AddField(
            model_name='stagetimes',
            name='devices',
            field=models.JSONField(default=dict, help_text='How many of each class it asked for; empty where that is open.'),
        ),
        migrations.AddField(
            model_name='stagetimes',
            name='unhealthy_at',
            field=models.DateTimeField(help_text='When Berth first saw the kubelet call one of its devices unhealthy.', null=True),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.CreateModel(
            name='TrainingSignal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('event_id', models.CharField(max_length=100)),
                ('pod', models.CharField(blank=True, help_text='Name; empty: all of its Pods.', max_length=253)),
                ('run', models.CharField(blank=True, help_text='As the platform calls it.', max_length=120)),
                ('kind', models.CharField(choices=[('started', 'started'), ('checkpoint', 'checkpoint'), ('restored', 'restored'), ('retry', 'retry'), ('finished', 'finished'), ('useful', 'useful')], max_length=10)),
                ('at', models.DateTimeField(help_text="By the platform's clock.")),
                ('seconds', models.FloatField(help_text='Useful ones, since the last such report.', null=True)),
                ('ok', models.BooleanField(default=True, help_text='Whether a run that finished did so well.')),
                ('step', models.BigIntegerField(help_text='How far the run is, in its own count.', null=True)),
                ('told_at', models.DateTimeField()),
                ('told_by', models.UUIDField(help_text='Opaque person id of whose token it was.')),
                ('claim', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='signals', to='devices.claim')),
                ('tenant', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant')),
            ],
            options={
                'ordering': ['-at', '-pk'],
            },
        ),
        migrations.AddIndex(
            model_name='trainingsignal',
            index=models.Index(fields=['claim', 'at'], name='signals_of_a_claim'),
        ),
        migrations.AddIndex(
            model_name='trainingsignal',
            index=models.Index(fields=['at'], name='signals_by_age'),
        ),
        migrations.AddConstraint(
            model_name='trainingsignal',
            constraint=models.UniqueConstraint(fields=('tenant', 'event_id'), name='signal_told_once'),
        ),
        migrations.AddConstraint(
            model_name='trainingsignal',
            constraint=models.CheckConstraint(condition=models.Q(('seconds', None), ('seconds__gte', 0), _connector='OR'), name='signal_seconds_count_up'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='trainingsignal',
            trigger=pgtrigger.compiler.Trigger(name='told_as_it_was', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='b947ea2fd41b0ff94c1af8c8b633debe580e1614', operation='UPDATE', pgid='pgtrigger_told_as_it_was_4f437', table='devices_trainingsignal', when='BEFORE')),
        ),
    ]
