"""What a tenant's limits are and what is taken from them, read from the database."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.db.models import F, Q, QuerySet, Sum

from tenants.limits import ZERO, Kind, Limits, Line, Measure, What, devices_of
from tenants.models import BudgetLine, Grant, Tenant
from tenants.models.limit import bounds


def limits_of(tenant: Tenant) -> Limits:
    """Every limit of a tenant with its shares: two queries."""
    return bounds(list(tenant.limits.prefetch_related("shares__namespace")))


def open_lines(tenant: Tenant) -> QuerySet[BudgetLine]:
    """What is taken from this tenant's limits and not yet given back."""
    return BudgetLine.objects.filter(tenant=tenant, given_back_at=None)


def lent(tenant: Tenant) -> QuerySet[Any]:
    """What this tenant lends against its own limits now, each with `used`, the devices in use."""
    return Grant.objects.filter(
        giver=tenant, state=Grant.State.ACCEPTED, pays=Grant.Pays.GIVER
    ).annotate(used=in_use())


def in_use() -> Sum:
    """For an annotation of grants: how many devices are in use by it (None: none)."""
    return Sum(
        "uses__amount",
        filter=Q(uses__given_back_at=None, uses__device_class=F("device_class"))
        & Q(uses__measure="devices"),
    )


def lines_of(tenant: Tenant) -> tuple[Line, ...]:
    """Every line that the database knows, the asks that still wait among them as requests.

    Two queries. Which asks wait for devices only floor 2 knows (`devices.spending`).
    """
    taken = [
        Line(
            Kind.GRANT if row.lends else Kind.REQUEST,
            row.what,
            row.amount,
            row.namespace,
            row.source,
        )
        for row in open_lines(tenant).annotate(lends=Q(grant__giver=tenant))
    ]
    return (*taken, *_not_used_yet(lent(tenant)))


def sums_of(tenant: Tenant) -> tuple[Line, ...]:
    """The same as `lines_of`, added up by measure and namespace."""
    rows = (
        open_lines(tenant)
        .annotate(lends=Q(grant__giver=tenant))
        .values("measure", "device_class", "capacity", "namespace", "lends")
        .annotate(total=Sum("amount"))
        .order_by()
    )
    taken = [
        Line(
            Kind.GRANT if row["lends"] else Kind.REQUEST,
            What(Measure(row["measure"]), row["device_class"], row["capacity"]),
            row["total"],
            row["namespace"],
            "",
        )
        for row in rows
    ]
    return (*taken, *_not_used_yet(lent(tenant)))


def _not_used_yet(grants: Iterable[Any]) -> list[Line]:
    """What is lent and not in use: it is kept free for the taker until the grant ends."""
    lines = []
    for grant in grants:
        rest = Decimal(grant.count) - (grant.used or ZERO)
        if rest > 0:
            what = devices_of(grant.device_class)
            lines.append(Line(Kind.GRANT, what, rest, grant.namespace, f"grant {grant.public_id}"))
    return lines
