"""The template version that a call names."""

from __future__ import annotations

from django.utils import timezone

from devices.authoring.shown import shown, shown_to
from devices.authoring.succession import gone
from devices.models import TemplateVersion
from portal.errors import Invalid
from tenants.models import Tenant


def approved_or_invalid(tenant: Tenant, slug: str) -> TemplateVersion:
    """The version that this tenant may ask for now; raises Invalid with what there is instead."""
    now = timezone.now()
    version = shown(tenant, slug, now)
    if version is None:
        raise Invalid("Nothing was asked for.", fields={"template": _instead(tenant, slug)})
    return version


def _instead(tenant: Tenant, slug: str) -> str:
    now = timezone.now()
    before = gone(slug, tenant, now)
    if before is not None:
        _, told = before
        after = f" Ask for {told.version.template.slug}." if told.version else ""
        return f"This template is retired: {told.words}{after}"
    known = ", ".join(one.template.slug for one in shown_to(tenant, now)) or "none"
    return f"No such template; there are: {known}."
