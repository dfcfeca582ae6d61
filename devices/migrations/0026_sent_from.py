"""An ask keeps the cluster's version from before its object was made for the first time."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("devices", "0025_devices_charged")]

    operations = [
        migrations.AddField(
            model_name="claim",
            name="sent_from",
            field=models.CharField(
                blank=True,
                default="",
                help_text="The cluster's version before it was first applied.",
                max_length=64,
            ),
            preserve_default=False,
        ),
    ]
