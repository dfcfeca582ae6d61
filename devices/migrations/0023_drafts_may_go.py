# A draft may be thrown away; what was put to review stays.

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0022_ledger'),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name='templateversion',
            name='kept',
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='templateversion',
            trigger=pgtrigger.compiler.Trigger(name='kept', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NOT (OLD."state" = \'draft\'))', func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='249fd0098263cd6fa6c69a47e2508798581623d5', operation='DELETE', pgid='pgtrigger_kept_1901f', table='devices_templateversion', when='BEFORE')),
        ),
    ]
