"""The mirror keeps how many devices a claim is charged: everything is listed anew."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("devices", "0024_writers")]

    operations = [
        migrations.AddField(
            model_name="observed",
            name="counts",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(),
                default=list,
                help_text="For each of `classes`, how many devices a quota is charged.",
                size=None,
            ),
        ),
        migrations.RunSQL(
            "DELETE FROM devices_observed; DELETE FROM devices_sync", migrations.RunSQL.noop
        ),
    ]
