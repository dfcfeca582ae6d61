"""Verbs on a tenant's closing: ask for it, begin it, cancel it. Its turns do the rest.

Cancelling is possible until the last Pod has ended: up to then nothing was taken away that does not
come back by itself. From the moment that claims are reclaimed there is no way back.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.urls import reverse

from devices.asks.holds import CLOSING
from devices.asks.reconcile import RECONCILE
from devices.dra.closing import Phase
from devices.dra.lifecycle import State
from devices.models import Claim, Closure
from devices.tenancy.closing import LATE, tell
from portal.alerts.raising import About, over, raise_alert
from portal.approvals import asks
from portal.approvals.models import Approval
from portal.approvals.rules import DecidedBy, Effect, Line
from portal.approvals.rules import State as ApprovalState
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox
from tenants.access import Access, PlatformAccess
from tenants.allowance import promise_turn
from tenants.budget import lock
from tenants.models import Tenant
from tenants.policy import Act, PlatformAct

BEGIN: Final = "devices.tasks.begin_closing"
KIND: Final = "closing"
LONGEST_REASON: Final = 240


class AlreadyClosing(Refused):
    """The tenant is being closed, or an owner has asked for it already."""

    code = "ALREADY_CLOSING"
    http_status = 409


class TooFar(Refused):
    """Claims are being reclaimed, or the closing is over: it cannot be cancelled any more."""

    code = "CLOSING_TOO_FAR"
    http_status = 409


@transaction.atomic
def ask_to_close(
    *, access: Access, reason: str, typed: str, request_id: str, now: datetime
) -> Closure:
    """An owner asks the platform to close the tenant; nothing changes until an admin approves.

    Raises `NotPermitted`, `AlreadyClosing`, `Invalid` (reason, typed).
    """
    access.require(Act.ASK_CLOSING)
    tenant = lock(access.tenant)[access.tenant.pk]
    _check(tenant, reason, typed, None, now)
    _drop_stale_wish(tenant, now)
    if current(tenant) is not None:
        raise AlreadyClosing(f"{tenant.name} is being closed, or somebody asked for it already.")
    closure = Closure.objects.create(
        tenant=tenant,
        reason=reason.strip(),
        asked_by=access.user.person,
        asked_at=now,
        request_id=request_id,
        phase=Phase.ASKED,
    )
    approval = asks.ask(
        kind=KIND,
        subject=f"tenant {tenant.slug}",
        title=f"Close {tenant.name}",
        lines=[Line("State", "active", "closed")],
        effects=_effects(tenant),
        by=DecidedBy(platform=frozenset({"admin"})),
        author=access.user.person,
        tenant=tenant.slug,
        reason=reason,
        task=BEGIN,
        key=str(closure.pk),
        request_id=request_id,
        now=now,
        address=page_of(tenant),
    )
    Closure.objects.filter(pk=closure.pk).update(approval=approval.pk)
    tell(tenant)
    closure.refresh_from_db()
    return closure


@transaction.atomic
def begin(
    *,
    access: PlatformAccess,
    tenant: Tenant,
    reason: str,
    typed: str,
    deadline: datetime | None,
    request_id: str,
    now: datetime,
) -> Closure:
    """An admin begins to close a tenant: nothing new from now on, in the portal and the cluster.

    What an owner asked for is overtaken by it. `deadline` only alerts. Raises `NotPermitted`,
    `AlreadyClosing`, `Invalid` (reason, typed, deadline).
    """
    access.require(PlatformAct.RUN_TENANTS)
    tenant = lock(tenant)[tenant.pk]
    _check(tenant, reason, typed, deadline, now)
    found = current(tenant)
    if tenant.state != Tenant.State.ACTIVE or (found and found.phase != Phase.ASKED):
        raise AlreadyClosing(f"{tenant.name} is {tenant.state} already.")
    if found is not None:
        _overtake(found, request_id, now)
    closure = Closure.objects.create(
        tenant=tenant,
        reason=reason.strip(),
        asked_by=access.user.person,
        asked_at=now,
        request_id=request_id,
        deadline=deadline,
        began_by=access.user.person,
        began_at=now,
    )
    _stop(tenant, closure, access.user.person, request_id, now)
    return closure


def carry_out(closure_id: int, *, now: datetime) -> bool:
    """Begins the closing that an approval said yes to, once; returns whether it did so now."""
    through = outbox.newest(BEGIN, str(closure_id))
    with transaction.atomic():
        closure = Closure.objects.select_related("tenant").get(pk=closure_id)
        tenant = lock(closure.tenant)[closure.tenant_id]
        closure.refresh_from_db()
        approved = Approval.objects.filter(
            pk=closure.approval or 0, state=ApprovalState.APPROVED
        ).first()
        done = (
            approved is not None
            and closure.phase == Phase.ASKED
            and tenant.state == Tenant.State.ACTIVE
        )
        if done:
            Closure.objects.filter(pk=closure.pk).update(
                phase=Phase.STOPPING, began_at=now, revision=F("revision") + 1
            )
            _stop(tenant, closure, None, closure.request_id, now)
        outbox.settle(BEGIN, str(closure_id), through=through)
    return done


@transaction.atomic
def cancel(*, access: PlatformAccess, tenant: Tenant, request_id: str, now: datetime) -> Closure:
    """The tenant is active again; what was held goes on. Raises `NotPermitted`, `TooFar`.

    Cancelling what is cancelled is fine where nothing else has begun since.
    """
    access.require(PlatformAct.RUN_TENANTS)
    tenant = lock(tenant)[tenant.pk]
    closure = Closure.objects.select_related("tenant").filter(tenant=tenant).first()
    if closure is None or not closure.revocable:
        if closure is not None and closure.phase == Phase.CANCELLED:
            return closure
        raise TooFar(
            f"{tenant.name} is not being closed."
            if closure is None
            else f"Claims of {tenant.name} are reclaimed already; make a new tenant instead."
        )
    if closure.phase == Phase.ASKED:
        _overtake(closure, request_id, now)
        closure.refresh_from_db()
        return closure
    Closure.objects.filter(pk=closure.pk).update(
        phase=Phase.CANCELLED,
        ended_at=now,
        ended_by=access.user.person,
        blockers=[],
        revision=F("revision") + 1,
    )
    tenant.state = Tenant.State.ACTIVE
    tenant.save(update_fields=["state"])
    over(LATE, f"tenant {tenant.slug}", now=now)
    promise_turn(tenant, request_id=request_id, now=now)
    held = Claim.objects.of(tenant).filter(state=State.HELD, code=CLOSING, released_at=None)
    for public_id in held.order_by("pk").values_list("public_id", flat=True):
        outbox.promise(RECONCILE, public_id, request_id=request_id, now=now)
    record(
        action="tenant.closing_cancelled",
        subject=f"tenant {tenant.slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=tenant.slug,
        facts={"closing": closure.public_id},
    )
    tell(tenant)
    closure.refresh_from_db()
    return closure


def alert_late(now: datetime) -> int:
    """Says once of each closing that it has passed its deadline; returns of how many.

    Nothing else happens: a deadline calls people, it ends nobody's work.
    """
    late = Closure.objects.under_way().filter(deadline__lte=now, late_at=None)
    told = 0
    for closure in late.select_related("tenant"):
        with transaction.atomic():
            if not late.filter(pk=closure.pk).update(late_at=now, revision=F("revision") + 1):
                continue
            record(
                action="tenant.closing_late",
                subject=f"tenant {closure.tenant.slug}",
                request_id=closure.request_id,
                at=now,
                tenant=closure.tenant.slug,
                facts={"phase": closure.phase, "waits_for": len(closure.blockers)},
            )
            about = About(
                LATE,
                f"tenant {closure.tenant.slug}",
                f"The closing of {closure.tenant.name} is late",
                words="Nothing is ended by itself; the page names what it waits for.",
                path=page_of(closure.tenant),
            )
            raise_alert(about, now=now, request_id=closure.request_id)
            tell(closure.tenant)
            told += 1
    return told


def slugs_under_way() -> list[str]:
    """Tenants whose turns have a closing to carry on."""
    return list(Closure.objects.under_way().values_list("tenant__slug", flat=True))


def page_of(tenant: Tenant) -> str:
    """The platform's page of a tenant's closing."""
    return reverse("closing", args=[tenant.slug])


def current(tenant: Tenant) -> Closure | None:
    """What is asked for or under way, if anything."""
    return Closure.objects.unfinished().filter(tenant=tenant).first()


def newest(tenant: Tenant) -> Closure | None:
    """The newest closing of a tenant, also one that is over."""
    return Closure.objects.filter(tenant=tenant).select_related("tenant").first()


def _stop(
    tenant: Tenant, closure: Closure, person: UUID | None, request_id: str, now: datetime
) -> None:
    """Nothing new from now on; the caller holds the tenant's lock."""
    tenant.state = Tenant.State.CLOSING
    tenant.save(update_fields=["state"])
    promise_turn(tenant, request_id=request_id, now=now)
    record(
        action="tenant.closing_begun",
        subject=f"tenant {tenant.slug}",
        request_id=request_id,
        at=now,
        person=person,
        tenant=tenant.slug,
        facts={
            "closing": closure.public_id,
            "reason": closure.reason,
            "deadline": closure.deadline.isoformat() if closure.deadline else None,
        },
    )
    tell(tenant)


def _check(
    tenant: Tenant, reason: str, typed: str, deadline: datetime | None, now: datetime
) -> None:
    wrong = {}
    if not 0 < len(reason.strip()) <= LONGEST_REASON:
        wrong["reason"] = f"Say why, in at most {LONGEST_REASON} characters; the receipt says it."
    if typed.strip() != tenant.slug:
        wrong["typed"] = f"Type {tenant.slug} to say that this is the right tenant."
    if deadline is not None and deadline <= now:
        wrong["deadline"] = "Choose a time to come, or leave it empty."
    if wrong:
        raise Invalid("Nothing was begun.", fields=wrong)


def _overtake(closure: Closure, request_id: str, now: datetime) -> None:
    """An owner's wish ends, because an admin acts or nobody decided."""
    Closure.objects.filter(pk=closure.pk).update(
        phase=Phase.CANCELLED, ended_at=now, revision=F("revision") + 1
    )
    if closure.approval is not None:
        why = "An admin of the platform acted on it directly."
        asks.void(approval_id=closure.approval, why=why, request_id=request_id, now=now)


def _drop_stale_wish(tenant: Tenant, now: datetime) -> None:
    """A wish that was sent back, or that nobody decided in time, is no longer in the way."""
    wish = Closure.objects.filter(tenant=tenant, phase=Phase.ASKED).first()
    if wish is None:
        return
    waits = {ApprovalState.OPEN, ApprovalState.APPROVED}
    if not Approval.objects.filter(pk=wish.approval or 0, state__in=waits).exists():
        Closure.objects.filter(pk=wish.pk).update(
            phase=Phase.CANCELLED, ended_at=now, revision=F("revision") + 1
        )


def _effects(tenant: Tenant) -> list[Effect]:
    """What the one who decides should see."""
    claims = Claim.objects.of(tenant).open()
    running = claims.filter(state=State.IN_USE).count()
    note = "Nothing is evicted; it is waited for."
    return [
        Effect("what is there", "open claims", str(claims.count())),
        Effect("what is there", "claims in use", str(running), note),
        Effect("what is there", "namespaces", str(tenant.namespaces.count())),
        Effect("what is there", "members", str(tenant.memberships.count())),
    ]
