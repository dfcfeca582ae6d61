"""The mirror keeps who wrote slices, and who charged Pods for claims: everything is listed anew."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("devices", "0023_drafts_may_go")]

    operations = [
        migrations.RunSQL(
            "DELETE FROM devices_observed; DELETE FROM devices_sync", migrations.RunSQL.noop
        )
    ]
