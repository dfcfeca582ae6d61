"""Verbs of operators: freeze new work, lift a freeze, end those whose time is over.

A freeze keeps new requests back here (they are held) and, by `berth.dev/frozen` on namespaces and
the policies in `deploy/policies/`, in the cluster too. Node pools and drivers are closed by taints,
driver changes by a policy (`freezeturn`). What runs goes on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from devices.asks.holds import FROZEN
from devices.asks.reconcile import RECONCILE
from devices.dra.lifecycle import State
from devices.models import Claim, Freeze, FreezeHold, NodePool
from portal import news
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.allowance import TURN_TENANT
from tenants.models import Tenant
from tenants.policy import PlatformAct

LONGEST_REASON = 240
LONGEST_TARGET = 253
TURN: Final = "devices.tasks.turn_freeze"
#: Scopes that a node pool's name is the target of, and those that the cluster holds as a place.
POOLS: Final = frozenset({Freeze.Scope.POOL, Freeze.Scope.CHANGE})
PLACES: Final = POOLS | {Freeze.Scope.DRIVER}
#: The widest first.
ORDER: Final = {scope: place for place, scope in enumerate([
    Freeze.Scope.ALL, Freeze.Scope.TENANT, Freeze.Scope.CLASS, Freeze.Scope.DRIVER,
    Freeze.Scope.POOL, Freeze.Scope.CHANGE,
])}  # fmt: skip
DRIVER_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?")


class AlreadyFrozen(Refused):
    """It is frozen already; lift that freeze first to change its reason or its end."""

    code = "ALREADY_FROZEN"
    http_status = 409


@transaction.atomic
def freeze(
    *,
    access: PlatformAccess,
    scope: str,
    target: str,
    strict: bool,
    reason: str,
    until: datetime | None,
    request_id: str,
    now: datetime,
    path: str = "",
) -> Freeze:
    """Stops new work of a class, a tenant, a node pool, a driver or of all, or driver changes of a
    node pool; returns the freeze. `path` closes only those nodes of a node pool that take it.

    Raises `NotPermitted`, `AlreadyFrozen`, and `Invalid` with the fields `scope`, `target`, `path`,
    `strict`, `reason` and `until`. The cluster follows within a turn of what is concerned.
    """
    access.require(PlatformAct.FREEZE)
    target = target.strip() if scope != Freeze.Scope.ALL else ""
    wrong = _wrong(scope, target, reason.strip(), until, now)
    wrong |= _wrong_place(scope, target, path, strict=strict)
    if wrong:
        raise Invalid("Nothing was frozen yet; some answers are not right.", fields=wrong)
    expire(now)  # one whose time is over must not stand in the way
    standing = Freeze.objects.standing(now).filter(scope=scope, target=target).first()
    if standing is not None:
        raise AlreadyFrozen(
            f"{standing.words.capitalize()} is frozen already ({standing.reason}). "
            "Lift that freeze first to change it.",
            freeze=standing.public_id,
        )
    made = Freeze.objects.create(
        scope=scope,
        target=target,
        path=path,
        strict=strict,
        reason=reason.strip(),
        frozen_by=access.user.person,
        frozen_at=now,
        until=until,
        request_id=request_id,
    )
    if scope in PLACES:
        FreezeHold.objects.create(freeze=made)
    _tell(made, request_id=request_id, now=now)
    _record("freeze.made", made, request_id=request_id, now=now, person=access.user.person)
    return made


@transaction.atomic
def lift(*, access: PlatformAccess, public_id: str, request_id: str, now: datetime) -> Freeze:
    """Ends a freeze; requests that it held are sent in the order of asking. Twice is fine.

    Raises `NotPermitted`; `Freeze.DoesNotExist` for an unknown one.
    """
    access.require(PlatformAct.FREEZE)
    found = Freeze.objects.select_for_update().get(public_id=public_id)
    if found.ended_at is None:
        _end(
            found,
            Freeze.End.LIFTED,
            request_id=request_id,
            now=now,
            person=access.user.person,
        )
    return found


@transaction.atomic
def expire(now: datetime) -> int:
    """Ends freezes whose time is over; returns how many."""
    over = list(Freeze.objects.over(now).select_for_update(skip_locked=True).order_by("pk"))
    for found in over:
        _end(found, Freeze.End.EXPIRED, request_id=found.request_id, now=now, person=None)
    return len(over)


@transaction.atomic
def end_for(reason: str, *, request_id: str, now: datetime) -> int:
    """Ends what Berth itself froze for a reason that is over; returns how many."""
    found = list(Freeze.objects.filter(reason=reason, ended_at=None).select_for_update())
    for one in found:
        _end(one, Freeze.End.DONE, request_id=request_id, now=now, person=None)
    return len(found)


def frozen_for(tenant: Tenant, now: datetime) -> list[Freeze]:
    """Freezes that concern a tenant, the widest first, as its pages show them: its requests, and
    places where its Pods might have run.
    """
    standing = Freeze.objects.standing(now)
    places = standing.of_places().exclude(scope=Freeze.Scope.CHANGE)
    found = [*standing.of_tenant(tenant.slug), *places]
    return sorted(found, key=lambda one: (ORDER[Freeze.Scope(one.scope)], one.target))


def standing_for(slugs: Iterable[str], roles: Collection[str], now: datetime) -> list[Freeze]:
    """Freezes that a person may know of: of everything, of classes, and of their tenants; people of
    the platform know of all.
    """
    found = Freeze.objects.standing(now)
    if not roles:
        found = found.exclude(scope=Freeze.Scope.CHANGE)
        found = found.exclude(Q(scope=Freeze.Scope.TENANT) & ~Q(target__in=list(slugs)))
    return list(found)


def held_by_freezes() -> Iterable[str]:
    """Public ids of requests that wait for the end of a freeze, in the order of asking."""
    held = Claim.objects.filter(state=State.HELD, code=FROZEN)
    return held.order_by("requested_at", "pk").values_list("public_id", flat=True)


def _end(
    found: Freeze, how: Freeze.End, *, request_id: str, now: datetime, person: UUID | None
) -> None:
    found.ended_at, found.ended_by, found.end = now, person, how
    found.save(update_fields=["ended_at", "ended_by", "end"])
    if found.scope in PLACES:
        FreezeHold.objects.filter(freeze=found).update(state=FreezeHold.State.OPENING)
    _tell(found, request_id=request_id, now=now)
    if found.scope not in PLACES:
        for public_id in held_by_freezes():
            outbox.promise(RECONCILE, public_id, request_id=request_id, now=now)
    _record(f"freeze.{how.value}", found, request_id=request_id, now=now, person=person)


def _wrong(
    scope: str, target: str, reason: str, until: datetime | None, now: datetime
) -> dict[str, str]:
    wrong: dict[str, str] = {}
    if scope not in Freeze.Scope.values:
        wrong["scope"] = f"Choose from {', '.join(Freeze.Scope.values)}."
    elif scope == Freeze.Scope.TENANT and not Tenant.objects.filter(slug=target).exists():
        wrong["target"] = "There is no such tenant; give its short name."
    elif scope == Freeze.Scope.CLASS and not 0 < len(target) <= LONGEST_TARGET:
        wrong["target"] = "Give the name of a device class."
    elif scope in POOLS and not NodePool.objects.filter(slug=target).exists():
        wrong["target"] = "There is no such node pool; give its name in addresses."
    elif scope == Freeze.Scope.DRIVER and not DRIVER_NAME.fullmatch(target):
        wrong["target"] = "Give the name of a driver, such as gpu.example.com."
    if not 0 < len(reason) <= LONGEST_REASON:
        wrong["reason"] = f"Say why, in at most {LONGEST_REASON} characters: everybody reads it."
    if until is not None and until <= now:
        wrong["until"] = "Choose a time to come, or leave it empty."
    return wrong


def _wrong_place(scope: str, target: str, path: str, *, strict: bool) -> dict[str, str]:
    wrong: dict[str, str] = {}
    if path and (scope != Freeze.Scope.POOL or path not in Freeze.Path.values):
        known = ", ".join(Freeze.Path.values)
        wrong["path"] = f"One of {known}, for a node pool only."
    if strict and scope in PLACES:
        wrong["strict"] = "Taints keep every new Pod away, replacements too; leave it out."
    return wrong


def _tell(found: Freeze, *, request_id: str, now: datetime) -> None:
    """Promises a turn of every tenant whose namespaces say otherwise now, or of the place that is
    closed or opened, and tells open pages.
    """
    if found.scope in PLACES:
        outbox.promise(TURN, found.public_id, request_id=request_id, now=now)
        transaction.on_commit(lambda: news.publish(["freezes"]), robust=True)
        return
    tenants = Tenant.objects.exclude(state=Tenant.State.CLOSED)
    if found.scope == Freeze.Scope.TENANT:
        tenants = tenants.filter(slug=found.target)
    slugs = list(tenants.values_list("slug", flat=True))
    for slug in slugs:
        outbox.promise(TURN_TENANT, slug, request_id=request_id, now=now)
    tenant = found.target if found.scope == Freeze.Scope.TENANT else ""
    transaction.on_commit(lambda: news.publish(["freezes"], tenant=tenant), robust=True)


def _record(
    action: str, found: Freeze, *, request_id: str, now: datetime, person: UUID | None
) -> None:
    facts: dict[str, Any] = {
        "scope": found.scope,
        "target": found.target,
        "path": found.path,
        "strict": found.strict,
        "reason": found.reason,
        "until": found.until.isoformat() if found.until else None,
    }
    record(
        action=action,
        subject=f"freeze {found.public_id}",
        request_id=request_id,
        at=now,
        person=person,
        tenant=found.target if found.scope == Freeze.Scope.TENANT else "",
        facts=facts,
    )
