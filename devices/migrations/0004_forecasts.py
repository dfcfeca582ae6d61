"""What was foretold of asks, what came of it, and when Pods reached each stage."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0003_freezes_and_standings'),
    ]

    operations = [
        migrations.CreateModel(
            name='StageTimes',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pod_uid', models.CharField(max_length=64)),
                ('pod', models.CharField(max_length=253)),
                ('classes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=253), help_text='Asked for, sorted.', size=None)),
                ('path', models.CharField(default='dra', max_length=8)),
                ('created_at', models.DateTimeField()),
                ('generated_at', models.DateTimeField(null=True)),
                ('allocated_at', models.DateTimeField(null=True)),
                ('bound_at', models.DateTimeField(null=True)),
                ('prepared_at', models.DateTimeField(null=True)),
                ('running_at', models.DateTimeField(null=True)),
                ('ready_at', models.DateTimeField(null=True)),
                ('released_at', models.DateTimeField(null=True)),
                ('observed', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=12), default=list, size=None)),
                ('claim', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='stage_times', to='devices.claim')),
            ],
            options={
                'ordering': ['created_at', 'pk'],
            },
        ),
        migrations.CreateModel(
            name='Forecast',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('made_at', models.DateTimeField()),
                ('seen_at', models.DateTimeField(help_text='The moment that the mirror showed.', null=True)),
                ('fate', models.CharField(help_text='A value of devices.forecasts.whatif.Fate.', max_length=32)),
                ('code', models.CharField(blank=True, max_length=48)),
                ('nodes', models.PositiveIntegerField(default=0, help_text='On how many nodes it would fit.')),
                ('release', models.CharField(blank=True, max_length=16)),
                ('outcome', models.CharField(choices=[('open', 'Open'), ('right', 'Right'), ('wrong', 'Wrong'), ('not compared', 'Not Compared')], default='open', max_length=12)),
                ('outcome_at', models.DateTimeField(null=True)),
                ('outcome_code', models.CharField(blank=True, max_length=48)),
                ('took', models.FloatField(help_text='Seconds from the Pod to its allocation.', null=True)),
                ('why', models.CharField(blank=True, max_length=160)),
                ('claim', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='forecast', to='devices.claim')),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('outcome', 'open')), fields=['made_at'], name='forecasts_open'), models.Index(fields=['outcome_at'], name='forecasts_by_outcome')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='forecast',
            trigger=pgtrigger.compiler.Trigger(name='told_once', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."claim_id" IS DISTINCT FROM (NEW."claim_id") OR OLD."made_at" IS DISTINCT FROM (NEW."made_at") OR OLD."seen_at" IS DISTINCT FROM (NEW."seen_at") OR OLD."fate" IS DISTINCT FROM (NEW."fate") OR OLD."code" IS DISTINCT FROM (NEW."code") OR OLD."nodes" IS DISTINCT FROM (NEW."nodes") OR OLD."release" IS DISTINCT FROM (NEW."release"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='89573d7db7a09f32f821ec47d4b1d13afeb2580b', operation='UPDATE', pgid='pgtrigger_told_once_6f27d', table='devices_forecast', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='forecast',
            trigger=pgtrigger.compiler.Trigger(name='judged_once', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE _is_valid_transition BOOLEAN;', func='SELECT CONCAT(OLD."outcome", \':\', NEW."outcome") = ANY(\'{open:right,open:wrong,open:not compared}\'::text[]) INTO _is_valid_transition; IF (_is_valid_transition IS FALSE AND OLD."outcome" IS DISTINCT FROM NEW."outcome") THEN RAISE EXCEPTION \'pgtrigger: Invalid transition of field "outcome" from "%" to "%" on table %\', OLD."outcome", NEW."outcome", TG_TABLE_NAME; ELSE RETURN NEW; END IF;', hash='b5582c866dd78a4a2312e249681489ae1422bea7', operation='UPDATE', pgid='pgtrigger_judged_once_cc531', table='devices_forecast', when='BEFORE')),
        ),
        migrations.AddIndex(
            model_name='stagetimes',
            index=django.contrib.postgres.indexes.GinIndex(fields=['classes'], name='stage_times_by_class'),
        ),
        migrations.AddIndex(
            model_name='stagetimes',
            index=models.Index(fields=['created_at'], name='stage_times_by_age'),
        ),
        migrations.AddIndex(
            model_name='stagetimes',
            index=models.Index(condition=models.Q(('released_at', None)), fields=['claim'], name='stage_times_under_way'),
        ),
        migrations.AddConstraint(
            model_name='stagetimes',
            constraint=models.UniqueConstraint(fields=('claim', 'pod_uid'), name='one_way_a_pod'),
        ),
    ]
