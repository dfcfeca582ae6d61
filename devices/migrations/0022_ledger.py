"""The node ledger: its log, which is only ever added to, and what the last look made of it."""

import django.contrib.postgres.fields
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("devices", "0021_inventory")]

    operations = [
        migrations.CreateModel(
            name="LedgerHead",
            fields=[
                (
                    "name",
                    models.CharField(
                        default="ledger", max_length=16, primary_key=True, serialize=False
                    ),
                ),
                ("look", models.BigIntegerField(default=0)),
                (
                    "as_of",
                    models.DateTimeField(
                        help_text="The moment that the last look showed.", null=True
                    ),
                ),
                ("looked_at", models.DateTimeField(null=True)),
                ("lines", models.BigIntegerField(default=0, help_text="Lines written so far.")),
                (
                    "doubled",
                    models.BigIntegerField(default=0, help_text="Doubled keys rejected so far."),
                ),
                (
                    "older",
                    models.BigIntegerField(default=0, help_text="Older versions refused so far."),
                ),
                (
                    "since_equal",
                    models.DateTimeField(
                        help_text="Since when nothing has diverged; null: something does.",
                        null=True,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LedgerDifference",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=1200)),
                ("node", models.CharField(max_length=253)),
                ("resource", models.CharField(max_length=320)),
                ("pod", models.CharField(blank=True, max_length=320)),
                ("claim", models.CharField(blank=True, max_length=320)),
                (
                    "verdict",
                    models.CharField(
                        choices=[
                            ("diverges", "diverges"),
                            ("later", "later"),
                            ("unknown", "unknown"),
                        ],
                        max_length=8,
                    ),
                ),
                ("code", models.CharField(max_length=48)),
                ("log", models.CharField(blank=True, max_length=80)),
                ("objects_say", models.CharField(blank=True, max_length=80)),
                ("status", models.CharField(blank=True, max_length=80)),
                (
                    "line_keys",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=32), default=list, size=None
                    ),
                ),
                (
                    "computed",
                    models.JSONField(
                        default=list, help_text="What the objects of now come to, by line."
                    ),
                ),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("until", None)),
                        fields=["node"],
                        name="ledger_differences",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LedgerNode",
            fields=[
                ("node", models.CharField(max_length=253, primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("safe", "safe"),
                            ("rebuilding", "rebuilding"),
                            ("unsafe", "unsafe"),
                        ],
                        max_length=16,
                    ),
                ),
                ("code", models.CharField(blank=True, max_length=48)),
                ("reasons", models.JSONField(default=list)),
                ("figures", models.JSONField(default=dict)),
                ("since", models.DateTimeField()),
                (
                    "told",
                    models.BooleanField(default=False, help_text="An alert was raised for it."),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "safe"), _negated=True),
                        fields=["state"],
                        name="ledger_nodes_not_safe",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LedgerPool",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("driver", models.CharField(max_length=63)),
                ("pool", models.CharField(max_length=253)),
                ("epoch", models.IntegerField(default=1)),
                ("generation", models.BigIntegerField(default=0)),
                (
                    "slices",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=253), default=list, size=None
                    ),
                ),
                ("complete", models.BooleanField(default=True)),
                ("invalid", models.TextField(blank=True)),
                (
                    "refused",
                    models.BigIntegerField(
                        help_text="An older generation published now.", null=True
                    ),
                ),
                ("since", models.DateTimeField(help_text="Since when it is so.")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("driver", "pool"), name="ledger_pool")
                ],
            },
        ),
        migrations.CreateModel(
            name="LedgerLine",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "look",
                    models.BigIntegerField(
                        help_text="Number of the look at the cluster that wrote it."
                    ),
                ),
                ("at", models.DateTimeField()),
                (
                    "act",
                    models.CharField(
                        choices=[
                            ("charge", "charge"),
                            ("release", "release"),
                            ("doubled", "doubled"),
                            ("older", "older"),
                        ],
                        max_length=8,
                    ),
                ),
                ("key", models.CharField(max_length=32)),
                ("node", models.CharField(max_length=253)),
                (
                    "rule",
                    models.CharField(
                        choices=[
                            ("request", "request"),
                            ("pod budget", "pod budget"),
                            ("runtime overhead", "runtime overhead"),
                            ("mapping", "mapping"),
                            ("overhead", "overhead"),
                            ("allocatable", "allocatable"),
                        ],
                        max_length=16,
                    ),
                ),
                ("resource", models.CharField(max_length=320)),
                ("nanos", models.DecimalField(decimal_places=0, max_digits=60, null=True)),
                (
                    "unit",
                    models.CharField(
                        help_text="How it was written: quantity format.", max_length=16
                    ),
                ),
                ("payer", models.CharField(max_length=340)),
                ("pod", models.CharField(blank=True, max_length=320)),
                ("pod_uid", models.CharField(blank=True, max_length=320)),
                ("claim", models.CharField(blank=True, max_length=320)),
                ("claim_uid", models.CharField(blank=True, max_length=320)),
                ("driver", models.CharField(blank=True, max_length=63)),
                ("pool", models.CharField(blank=True, max_length=253)),
                ("device", models.CharField(blank=True, max_length=63)),
                ("share", models.CharField(blank=True, max_length=64)),
                ("container", models.CharField(blank=True, max_length=253)),
                (
                    "numa",
                    models.IntegerField(help_text="Null: the device does not say.", null=True),
                ),
                (
                    "contained",
                    models.BooleanField(
                        default=False, help_text="Adds nothing to what is charged."
                    ),
                ),
                ("epoch", models.IntegerField(default=0)),
                ("generation", models.BigIntegerField(default=0)),
                ("version", models.DecimalField(decimal_places=0, default=0, max_digits=30)),
                ("source", models.CharField(blank=True, max_length=270)),
                (
                    "writer",
                    models.CharField(
                        blank=True, help_text="Field manager of the source.", max_length=253
                    ),
                ),
                ("code", models.CharField(blank=True, max_length=48)),
                (
                    "ends",
                    models.OneToOneField(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="ended_by",
                        to="devices.ledgerline",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(fields=["node", "resource", "-id"], name="ledger_by_node"),
                    models.Index(fields=["at"], name="ledger_by_time"),
                    models.Index(fields=["key"], name="ledger_by_key"),
                    models.Index(
                        condition=models.Q(("pod", ""), _negated=True),
                        fields=["pod"],
                        name="ledger_by_pod",
                    ),
                    models.Index(
                        condition=models.Q(("claim", ""), _negated=True),
                        fields=["claim"],
                        name="ledger_by_claim",
                    ),
                    models.Index(
                        condition=models.Q(("act__in", ["doubled", "older"])),
                        fields=["at"],
                        name="ledger_refused",
                    ),
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="ledgerline",
            trigger=pgtrigger.compiler.Trigger(
                name="ledger_line_kept",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', "
                    "TG_TABLE_NAME;",
                    hash="52bfae4fe0ce06ab4d10046deb79e11c16bbe02e",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_ledger_line_kept_5c613",
                    table="devices_ledgerline",
                    when="BEFORE",
                ),
            ),
        ),
    ]
