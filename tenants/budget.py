"""Taking from a tenant's limits, and giving back.

Whatever takes locks the tenant's row first, so two who ask at once are judged one after the other.
Giving back needs no lock: it only ever makes room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db import transaction

from portal import news
from portal.errors import Refused
from tenants.allowance import promise_turn
from tenants.limits import CLASS_NOT_ALLOWED, ZERO, Line, Refusal, What, may_take
from tenants.models import BudgetLine, Grant, Limit, Membership, Tenant
from tenants.sums import limits_of, sums_of

Words = Callable[[What], str]


class OverLimit(Refused):
    """Not allowed, or too many: `code` says which; `facts.limits` has the numbers of each."""

    def __init__(self, refusals: Iterable[Refusal], tenant: Tenant, words: Words = str) -> None:
        refused = tuple(refusals)
        first = refused[0]
        said = " ".join(sentence(one, words) for one in refused)
        who = owners_in_words(tenant)
        super().__init__(
            f"{said} {first.remedy} {who}",
            code=first.code,
            limits=[as_facts(one) for one in refused],
        )
        self.refusals = refused


def sentence(refusal: Refusal, words: Words = str) -> str:
    """ "3 more devices of h100 are asked for, and 1 of 8 is left." """
    what = words(refusal.what)
    if refusal.code == CLASS_NOT_ALLOWED:
        return f"This tenant may not have {what}."
    where = f" of namespace {refusal.namespace}'s share" if refusal.namespace else ""
    left = refusal.left if refusal.left is not None and refusal.left > 0 else ZERO
    overdrawn = -refusal.left if refusal.left is not None and refusal.left < 0 else ZERO
    more = f", which is overdrawn by {plain(overdrawn)}" if overdrawn else ""
    limit = plain(refusal.limit or ZERO)
    return (
        f"{plain(refusal.asked)} {what} asked for; "
        f"{plain(left)} of {limit}{where} left{more}: {plain(refusal.over or ZERO)} too many."
    )


def as_facts(refusal: Refusal) -> dict[str, str | None]:
    """The numbers of a refusal for programs; amounts are exact decimal texts."""
    return {
        "code": refusal.code,
        "measure": refusal.what.measure.value,
        "device_class": refusal.what.device_class,
        "capacity": refusal.what.capacity,
        "namespace": refusal.namespace,
        "asked": plain(refusal.asked),
        "left": None if refusal.left is None else plain(refusal.left),
        "limit": None if refusal.limit is None else plain(refusal.limit),
        "over": None if refusal.over is None else plain(refusal.over),
        "remedy": refusal.remedy,
    }


def plain(amount: Decimal) -> str:
    """An exact number without a tail of zeros: '8', '0.5'."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def owners_in_words(tenant: Tenant) -> str:
    """ "Owners here: Rosa Avocet." Whoever asks is a member and may know."""
    owners = Membership.objects.filter(tenant=tenant, role=Membership.Role.OWNER)
    names = [one.user.words for one in owners.select_related("user").order_by("pk")[:3]]
    return f"Owners here: {', '.join(names)}." if names else "This tenant has no owner."


def lock(*tenants: Tenant) -> dict[int, Tenant]:
    """The tenants' rows, locked in one order until the transaction ends, as they are now.

    Other rows may still refer to them meanwhile (FOR NO KEY UPDATE).
    """
    rows = Tenant.objects.select_for_update(no_key=True).filter(pk__in=[one.pk for one in tenants])
    return {row.pk: row for row in rows.order_by("pk")}


@dataclass(frozen=True, slots=True)
class Asked:
    """What one ask would take, and where."""

    amounts: Mapping[What, Decimal]
    namespace: str
    source: str


def take(
    asked: Asked,
    *,
    tenant: Tenant,
    outside: Iterable[Line],
    request_id: str,
    now: datetime,
    words: Words = str,
    grant: Grant | None = None,
) -> None:
    """Takes it from the tenant's limits or raises `OverLimit`; the caller holds `lock(tenant)`.

    `outside` are the lines that only the mirror of the cluster knows. With a grant, the devices of
    its class count against that as well.
    """
    refusals = may_take(
        asked.amounts,
        limits=limits_of(tenant),
        lines=(*sums_of(tenant), *outside),
        namespace=asked.namespace,
    )
    if refusals:
        raise OverLimit(refusals, tenant, words)
    write(asked, tenant=tenant, grant=grant, now=now)
    tell_cluster(tenant, request_id=request_id, now=now)


def write(asked: Asked, *, tenant: Tenant, grant: Grant | None, now: datetime) -> None:
    """Writes the lines of an ask; whether they fit was judged before."""
    BudgetLine.objects.bulk_create(
        BudgetLine(
            tenant=tenant,
            namespace=asked.namespace,
            measure=what.measure,
            device_class=what.device_class,
            capacity=what.capacity,
            amount=amount,
            source=asked.source,
            grant=grant if grant and what.device_class == grant.device_class else None,
            taken_at=now,
        )
        for what, amount in sorted(asked.amounts.items())
        if amount > 0
    )


def give_back(source: str, *, request_id: str, now: datetime) -> int:
    """What an ask took is free again, because the cluster has confirmed that nothing is left of it.

    Call it in the transaction that records so. Doing it twice is fine; returns how many lines.
    """
    mine = BudgetLine.objects.filter(source=source, given_back_at=None)
    payers = list(Tenant.objects.filter(pk__in=mine.values("tenant")))
    freed = mine.update(given_back_at=now)
    for tenant in payers:
        tell_cluster(tenant, request_id=request_id, now=now)
    return freed


def tell_pages(tenant: Tenant) -> None:
    """News for open pages about limits and grants, once the transaction is through."""
    slug = tenant.slug
    transaction.on_commit(lambda: news.publish(["limits"], tenant=slug), robust=True)


def tell_cluster(tenant: Tenant, *, request_id: str, now: datetime) -> None:
    """Quotas follow what is taken where several namespaces draw on one limit; else they stay."""
    unshared = Limit.objects.filter(tenant=tenant, shares=None).exclude(amount=None)
    if tenant.namespaces.count() > 1 and unshared.exists():
        promise_turn(tenant, request_id=request_id, now=now)
