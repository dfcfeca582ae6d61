"""Verbs that change limits: the platform sets them, owners ask for others and share theirs out.

Lowering a limit below what is in use is allowed: it shows as overdrawn, and nothing is taken away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from django.db import transaction

from portal.approvals import asks
from portal.approvals.models import Approval
from portal.approvals.rules import DecidedBy, Effect
from portal.approvals.rules import Line as Change
from portal.approvals.rules import State as ApprovalState
from portal.audit.record import record
from portal.errors import Invalid, NotPermitted
from portal.outbox import lines as outbox
from tenants.access import Access, PlatformAccess
from tenants.allowance import promise_turn
from tenants.budget import lock, plain, tell_pages
from tenants.limits import ANY, ANY_CLASS, ZERO, Measure, Strip, What, strip, too_much_shared
from tenants.models import Limit, LimitWish, PlatformRole, Share, Tenant
from tenants.policy import Act, PlatformAct
from tenants.sums import sums_of

CARRY_OUT: Final = "tenants.tasks.carry_out_limit"
DECIDERS: Final = frozenset({"approver", "admin"})
LARGEST: Final = Decimal(10) ** 30
KIND: Final = "limit"


@transaction.atomic
def set_limit(
    *,
    platform: PlatformAccess,
    tenant: Tenant,
    what: What,
    amount: Decimal | None,
    request_id: str,
    now: datetime,
) -> Limit:
    """The platform sets a limit; None allows without one.

    Raises `Invalid`, `NotPermitted` (OWN_TENANT: an approver would raise a limit of their own).
    """
    platform.require(PlatformAct.SET_LIMITS)
    tenant = lock(tenant)[tenant.pk]
    row = _row(tenant, what)
    if row is None or (row.amount is not None and (amount is None or amount > row.amount)):
        _not_ones_own(platform, tenant)
    return _set(tenant, what, amount, person=platform.user.person, request_id=request_id, now=now)


@transaction.atomic
def remove_limit(
    *, platform: PlatformAccess, tenant: Tenant, what: What, request_id: str, now: datetime
) -> None:
    """Takes the row away: a class is then not allowed, claims and capacities are not limited.

    What is in use stays. Doing it twice is fine. Raises `NotPermitted` as `set_limit` does.
    """
    platform.require(PlatformAct.SET_LIMITS)
    tenant = lock(tenant)[tenant.pk]
    row = _row(tenant, what)
    if row is None:
        return
    if what.measure is not Measure.DEVICES or (what != ANY and _row(tenant, ANY) is not None):
        _not_ones_own(platform, tenant)  # without it there is no limit
    before = words(row.amount)
    row.delete()
    record(
        action="limit.removed",
        subject=f"limit {what}",
        request_id=request_id,
        at=now,
        person=platform.user.person,
        tenant=tenant.slug,
        facts={"before": before},
    )
    promise_turn(tenant, request_id=request_id, now=now)
    tell_pages(tenant)


@transaction.atomic
def share_out(
    *,
    access: Access,
    what: What,
    shares: Mapping[str, Decimal],
    request_id: str,
    now: datetime,
) -> Limit:
    """An owner divides a limit among the tenant's namespaces; an empty mapping: all draw on all.

    Raises `Invalid` with `shares` or `shares.<namespace>`, `NotPermitted`.
    """
    access.require(Act.SHARE_LIMITS)
    tenant = lock(access.tenant)[access.tenant.pk]
    row = _row(tenant, what)
    if row is None:
        raise Invalid("Nothing was shared out.", fields={"what": "There is no such limit."})
    places = {place.name: place for place in tenant.namespaces.all()}
    wrong = {f"shares.{name}": "Not a namespace of yours." for name in set(shares) - set(places)}
    granted = strip(what, row.amount, sums_of(tenant)).granted
    sentence = too_much_shared(row.amount, shares, granted)
    if sentence:
        wrong["shares"] = sentence
    if wrong:
        raise Invalid("Nothing was shared out.", fields=wrong)
    before = {share.namespace.name: plain(share.amount) for share in row.shares.all()}
    row.shares.all().delete()
    Share.objects.bulk_create(
        Share(limit=row, namespace=places[name], amount=amount) for name, amount in shares.items()
    )
    _stamp(row, now)
    record(
        action="limit.shared",
        subject=f"limit {what}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=tenant.slug,
        facts={"before": before, "after": {name: plain(one) for name, one in shares.items()}},
    )
    promise_turn(tenant, request_id=request_id, now=now)
    tell_pages(tenant)
    return row


@transaction.atomic
def ask_for_limit(
    *,
    access: Access,
    what: What,
    amount: Decimal | None,
    reason: str,
    request_id: str,
    now: datetime,
    capacity: Iterable[Effect] = (),
) -> LimitWish:
    """An owner asks the platform for another limit; nothing changes until somebody approves.

    `capacity` is what the cluster has, which only the floor above knows; the approver reads it.
    Raises `Invalid` (amount, reason), `AlreadyAsked`, `NotPermitted`.
    """
    access.require(Act.ASK_LIMITS)
    tenant = lock(access.tenant)[access.tenant.pk]
    _check(what, amount)
    if not reason.strip():
        raise Invalid("Nothing was asked for.", fields={"reason": "Say what it is for."})
    row = _row(tenant, what)
    wish = LimitWish.objects.create(
        tenant=tenant,
        measure=what.measure,
        device_class=what.device_class,
        capacity=what.capacity,
        amount=amount,
        before=row.amount if row else None,
        had_row=row is not None,
        asked_at=now,
    )
    now_is = strip(what, row.amount if row else ZERO, sums_of(tenant))
    approval = asks.ask(
        kind=KIND,
        subject=f"limit of {what} for {tenant.slug}",
        title=f"{tenant.name}: {what}, {standing(row)} → {words(amount)}",
        lines=[Change(f"{what}", standing(row), words(amount))],
        effects=[*effects(now_is, amount), *capacity],
        by=DecidedBy(platform=DECIDERS),
        author=access.user.person,
        tenant=tenant.slug,
        reason=reason,
        task=CARRY_OUT,
        key=str(wish.pk),
        request_id=request_id,
        now=now,
    )
    wish.approval = approval.pk
    wish.save(update_fields=["approval"])
    tell_pages(tenant)
    return wish


def carry_out(wish_id: int, *, now: datetime) -> bool:
    """Sets the limit that an approval said yes to, once; returns whether it did so now.

    The limit may have moved since it was asked for; the approved number is what is set, and the
    audit line says from where.
    """
    through = outbox.newest(CARRY_OUT, str(wish_id))
    with transaction.atomic():
        wish = LimitWish.objects.select_related("tenant").get(pk=wish_id)
        tenant = lock(wish.tenant)[wish.tenant_id]
        wish.refresh_from_db()
        approved = Approval.objects.filter(
            pk=wish.approval or 0, state=ApprovalState.APPROVED
        ).first()
        if wish.done_at is None and approved is not None:
            _set(
                tenant,
                wish.what,
                wish.amount,
                approval=approved.number,
                request_id=approved.request_id,
                now=now,
            )
            wish.done_at = now
            wish.save(update_fields=["done_at"])
            done = True
        else:
            done = False
        outbox.settle(CARRY_OUT, str(wish_id), through=through)
    return done


def effects(standing: Strip, amount: Decimal | None) -> list[Effect]:
    """What the one who decides should see: the strip now, and after."""
    after = Strip(standing.what, amount, standing.used, standing.reserved, standing.granted)
    found = [
        Effect("budget", "in use now", plain(standing.used)),
        Effect("budget", "reserved by waiting asks", plain(standing.reserved)),
        Effect("budget", "lent to others", plain(standing.granted)),
        Effect("budget", "free after", "no limit" if after.free is None else plain(after.free)),
    ]
    if after.overdrawn:
        note = "Nothing is taken away; nothing new is accepted until it is below."
        found.append(Effect("budget", "overdrawn after", plain(after.overdrawn), note))
    return found


def words(amount: Decimal | None) -> str:
    """ "8", "no limit"."""
    return "no limit" if amount is None else plain(amount)


def standing(row: Limit | None) -> str:
    """What holds without and with a row."""
    return "none" if row is None else words(row.amount)


def _not_ones_own(platform: PlatformAccess, tenant: Tenant) -> None:
    """Approvers raise no limit of a tenant that they belong to: else nobody would decide on it.

    Admins may, for there may be nobody else; the audit says who it was.
    """
    if PlatformRole.Role.ADMIN in platform.roles:
        return
    if tenant.memberships.filter(user=platform.user).exists():
        raise NotPermitted(
            f"You belong to {tenant.name}, and nobody raises their own limits. An owner asks for "
            "it on the limit's page, and somebody else decides.",
            code="OWN_TENANT",
        )


def _set(
    tenant: Tenant,
    what: What,
    amount: Decimal | None,
    *,
    request_id: str,
    now: datetime,
    person: UUID | None = None,
    approval: str = "",
) -> Limit:
    """The caller holds the tenant's lock."""
    _check(what, amount)
    row = _row(tenant, what)
    before = standing(row)
    if row is None:
        row = Limit(
            tenant=tenant,
            measure=what.measure,
            device_class=what.device_class,
            capacity=what.capacity,
            revision=0,
        )
    elif too_much_shared(amount, row.bound().shares, ZERO):
        # Shares that no longer add up are dropped: every namespace draws on the whole again.
        row.shares.all().delete()
    row.amount = amount
    _stamp(row, now)
    record(
        action="limit.set",
        subject=f"limit {what}",
        request_id=request_id,
        at=now,
        person=person,
        tenant=tenant.slug,
        facts={"before": before, "after": words(amount), "approval": approval},
    )
    promise_turn(tenant, request_id=request_id, now=now)
    tell_pages(tenant)
    return row


def _check(what: What, amount: Decimal | None) -> None:
    wrong = {}
    if what.measure is not Measure.CLAIMS and not what.device_class:
        wrong["device_class"] = "Name a device class."
    if (what.measure is Measure.CAPACITY) is not bool(what.capacity):
        wrong["capacity"] = "Name a capacity for a capacity limit, and for no other."
    if what.device_class == ANY_CLASS and (
        amount is not None or what.measure is not Measure.DEVICES
    ):
        wrong["amount"] = "Any class has no number of its own; limit each class by itself."
    elif amount is not None and not 0 <= amount <= LARGEST:
        wrong["amount"] = "Give a number from 0 up, or nothing for no limit."
    elif amount is not None and what.measure is not Measure.CAPACITY and amount % 1:
        wrong["amount"] = "Give a whole number."
    if wrong:
        raise Invalid("No limit was changed.", fields=wrong)


def _row(tenant: Tenant, what: What) -> Limit | None:
    return (
        tenant.limits.prefetch_related("shares__namespace")
        .filter(measure=what.measure, device_class=what.device_class, capacity=what.capacity)
        .first()
    )


def _stamp(row: Limit, now: datetime) -> None:
    row.revision += 1
    row.changed_at = now
    row.save()
