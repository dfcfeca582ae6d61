"""Verbs about the freeze calendar: times in which no node starts, whatever a plan says."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from devices.models import NodePool
from migrationplan.models import CalendarFreeze
from portal import news
from portal.audit.record import record
from portal.errors import Invalid
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

LONGEST = timedelta(days=366)
LONGEST_REASON = 240


@transaction.atomic
def enter(
    *,
    reason: str,
    begins: datetime,
    ends: datetime,
    pools: Sequence[str],
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> CalendarFreeze:
    """No node of these pools (none given: of any) starts in that time. Raises `Invalid`."""
    access.require(PlatformAct.FREEZE)
    wrong = {}
    if not 0 < len(reason.strip()) <= LONGEST_REASON:
        wrong["reason"] = f"Say why, in at most {LONGEST_REASON} characters."
    if ends <= begins or ends <= now:
        wrong["ends"] = "It ends after it begins, and in time to come."
    elif ends - begins > LONGEST:
        wrong["ends"] = f"At most {LONGEST.days} days; make another one afterwards."
    known = set(NodePool.objects.filter(slug__in=pools).values_list("slug", flat=True))
    if missing := sorted(set(pools) - known):
        wrong["pools"] = f"There is no node pool {missing[0]}."
    if wrong:
        raise Invalid("Nothing was entered.", fields=wrong)
    made = CalendarFreeze.objects.create(
        reason=reason.strip(),
        begins_at=begins,
        ends_at=ends,
        pools=sorted(known),
        made_by=access.user.person,
        made_at=now,
        request_id=request_id,
    )
    _record("calendar.entered", made, access, request_id, now)
    return made


@transaction.atomic
def remove(
    entry: CalendarFreeze, *, access: PlatformAccess, request_id: str, now: datetime
) -> CalendarFreeze:
    """It counts no more; what was written stays. Twice is fine."""
    access.require(PlatformAct.FREEZE)
    entry = CalendarFreeze.objects.select_for_update().get(pk=entry.pk)
    if entry.removed_at is None:
        entry.removed_at, entry.removed_by = now, access.user.person
        entry.save(update_fields=["removed_at", "removed_by"])
        _record("calendar.removed", entry, access, request_id, now)
    return entry


def _record(
    action: str, entry: CalendarFreeze, access: PlatformAccess, request_id: str, now: datetime
) -> None:
    record(
        action=action,
        subject=f"calendar {entry.public_id}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={
            "reason": entry.reason,
            "begins": entry.begins_at.isoformat(),
            "ends": entry.ends_at.isoformat(),
            "pools": entry.pools,
        },
    )
    transaction.on_commit(lambda: news.publish(["plans"], tenant=news.PLATFORM), robust=True)
