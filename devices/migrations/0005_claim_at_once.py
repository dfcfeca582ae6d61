"""For how many Pods at once an ask is, and what open asks from before there were limits hold."""

from django.db import migrations, models


def count_what_is_open(apps, schema_editor):
    """Writes the budget lines of asks that are not known to be gone."""
    Claim = apps.get_model("devices", "Claim")
    BudgetLine = apps.get_model("tenants", "BudgetLine")
    lines = []
    for claim in Claim.objects.exclude(state__in=["released", "failed"]).select_related("namespace"):
        devices = {}
        for request in claim.devices:
            name = request["device_class"]
            devices[name] = devices.get(name, 0) + request.get("count", 1)
        amounts = [("devices", name, count) for name, count in devices.items()]
        for measure, device_class, amount in [*amounts, ("claims", "", 1)]:
            lines.append(
                BudgetLine(
                    tenant_id=claim.tenant_id,
                    namespace=claim.namespace.name,
                    measure=measure,
                    device_class=device_class,
                    amount=amount,
                    source=claim.public_id,
                    taken_at=claim.requested_at,
                )
            )
    BudgetLine.objects.bulk_create(lines)


class Migration(migrations.Migration):
    dependencies = [
        ("devices", "0004_forecasts"),
        ("tenants", "0003_limits_and_grants"),
    ]

    operations = [
        migrations.AddField(
            model_name="claim",
            name="at_once",
            field=models.PositiveSmallIntegerField(
                default=1, help_text="How many Pods may use a template at the same time."
            ),
        ),
        migrations.RunPython(count_what_is_open, migrations.RunPython.noop),
    ]
