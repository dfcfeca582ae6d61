"""The life of templates: authors, reviews, audiences, retirement; and questions to the API server."""

import devices.models.claim
import django.contrib.postgres.fields
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0005_claim_at_once'),
        ('tenants', '0003_limits_and_grants'),
    ]

    operations = [
        migrations.CreateModel(
            name='DryRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('public_id', models.CharField(default=devices.models.claim.new_public_id, editable=False, max_length=12, unique=True)),
                ('about', models.CharField(help_text='What is tried, for people.', max_length=200)),
                ('objects_json', models.JSONField(help_text='The objects, in the order in which they are put.')),
                ('asked_by', models.UUIDField(help_text='Opaque person id; nobody else reads the answer.')),
                ('asked_at', models.DateTimeField()),
                ('request_id', models.CharField(max_length=64)),
                ('tenant', models.SlugField(blank=True, help_text='Whose pages hear of it.', max_length=63)),
                ('answered_at', models.DateTimeField(null=True)),
                ('accepted', models.BooleanField(null=True)),
                ('code', models.CharField(blank=True, max_length=48)),
                ('said', models.TextField(blank=True)),
                ('refused', models.CharField(blank=True, help_text='Kind and name, if one was.', max_length=320)),
            ],
            options={
                'ordering': ['-pk'],
            },
        ),
        migrations.AddField(
            model_name='claimtemplate',
            name='audience',
            field=models.CharField(choices=[('all', 'Every tenant'), ('limits', 'Tenants whose limits allow its classes'), ('named', 'Only the tenants named here')], default='all', max_length=6),
        ),
        migrations.AddField(
            model_name='claimtemplate',
            name='tenants',
            field=models.ManyToManyField(blank=True, help_text='Who sees it, where it is for named ones.', related_name='+', to='tenants.tenant'),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='approval',
            field=models.PositiveBigIntegerField(help_text='The newest that was asked for.', null=True),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='approved_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='authors',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, help_text='Everybody who wrote in it; none may approve.', size=None),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='changed_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='changed_by',
            field=models.UUIDField(null=True),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='retired_words',
            field=models.CharField(blank=True, help_text='Why it was retired, for those who hold it.', max_length=240),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='icon',
            field=models.CharField(blank=True, max_length=24),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='name',
            field=models.CharField(blank=True, help_text="Empty: the template's.", max_length=80),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='note',
            field=models.CharField(blank=True, help_text='What is new in it, for those who hold an older one.', max_length=240),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='retired_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='retired_by',
            field=models.UUIDField(help_text='Empty where a newer version came.', null=True),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='revision',
            field=models.PositiveIntegerField(default=1),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='successor',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='devices.claimtemplate'),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='text',
            field=models.TextField(blank=True),
        ),
        migrations.AddField(
            model_name='templateversion',
            name='words',
            field=models.CharField(blank=True, max_length=240),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='templateversion',
            trigger=pgtrigger.compiler.Trigger(name='life', sql=pgtrigger.compiler.UpsertTriggerSql(declare='DECLARE _is_valid_transition BOOLEAN;', func='SELECT CONCAT(OLD."state", \':\', NEW."state") = ANY(\'{draft:in review,in review:draft,in review:approved,approved:retired}\'::text[]) INTO _is_valid_transition; IF (_is_valid_transition IS FALSE AND OLD."state" IS DISTINCT FROM NEW."state") THEN RAISE EXCEPTION \'pgtrigger: Invalid transition of field "state" from "%" to "%" on table %\', OLD."state", NEW."state", TG_TABLE_NAME; ELSE RETURN NEW; END IF;', hash='6ef74a90130ae03a5daff46d3ae82c2a5229e1e1', operation='UPDATE', pgid='pgtrigger_life_bc02e', table='devices_templateversion', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='templateversion',
            trigger=pgtrigger.compiler.Trigger(name='kept_when_reviewed', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NOT (OLD."state" = \'draft\' OR NEW."state" = \'draft\') AND (OLD."template_id" IS DISTINCT FROM (NEW."template_id") OR OLD."number" IS DISTINCT FROM (NEW."number") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."words" IS DISTINCT FROM (NEW."words") OR OLD."icon" IS DISTINCT FROM (NEW."icon") OR OLD."text" IS DISTINCT FROM (NEW."text") OR OLD."content" IS DISTINCT FROM (NEW."content")))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='e518f16ca0e6c9691fba7ac86c4fa28876d44d9f', operation='UPDATE', pgid='pgtrigger_kept_when_reviewed_88c16', table='devices_templateversion', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='templateversion',
            trigger=pgtrigger.compiler.Trigger(name='kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='12d1146da89d42e5148f7cd3ebd27d4367b5ee4a', operation='DELETE', pgid='pgtrigger_kept_1901f', table='devices_templateversion', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='templateversion',
            constraint=models.UniqueConstraint(condition=models.Q(('state__in', ['draft', 'in review'])), fields=('template',), name='one_open_version'),
        ),
        migrations.AddIndex(
            model_name='dryrun',
            index=models.Index(fields=['asked_at'], name='dry_runs_by_age'),
        ),
    ]
