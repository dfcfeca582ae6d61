"""Rollouts of the node accounting, what it is held to, changes of release, rights of drivers."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import devices.models.ledgerrollout

PHASES = [
    (one, one) for one in ("canary", "soaking", "wide", "done", "stopped", "repaired", "ended")
]


def pk() -> models.BigAutoField:
    return models.BigAutoField(
        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
    )


class Migration(migrations.Migration):
    dependencies = [("devices", "0026_sent_from")]

    operations = [
        migrations.AddField(
            model_name="ledgerhead",
            name="release",
            field=models.CharField(
                blank=True,
                default="",
                help_text="Of the cluster at the last look.",
                max_length=32,
            ),
            preserve_default=False,
        ),
        migrations.AddField(
            model_name="ledgerhead",
            name="waiting",
            field=models.IntegerField(
                default=0, help_text="Pods with devices that wait for want of what is charged."
            ),
        ),
        migrations.AddField(
            model_name="ledgerhead",
            name="numa_refused",
            field=models.IntegerField(
                default=0,
                help_text="Pods that a kubelet refused because no NUMA zone fits, there now.",
            ),
        ),
        migrations.CreateModel(
            name="DriverRights",
            fields=[
                (
                    "name",
                    models.CharField(
                        default="ledger", max_length=16, primary_key=True, serialize=False
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "drivers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=63), default=list, size=None
                    ),
                ),
                ("findings", models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name="LedgerObjectives",
            fields=[
                (
                    "name",
                    models.CharField(
                        default="ledger", max_length=16, primary_key=True, serialize=False
                    ),
                ),
                (
                    "most_charged",
                    models.IntegerField(
                        help_text="Of what a node offers of CPU, memory or huge pages, in "
                        "per cent.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(100),
                        ],
                    ),
                ),
                (
                    "most_pending",
                    models.IntegerField(
                        help_text="Minutes for which a Pod with devices may wait for want of node "
                        "resources.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(10080),
                        ],
                    ),
                ),
                ("said_by", models.UUIDField(help_text="Opaque person id.")),
                ("said_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="LedgerUpgrade",
            fields=[
                ("id", pk()),
                ("frm", models.CharField(max_length=32)),
                ("to", models.CharField(max_length=32)),
                ("at", models.DateTimeField()),
                ("before", models.IntegerField(help_text="Lines of devices that stood.")),
                ("settled_at", models.DateTimeField(null=True)),
                ("after", models.IntegerField(default=0)),
                ("told", models.IntegerField(default=0, help_text="Of those, told by Pod status.")),
                ("lost", models.JSONField(default=list)),
            ],
            options={"ordering": ["-pk"]},
        ),
        migrations.CreateModel(
            name="LedgerRollout",
            fields=[
                ("id", pk()),
                (
                    "public_id",
                    models.CharField(
                        default=devices.models.ledgerrollout._public_id, max_length=8, unique=True
                    ),
                ),
                (
                    "canaries",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253), size=None
                    ),
                ),
                ("soak", models.DurationField()),
                ("phase", models.CharField(choices=PHASES, default="canary", max_length=8)),
                ("since", models.DateTimeField(help_text="Since when it is in this phase.")),
                ("why", models.TextField()),
                (
                    "waits",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=400), default=list, size=None
                    ),
                ),
                (
                    "wide",
                    models.BooleanField(default=False, help_text="It went beyond its canaries."),
                ),
                ("floors", models.JSONField(default=list)),
                ("stopped_at", models.DateTimeField(null=True)),
                ("digest", models.CharField(blank=True, max_length=64)),
                (
                    "lines",
                    models.BigIntegerField(default=0, help_text="Lines of the log at the stop."),
                ),
                ("started_by", models.UUIDField(help_text="Opaque person id.")),
                ("started_at", models.DateTimeField()),
            ],
            options={"ordering": ["-pk"]},
        ),
        migrations.AddConstraint(
            model_name="ledgerrollout",
            constraint=models.UniqueConstraint(
                models.Value(1),
                condition=models.Q(("phase", "ended"), _negated=True),
                name="ledger_rollout_one_open",
            ),
        ),
        migrations.CreateModel(
            name="LedgerRolloutMove",
            fields=[
                ("id", pk()),
                ("frm", models.CharField(choices=PHASES, max_length=8)),
                ("to", models.CharField(choices=PHASES, max_length=8)),
                ("at", models.DateTimeField()),
                ("why", models.TextField()),
                ("person", models.UUIDField(null=True)),
                (
                    "rollout",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="moves",
                        to="devices.ledgerrollout",
                    ),
                ),
            ],
            options={"ordering": ["-pk"]},
        ),
    ]
