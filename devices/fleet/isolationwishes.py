"""What people, an admin's policy and Berth itself wish about isolations; a turn does it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from devices.models import Isolation, IsolationPolicy
from portal import news
from portal.alerts.raising import over
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

TURN: Final = "devices.tasks.turn_isolation"
TOPIC: Final = "isolations"
PROPOSED: Final = "ISOLATION_PROPOSED"
ISOLATED: Final = "DEVICES_ISOLATED"
#: The request id of what nobody asked for: a scan found it.
OWN_ACT: Final = "isolation-scan"
LONGEST_WHY: Final = 240

State = Isolation.State
Wish = Isolation.Wish
End = Isolation.End


class NotNow(Refused):
    """The isolation is not in a state in which this can be wished."""

    code = "ISOLATION_NOT_NOW"
    http_status = 409


@transaction.atomic
def wish(
    row: Isolation,
    what: str,
    *,
    access: PlatformAccess,
    why: str = "",
    request_id: str,
    now: datetime,
) -> Isolation:
    """Wishes one of `Isolation.Wish` for an isolation; a turn does it, or says why not.

    Lifting what is not closed yet is saying no to the proposal. Wishing the same twice is one wish.
    Raises `NotPermitted`, `NotNow`, and `Invalid` (what, why).
    """
    access.require(PlatformAct.ISOLATE)
    if what not in Wish.values or not what:
        known = ", ".join(value for value in Wish.values if value)
        raise Invalid("Nothing was done.", fields={"what": f"One of {known}."})
    row = Isolation.objects.select_for_update().get(pk=row.pk)
    if row.ended_at is not None:
        raise NotNow("It is over already.")
    fits = {
        Wish.LOOK: row.state == State.TRIED,
        Wish.APPLY: row.state == State.TRIED,
        Wish.PROBE: row.state == State.APPLIED and bool(row.device_class),
        Wish.LIFT: True,
    }
    if not fits[Wish(what)]:
        raise NotNow(_not_now(row, Wish(what)))
    if what in (Wish.APPLY, Wish.LIFT) and not 0 < len(why.strip()) <= LONGEST_WHY:
        limit = f"Say why, in at most {LONGEST_WHY} characters, for the audit."
        raise Invalid("Nothing was done.", fields={"why": limit})
    if row.wish == what:
        return row
    if row.wish and what != Wish.LIFT:
        raise NotNow("Something else is being done with it; wait a moment.")
    end = End.NONE
    if what == Wish.LIFT:
        end = End.LIFTED if row.state == State.APPLIED else End.DISMISSED
    take_wish(row, Wish(what), now, why=why.strip(), end=end, access=access, request_id=request_id)
    return row


def _not_now(row: Isolation, what: Wish) -> str:
    if what == Wish.PROBE and row.state == State.APPLIED:
        return "Nobody knows a class by which a trial Pod could ask for these devices."
    if row.state == State.PROPOSED:
        return "What it would touch is being looked at; wait a moment."
    return f"It is {State(row.state).label.lower()} now."


def take_wish(
    row: Isolation,
    what: Wish,
    now: datetime,
    *,
    why: str,
    end: End = End.NONE,
    access: PlatformAccess | None = None,
    request_id: str = OWN_ACT,
) -> None:
    row.wish, row.wished_at, row.wished_why, row.end = what, now, why, end
    row.wished_by = access.user.person if access is not None else None
    row.request_id, row.code, row.answer = request_id, "", ""
    row.save(
        update_fields=[
            "wish", "wished_at", "wished_why", "end", "wished_by", "request_id", "code", "answer",
        ]
    )  # fmt: skip
    wake(row, request_id, now)
    if access is not None:
        write(f"isolation.{_ACTIONS[what]}", row, now, why=why)


_ACTIONS: Final = {
    Wish.LOOK: "looked_at_anew",
    Wish.APPLY: "closing_wished",
    Wish.PROBE: "trial_wished",
    Wish.LIFT: "opening_wished",
}


def wake(row: Isolation, request_id: str, now: datetime) -> None:
    """Promises a turn, and tells open pages."""
    outbox.promise(TURN, row.public_id, request_id=request_id, now=now)
    topics = [TOPIC, f"isolation-{row.public_id}"]
    transaction.on_commit(lambda: news.publish(topics, tenant=news.PLATFORM), robust=True)


@transaction.atomic
def let(
    *,
    access: PlatformAccess,
    automatic: bool,
    share: int,
    least_failed: int,
    window: timedelta,
    probe_every: timedelta | None,
    request_id: str,
    now: datetime,
) -> IsolationPolicy:
    """Sets what Berth may do by itself, and how much of a pool may be closed by anybody.

    Raises `NotPermitted` and `Invalid`.
    """
    access.require(PlatformAct.LET_ISOLATE)
    wrong = {}
    if not 1 <= share <= 100:
        wrong["share"] = "From 1 to 100 per cent."
    if not 2 <= least_failed <= 1000:
        wrong["least_failed"] = "At least 2: one Pod proves nothing about a place."
    if not timedelta(minutes=5) <= window <= timedelta(hours=12):
        wrong["window"] = "From 5 minutes to 12 hours."
    if probe_every is not None and probe_every < timedelta(minutes=1):
        wrong["probe_every"] = "At least a minute, or never."
    if wrong:
        raise Invalid("Nothing was changed.", fields=wrong)
    IsolationPolicy.objects.get_or_create(pk=1)
    row = IsolationPolicy.objects.select_for_update().get(pk=1)
    before = _settings(row)
    row.automatic, row.share, row.least_failed = automatic, share, least_failed
    row.window, row.probe_every = window, probe_every
    if _settings(row) == before:
        return row
    row.changed_by, row.changed_at = access.user.person, now
    row.save()
    record(
        action="isolation.policy_set",
        subject="isolation",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={"before": before, "after": _settings(row)},
    )
    return row


def _settings(row: IsolationPolicy) -> dict[str, Any]:
    return {
        "automatic": row.automatic,
        "share": row.share,
        "least_failed": row.least_failed,
        "window": row.window.total_seconds(),
        "probe_every": row.probe_every.total_seconds() if row.probe_every else None,
    }


def subject(row: Isolation) -> str:
    """How alerts and audit lines name an isolation."""
    return f"isolation {row.public_id}"


def ended_alerts(row: Isolation, now: datetime) -> None:
    """Ends what rings for it."""
    for code in (PROPOSED, ISOLATED):
        over(code, subject(row), now=now)


def write(action: str, row: Isolation, now: datetime, **facts: Any) -> None:
    record(
        action=action,
        subject=subject(row),
        request_id=row.request_id,
        at=now,
        person=row.wished_by,
        facts={"node": row.node, "driver": row.driver, "device": row.device, **facts},
    )
