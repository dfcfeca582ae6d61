"""Tokens of training platforms have a scope of their own."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0007_tokens_that_rehearse'),
    ]

    operations = [
        migrations.AlterField(
            model_name='apitoken',
            name='scopes',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('read', 'Read'), ('request', 'Ask and release'), ('operate', 'Limits, grants, freezes'), ('admin', 'Members, roles, tenants'), ('signal', 'Tell of training runs')], max_length=16), size=None),
        ),
    ]
