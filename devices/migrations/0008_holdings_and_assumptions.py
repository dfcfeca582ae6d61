"""Who held which device when, and what the platform says of gates that nobody can read."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0007_lifetimes_and_views'),
    ]

    operations = [
        migrations.CreateModel(
            name='HoldingsRead',
            fields=[
                ('name', models.CharField(default='claims', max_length=20, primary_key=True, serialize=False)),
                ('at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='AssumedGate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('component', models.CharField(choices=[('scheduler', 'kube-scheduler'), ('controllers', 'kube-controller-manager'), ('kubelet', 'kubelet')], max_length=11)),
                ('gate', models.CharField(max_length=63)),
                ('on', models.BooleanField()),
                ('note', models.CharField(blank=True, help_text='How they know.', max_length=240)),
                ('said_by', models.UUIDField(help_text='Opaque person id.')),
                ('said_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['gate', 'component'],
                'constraints': [models.UniqueConstraint(fields=('component', 'gate'), name='gate_assumed_once')],
            },
        ),
        migrations.CreateModel(
            name='Holding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('driver', models.CharField(max_length=63)),
                ('pool', models.CharField(max_length=253)),
                ('device', models.CharField(max_length=63)),
                ('share', models.CharField(blank=True, help_text='Of a device that is shared.', max_length=36)),
                ('amount', models.JSONField(default=dict, help_text='What of its capacity is taken.')),
                ('node', models.CharField(blank=True, max_length=253)),
                ('device_class', models.CharField(blank=True, help_text='That was asked for.', max_length=253)),
                ('namespace', models.CharField(max_length=63)),
                ('claim', models.CharField(help_text="The object's name in the cluster.", max_length=253)),
                ('claim_uid', models.CharField(max_length=64)),
                ('tenant', models.CharField(blank=True, help_text="Slug; empty: nobody's.", max_length=63)),
                ('public_id', models.CharField(blank=True, help_text='Of the ask behind it.', max_length=12)),
                ('since', models.DateTimeField()),
                ('since_seen', models.BooleanField(help_text='The cluster has no stamp; Berth saw it then.')),
                ('until', models.DateTimeField(null=True)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['driver', 'pool', 'device', '-id'], name='holdings_by_device'), models.Index(condition=models.Q(('until', None), _negated=True), fields=['until'], name='holdings_by_end')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('until', None)), fields=('claim_uid', 'driver', 'pool', 'device', 'share'), name='held_once_at_a_time')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='holding',
            trigger=pgtrigger.compiler.Trigger(name='held_as_written', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."driver" IS DISTINCT FROM (NEW."driver") OR OLD."pool" IS DISTINCT FROM (NEW."pool") OR OLD."device" IS DISTINCT FROM (NEW."device") OR OLD."share" IS DISTINCT FROM (NEW."share") OR OLD."amount" IS DISTINCT FROM (NEW."amount") OR OLD."node" IS DISTINCT FROM (NEW."node") OR OLD."device_class" IS DISTINCT FROM (NEW."device_class") OR OLD."namespace" IS DISTINCT FROM (NEW."namespace") OR OLD."claim" IS DISTINCT FROM (NEW."claim") OR OLD."claim_uid" IS DISTINCT FROM (NEW."claim_uid") OR OLD."tenant" IS DISTINCT FROM (NEW."tenant") OR OLD."public_id" IS DISTINCT FROM (NEW."public_id") OR OLD."since" IS DISTINCT FROM (NEW."since") OR OLD."since_seen" IS DISTINCT FROM (NEW."since_seen"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='3123c9aad2a81e9f2ae171b943ea43d9091111de', operation='UPDATE', pgid='pgtrigger_held_as_written_6ecad', table='devices_holding', when='BEFORE')),
        ),
    ]
