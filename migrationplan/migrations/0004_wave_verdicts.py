from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("migrationplan", "0003_gates")]

    operations = [
        migrations.AddField(
            model_name="wave", name="verdicts", field=models.JSONField(default=list)
        ),
    ]
