"""Where and how each Pod ran, beside when; times of before are their ask's tenant's and path."""

import django.db.models.deletion
from django.db import migrations, models

# Constraints are looked at before the table is changed again in the same transaction.
FILL = """
UPDATE devices_stagetimes AS times SET tenant_id = ask.tenant_id, path = ask.path
FROM devices_claim AS ask WHERE ask.id = times.claim_id;
SET CONSTRAINTS ALL IMMEDIATE;
"""


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0016_claim_lists'),
        ('tenants', '0006_account_links'),
    ]

    operations = [
        migrations.AddField(
            model_name='stagetimes',
            name='ended',
            field=models.CharField(blank=True, default='', help_text='Phase in which it ended; empty: not yet.', max_length=9),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='stagetimes',
            name='job',
            field=models.CharField(blank=True, default='', help_text='Uid of the Job that made it.', max_length=64),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='stagetimes',
            name='node',
            field=models.CharField(blank=True, default='', max_length=253),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='stagetimes',
            name='node_pool',
            field=models.CharField(blank=True, default='', help_text='Slug of the node pool when it was bound; empty: none.', max_length=63),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name='stagetimes',
            name='retries',
            field=models.PositiveIntegerField(default=0, help_text='Preparations that failed and that the kubelet tried again.'),
        ),
        migrations.AlterField(
            model_name='stagetimes',
            name='path',
            field=models.CharField(default='claim', help_text='A `devices.routing` Path.', max_length=8),
        ),
        migrations.AddField(
            model_name='stagetimes',
            name='tenant',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant'),
        ),
        migrations.RunSQL(FILL, migrations.RunSQL.noop),
        migrations.AlterField(
            model_name='stagetimes',
            name='tenant',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='tenants.tenant'),
        ),
        migrations.AddIndex(
            model_name='stagetimes',
            index=models.Index(fields=['tenant', 'created_at'], name='stage_times_by_tenant'),
        ),
    ]
