from django.db import migrations, models

import devices.models.claim


class Migration(migrations.Migration):

    dependencies = [
        ("devices", "0019_signals"),
    ]

    operations = [
        migrations.CreateModel(
            name="DoctorRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("public_id", models.CharField(default=devices.models.claim.new_public_id, editable=False, max_length=12, unique=True)),
                ("asked_at", models.DateTimeField()),
                ("asked_by", models.UUIDField(help_text="Opaque person id.", null=True)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("looked_at", models.DateTimeField(null=True)),
                ("report", models.JSONField(default=list, help_text="Sections as devices.doctor.findings.")),
                ("failed", models.TextField(blank=True, help_text="Why there is no report.")),
            ],
            options={
                "ordering": ["-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("looked_at", None)),
                        fields=("asked_by",),
                        name="one_open_look_each",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
    ]
