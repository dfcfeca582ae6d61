"""How long the claims of a tenant may last."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0003_limits_and_grants'),
    ]

    operations = [
        migrations.AddField(
            model_name='tenant',
            name='longest_days',
            field=models.PositiveSmallIntegerField(blank=True, help_text='How many days ahead the end of its claims may lie; empty: no end is needed.', null=True),
        ),
    ]
