"""How PostgreSQL keeps the mirror's rows, which Django's models cannot say."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("devices", "0001_initial")]

    operations = [
        # Uncompressed: at the sizes of these objects compressing costs more than the space is worth.
        # The free tenth of each page lets a changed row stay on it, without touching any index.
        migrations.RunSQL(
            "ALTER TABLE devices_observed ALTER COLUMN raw SET STORAGE EXTERNAL;"
            "ALTER TABLE devices_observed SET (fillfactor = 90);"
            # Django's index for LIKE on the key: nobody searches for a part of a uid.
            "DROP INDEX IF EXISTS devices_observed_uid_bb5d0357_like",
            "ALTER TABLE devices_observed ALTER COLUMN raw SET STORAGE EXTENDED;"
            "ALTER TABLE devices_observed RESET (fillfactor)",
        ),
    ]
