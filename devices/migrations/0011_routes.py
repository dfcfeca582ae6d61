"""Which path new work takes, as the platform sets it, and what asks took."""

import devices.models.claim
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0010_template_settings'),
    ]

    operations = [
        migrations.CreateModel(
            name='PluginResource',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('resource', models.CharField(max_length=253, unique=True)),
                ('device_class', models.CharField(max_length=253)),
                ('selector', models.TextField(blank=True)),
                ('set_by', models.UUIDField(help_text='Opaque person id.')),
                ('set_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['resource'],
            },
        ),
        migrations.AddField(
            model_name='claim',
            name='path',
            field=models.CharField(choices=[('claim', 'a claim (DRA)'), ('plugin', 'the device plugin'), ('extended', 'an extended resource that DRA serves')], default='claim', max_length=8),
        ),
        migrations.AddField(
            model_name='claim',
            name='resources',
            field=models.JSONField(default=list, help_text='Where Pods ask by name instead: names and how many of each.'),
        ),
        migrations.AddField(
            model_name='claim',
            name='route_why',
            field=models.TextField(blank=True, help_text='Why it takes this path.'),
        ),
        migrations.AddField(
            model_name='claim',
            name='ruled_by',
            field=models.CharField(blank=True, help_text='Ids of the route rules that the path was found by.', max_length=240),
        ),
        migrations.CreateModel(
            name='RouteRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.CharField(default=devices.models.claim.new_public_id, editable=False, max_length=12, unique=True)),
                ('device_class', models.CharField(max_length=253)),
                ('path', models.CharField(choices=[('claim', 'a claim (DRA)'), ('plugin', 'the device plugin'), ('extended', 'an extended resource that DRA serves')], max_length=8)),
                ('tenant', models.SlugField(blank=True, help_text='Empty: all tenants.', max_length=63)),
                ('template', models.SlugField(blank=True, help_text='Empty: whatever template.', max_length=63)),
                ('reason', models.CharField(max_length=240)),
                ('set_by', models.UUIDField(help_text='Opaque person id.')),
                ('set_at', models.DateTimeField()),
                ('starts_at', models.DateTimeField()),
                ('until', models.DateTimeField(help_text='It ends by itself then; empty: never.', null=True)),
                ('begun', models.BooleanField(default=False, help_text='Open asks were woken when it began.')),
                ('ended_at', models.DateTimeField(null=True)),
                ('ended_by', models.UUIDField(help_text='Empty where its time was over.', null=True)),
                ('end', models.CharField(blank=True, choices=[('lifted', 'Lifted'), ('expired', 'Its time was over')], max_length=7)),
                ('request_id', models.CharField(max_length=64)),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(condition=models.Q(('ended_at', None)), fields=['device_class', 'tenant'], name='routes_set')],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='routerule',
            trigger=pgtrigger.compiler.Trigger(name='kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='92b34c11318d95adaafd55c8ece74a00e64c87e8', operation='DELETE', pgid='pgtrigger_kept_2d22f', table='devices_routerule', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='routerule',
            trigger=pgtrigger.compiler.Trigger(name='as_it_was', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."public_id" IS DISTINCT FROM (NEW."public_id") OR OLD."device_class" IS DISTINCT FROM (NEW."device_class") OR OLD."path" IS DISTINCT FROM (NEW."path") OR OLD."tenant" IS DISTINCT FROM (NEW."tenant") OR OLD."template" IS DISTINCT FROM (NEW."template") OR OLD."reason" IS DISTINCT FROM (NEW."reason") OR OLD."set_by" IS DISTINCT FROM (NEW."set_by") OR OLD."set_at" IS DISTINCT FROM (NEW."set_at") OR OLD."starts_at" IS DISTINCT FROM (NEW."starts_at") OR OLD."until" IS DISTINCT FROM (NEW."until") OR OLD."request_id" IS DISTINCT FROM (NEW."request_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='40eb4a6e70f6cc6264bd7bd7a01eac96d3a983ce', operation='UPDATE', pgid='pgtrigger_as_it_was_d71a8', table='devices_routerule', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='routerule',
            trigger=pgtrigger.compiler.Trigger(name='ends_once', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."ended_at" IS NOT NULL)', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='d0fcc1af90cf287a17a4af1756474305833478fd', operation='UPDATE', pgid='pgtrigger_ends_once_49498', table='devices_routerule', when='BEFORE')),
        ),
    ]
