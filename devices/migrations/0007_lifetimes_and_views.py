"""When asks end by themselves, notes on them, and saved views; fills in the classes of old asks."""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models


FILL_CLASSES = """
UPDATE devices_claim SET classes = ARRAY(
    SELECT DISTINCT one ->> 'device_class' FROM jsonb_array_elements(devices) AS one ORDER BY 1
)
"""


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0006_template_lives'),
        ('tenants', '0004_longest_days'),
    ]

    operations = [
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('owner', models.UUIDField(help_text='Opaque person id.')),
                ('slug', models.SlugField(help_text='What `view=` calls it.', max_length=40)),
                ('name', models.CharField(max_length=60)),
                ('query', models.JSONField(help_text='Parameters of the list, by name.')),
                ('shared', models.BooleanField(default=False)),
                ('opens_first', models.BooleanField(default=False, help_text='What the list shows where nothing is asked for.')),
                ('made_at', models.DateTimeField()),
            ],
            options={
                'ordering': ['name', 'pk'],
            },
        ),
        migrations.AddField(
            model_name='claim',
            name='classes',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=253), default=list, help_text='Device classes that its requests name, sorted.', size=None),
        ),
        migrations.AddField(
            model_name='claim',
            name='expired',
            field=models.BooleanField(default=False, help_text='Its time was over.'),
        ),
        migrations.AddField(
            model_name='claim',
            name='expires_at',
            field=models.DateTimeField(help_text='When Berth releases it by itself; empty: when a person does.', null=True),
        ),
        migrations.AddField(
            model_name='claim',
            name='note',
            field=models.CharField(blank=True, help_text='What it is for, as its tenant wrote it.', max_length=240),
        ),
        migrations.AddField(
            model_name='claim',
            name='warned',
            field=models.PositiveSmallIntegerField(help_text='Days before its end of the last warning that is over.', null=True),
        ),
        migrations.AlterField(
            model_name='claim',
            name='released_at',
            field=models.DateTimeField(help_text='When a person asked to release it, or its time was over.', null=True),
        ),
        migrations.AddIndex(
            model_name='claim',
            index=models.Index(condition=models.Q(('released_at', None)), fields=['expires_at'], name='claims_that_end'),
        ),
        migrations.AddIndex(
            model_name='claim',
            index=django.contrib.postgres.indexes.GinIndex(fields=['classes'], name='claims_by_class'),
        ),
        migrations.AddField(
            model_name='savedview',
            name='tenant',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='saved_views', to='tenants.tenant'),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.UniqueConstraint(condition=models.Q(('shared', True)), fields=('tenant', 'slug'), name='shared_view_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.UniqueConstraint(condition=models.Q(('shared', False)), fields=('tenant', 'owner', 'slug'), name='own_view_once', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.UniqueConstraint(condition=models.Q(('opens_first', True), ('shared', True)), fields=('tenant',), name='one_shared_view_opens_first', nulls_distinct=False),
        ),
        migrations.AddConstraint(
            model_name='savedview',
            constraint=models.UniqueConstraint(condition=models.Q(('opens_first', True), ('shared', False)), fields=('tenant', 'owner'), name='one_own_view_opens_first', nulls_distinct=False),
        ),
        migrations.RunSQL(FILL_CLASSES, migrations.RunSQL.noop),
    ]
