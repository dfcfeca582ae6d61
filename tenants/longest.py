"""How long the claims of a tenant may last: a maximum that the platform sets."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db import transaction

from portal.audit.record import record
from portal.errors import Invalid
from tenants.access import PlatformAccess
from tenants.models import Tenant
from tenants.policy import PlatformAct

#: Nobody plans further; who needs something longer extends it.
MOST_DAYS: Final = 730


@transaction.atomic
def set_longest_days(
    *,
    platform: PlatformAccess,
    tenant: Tenant,
    days: int | None,
    request_id: str,
    now: datetime,
) -> Tenant:
    """Sets how many days ahead the end of a tenant's claims may lie; None: no end is needed.

    Claims that are open keep the end that they have. Raises `NotPermitted`, `Invalid` (days).
    """
    platform.require(PlatformAct.SET_LIMITS)
    if days is not None and not 1 <= days <= MOST_DAYS:
        said = f"Give a whole number from 1 to {MOST_DAYS}, or nothing."
        raise Invalid("Nothing was set.", fields={"days": said})
    row = Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)
    before, row.longest_days = row.longest_days, days
    if before == days:
        return row
    row.save(update_fields=["longest_days"])
    record(
        action="tenant.longest_days_set",
        subject=f"tenant {row.slug}",
        request_id=request_id,
        at=now,
        person=platform.user.person,
        tenant=row.slug,
        facts={"before": before, "after": days},
    )
    return row
