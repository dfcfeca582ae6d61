"""Indexes for what lists of claims are narrowed and sorted by."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('devices', '0015_node_pools'),
        ('tenants', '0004_longest_days'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='claim',
            index=models.Index(condition=models.Q(('state', 'released'), _negated=True), fields=['tenant', '-id'], name='claims_open_list'),
        ),
        migrations.AddIndex(
            model_name='claim',
            index=models.Index(fields=['tenant', 'state', '-id'], name='claims_by_state'),
        ),
        migrations.AddIndex(
            model_name='claim',
            index=models.Index(fields=['tenant', 'asked_by', '-id'], name='claims_by_person'),
        ),
        migrations.AddIndex(
            model_name='claim',
            index=models.Index(fields=['tenant', 'name', 'id'], name='claims_by_name'),
        ),
        migrations.AddIndex(
            model_name='claim',
            index=models.Index(fields=['tenant', 'since', 'id'], name='claims_by_since'),
        ),
        migrations.AddIndex(
            model_name='claim',
            index=models.Index(fields=['tenant', 'expires_at', 'id'], name='claims_by_end'),
        ),
        migrations.AddIndex(
            model_name='claim',
            index=models.Index(fields=['name', 'id'], name='claims_of_all_by_name'),
        ),
    ]
