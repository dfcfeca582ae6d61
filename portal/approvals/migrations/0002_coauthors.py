"""Who else had a hand in what is asked for, and where it can be looked at."""

import django.contrib.postgres.fields
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('approvals', '0001_initial'),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name='approval',
            name='same_content',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='decision',
            name='never_the_author',
        ),
        migrations.AddField(
            model_name='approval',
            name='address',
            field=models.CharField(blank=True, help_text='Path of a page with what is asked for.', max_length=200),
        ),
        migrations.AddField(
            model_name='approval',
            name='coauthors',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.UUIDField(), default=list, help_text='Who else had a hand in it; none decides.', size=None),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='approval',
            trigger=pgtrigger.compiler.Trigger(name='same_content', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."kind" IS DISTINCT FROM (NEW."kind") OR OLD."subject" IS DISTINCT FROM (NEW."subject") OR OLD."title" IS DISTINCT FROM (NEW."title") OR OLD."tenant" IS DISTINCT FROM (NEW."tenant") OR OLD."lines" IS DISTINCT FROM (NEW."lines") OR OLD."effects" IS DISTINCT FROM (NEW."effects") OR OLD."effects_at" IS DISTINCT FROM (NEW."effects_at") OR OLD."digest" IS DISTINCT FROM (NEW."digest") OR OLD."needed" IS DISTINCT FROM (NEW."needed") OR OLD."platform_roles" IS DISTINCT FROM (NEW."platform_roles") OR OLD."decided_by_tenant" IS DISTINCT FROM (NEW."decided_by_tenant") OR OLD."tenant_roles" IS DISTINCT FROM (NEW."tenant_roles") OR OLD."author" IS DISTINCT FROM (NEW."author") OR OLD."coauthors" IS DISTINCT FROM (NEW."coauthors") OR OLD."reason" IS DISTINCT FROM (NEW."reason") OR OLD."address" IS DISTINCT FROM (NEW."address") OR OLD."asked_at" IS DISTINCT FROM (NEW."asked_at") OR OLD."expires_at" IS DISTINCT FROM (NEW."expires_at") OR OLD."task" IS DISTINCT FROM (NEW."task") OR OLD."key" IS DISTINCT FROM (NEW."key") OR OLD."request_id" IS DISTINCT FROM (NEW."request_id"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='4fc22c08937fa20ea97265a0c00cf013a0c28d37', operation='UPDATE', pgid='pgtrigger_same_content_9491b', table='approvals_approval', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='decision',
            trigger=pgtrigger.compiler.Trigger(name='never_the_author', sql=pgtrigger.compiler.UpsertTriggerSql(func="IF EXISTS (SELECT 1 FROM approvals_approval WHERE id = NEW.approval_id AND (author IN (NEW.person, NEW.holder) OR coauthors && ARRAY[NEW.person, NEW.holder])) THEN RAISE EXCEPTION 'the author never decides'; END IF; RETURN NEW;", hash='7babaa1d93899d9e964eace4dde9f6f98228680d', operation='INSERT', pgid='pgtrigger_never_the_author_1fa6c', table='approvals_decision', when='BEFORE')),
        ),
    ]
