"""Saying which tenants see a template; what follows from it is devices/authoring/shown.py."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db import transaction

from devices.authoring.drafts import locked, tell
from devices.models import ClaimTemplate
from portal.audit.record import record
from portal.errors import Invalid
from tenants.access import PlatformAccess
from tenants.models import Tenant
from tenants.policy import PlatformAct


@transaction.atomic
def show_to(
    *,
    access: PlatformAccess,
    slug: str,
    audience: str,
    tenants: Collection[str],
    request_id: str,
    now: datetime,
) -> ClaimTemplate:
    """Says which tenants see a template and may ask for it. Holders keep what they have.

    Raises `NotPermitted`, `Invalid` (audience, tenants); 404 for an unknown template.
    """
    access.require(PlatformAct.WRITE_TEMPLATES)
    template = locked(slug)
    named = audience == ClaimTemplate.Audience.NAMED
    found = list(Tenant.objects.filter(slug__in=tenants)) if named else []
    wrong: dict[str, str] = {}
    if audience not in ClaimTemplate.Audience.values:
        wrong["audience"] = f"Choose one of {', '.join(ClaimTemplate.Audience.values)}."
    elif named and not found:
        wrong["tenants"] = "Name at least one tenant."
    elif unknown := sorted(set(tenants) - {tenant.slug for tenant in found}) if named else []:
        wrong["tenants"] = f"No tenant is called {', '.join(unknown)}."
    if wrong:
        raise Invalid("Nothing was changed.", fields=wrong)
    before = template.audience
    template.audience = audience
    template.save(update_fields=["audience"])
    template.tenants.set(found)
    record(
        action="template.shown",
        subject=f"template {slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={"before": before, "after": audience, "tenants": sorted(one.slug for one in found)},
    )
    tell(template)
    return template
