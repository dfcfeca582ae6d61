"""What a tenant's limits are and what is taken from them, read from the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from django.db.models import F, Q, QuerySet, Sum, Value

from tenants.limits import ZERO, Kind, Limits, Line, Measure, What, devices_of
from tenants.models import BudgetLine, Grant, Tenant
from tenants.models.limit import bounds


def limits_of(tenant: Tenant) -> Limits:
    """Every limit of a tenant with its shares: two queries."""
    return bounds(list(tenant.limits.prefetch_related("shares__namespace")))


def open_lines(tenant: Tenant) -> QuerySet[BudgetLine]:
    """What is taken from this tenant's limits and not yet given back."""
    return BudgetLine.objects.filter(tenant=tenant, given_back_at=None)


def lent(tenant: Tenant) -> QuerySet[Grant]:
    """What this tenant lends against its own limits now."""
    return Grant.objects.filter(
        giver=tenant, state=Grant.State.ACCEPTED, pays=Grant.Pays.GIVER
    ).order_by("pk")


def used_of(grants: Iterable[int]) -> dict[int, Decimal]:
    """By grant (primary keys), how many devices are in use by it; none in use is absent."""
    rows = (
        BudgetLine.objects.filter(
            grant__in=list(grants),
            given_back_at=None,
            measure=Measure.DEVICES.value,
            device_class=F("grant__device_class"),
        )
        .values_list("grant")
        .annotate(Sum("amount"))
        .order_by()
    )
    return dict(rows)


def lines_of(tenant: Tenant) -> tuple[Line, ...]:
    """Every line that the database knows, the asks that still wait among them as requests.

    Two queries. Which asks wait for devices only floor 2 knows (`devices.tenancy.spending`).
    """
    rows = list(open_lines(tenant).annotate(lends=Q(grant__giver=tenant)))
    used: dict[int | None, Decimal] = {}
    for row in rows:
        if row.measure == Measure.DEVICES.value:
            used[row.grant_id] = used.get(row.grant_id, ZERO) + row.amount
    taken = [
        Line(
            Kind.GRANT if row.lends else Kind.REQUEST,
            row.what,
            row.amount,
            row.namespace,
            row.source,
        )
        for row in rows
    ]
    return (*taken, *_not_used_yet(lent(tenant), used))


def sums_of(tenant: Tenant, *, waiting: QuerySet[Any] | None = None) -> tuple[Line, ...]:
    """The same as `lines_of`, added up by measure, namespace and grant; two queries.

    `waiting` finds the sources of asks that still wait for devices: their part is held.
    """
    rows = list(
        open_lines(tenant)
        .annotate(
            lends=Q(grant__giver=tenant),
            waits=Q(source__in=waiting) if waiting is not None else Value(False),
        )
        .values("measure", "device_class", "capacity", "namespace", "grant", "lends", "waits")
        .annotate(total=Sum("amount"))
        .order_by()
    )
    used: dict[int | None, Decimal] = {}
    for row in rows:
        if row["measure"] == Measure.DEVICES.value:
            used[row["grant"]] = used.get(row["grant"], ZERO) + row["total"]
    taken = [
        Line(
            Kind.GRANT if row["lends"] else Kind.HOLD if row["waits"] else Kind.REQUEST,
            What(Measure(row["measure"]), row["device_class"], row["capacity"]),
            row["total"],
            row["namespace"],
            "",
        )
        for row in rows
    ]
    return (*taken, *_not_used_yet(lent(tenant), used))


def _not_used_yet(grants: Iterable[Grant], used: Mapping[int | None, Decimal]) -> list[Line]:
    """What is lent and not in use: it is kept free for the taker until the grant ends.

    `used` comes from the same rows as the lines, so that a use that is written meanwhile is either
    in both or in neither, and the two always add up to what was lent.
    """
    lines = []
    for grant in grants:
        rest = Decimal(grant.count) - used.get(grant.pk, ZERO)
        if rest > 0:
            what = devices_of(grant.device_class)
            lines.append(Line(Kind.GRANT, what, rest, grant.namespace, f"grant {grant.public_id}"))
    return lines
