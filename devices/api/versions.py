"""The template version that a call names."""

from __future__ import annotations

from devices.catalogue import approved
from devices.models import TemplateVersion
from portal.errors import Invalid


def approved_or_invalid(slug: str) -> TemplateVersion:
    """The version that can be asked for now; raises Invalid with what there is."""
    version = (
        TemplateVersion.objects.select_related("template")
        .filter(template__slug=slug, state=TemplateVersion.State.APPROVED)
        .first()
    )
    if version is None:
        known = ", ".join(one.template.slug for one in approved())
        raise Invalid(
            "Nothing was asked for.", fields={"template": f"No approved template: {known}."}
        )
    return version
