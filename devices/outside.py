"""What Berth did not make in a tenant's namespaces, as lines of its budget.

Somebody with kubectl may make claims within the namespace's quota; the cluster counts them there,
and the portal counts them here, from the mirror. Three kinds of things are outside: claims and
templates without Berth's label; claims with the label of an ask that holds nothing any more; and
claims that Pods made from an ask's template beyond the number of Pods that it is for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, QuerySet

from devices.dra.claims import read_claim_spec
from devices.dra.quota import devices_asked
from devices.models import Observed
from tenants.limits import CLAIMS, ZERO, Kind, Line, Measure, What, devices_of
from tenants.models import BudgetLine, Tenant

MIRROR_MAY_LAG = timedelta(minutes=1)
"""So long the mirror may still show claims of which the API server said that they are gone."""


def outside_lines(tenant: Tenant, now: datetime) -> tuple[Line, ...]:
    """Lines for everything outside: devices by class, and one claim each; four queries.

    A template holds nothing until a Pod uses it: its lines are of 0, and say that it is there.
    """
    there = _seen(tenant)
    counted = Counter(
        dict(
            there.filter(kind="ResourceClaim")
            .exclude(claim="")
            .values_list("claim")
            .annotate(Count("uid"))
            .order_by()
        )
    )
    taken: dict[str, dict[What, BudgetLine]] = defaultdict(dict)
    lately = set()
    for row in BudgetLine.objects.filter(source__in=list(counted)):
        if row.given_back_at is None:
            taken[row.source][row.what] = row
        elif now - row.given_back_at < MIRROR_MAY_LAG:
            lately.add(row.source)
    strangers = [name for name in counted if name not in taken and name not in lately]
    lines = [line for seen in there.filter(claim="") for line in _lines(seen)]
    if strangers:
        for seen in there.filter(kind="ResourceClaim", claim__in=strangers, deleting=False):
            lines += _lines(seen)
    for source, amounts in taken.items():
        lines += _beyond(source, counted[source], amounts)
    return tuple(lines)


def _seen(tenant: Tenant) -> QuerySet[Observed]:
    return Observed.objects.filter(
        kind__in=["ResourceClaim", "ResourceClaimTemplate"],
        namespace__in=list(tenant.namespaces.values_list("name", flat=True)),
    ).order_by("namespace", "name")


def _lines(row: Observed) -> Iterable[Line]:
    spec = row.obj.get("spec") or {}
    template = row.kind == "ResourceClaimTemplate"
    read = read_claim_spec(spec.get("spec") if template else spec, "spec", [])
    source = f"{row.kind} {row.name}"
    for device_class, count in devices_asked(read).items():
        amount = ZERO if template else Decimal(count)
        yield Line(Kind.OUTSIDE, devices_of(device_class), amount, row.namespace, source)
    if not template:
        yield Line(Kind.OUTSIDE, CLAIMS, Decimal(1), row.namespace, source)


def _beyond(source: str, seen: int, amounts: dict[What, BudgetLine]) -> list[Line]:
    """What more Pods than an ask is for have made from its template."""
    paid = amounts.get(CLAIMS)
    if paid is None or seen <= paid.amount:
        return []
    more = Decimal(seen) - paid.amount
    return [
        Line(
            Kind.OUTSIDE,
            what,
            row.amount / paid.amount * more,
            row.namespace,
            f"more Pods than {source} is for",
        )
        for what, row in amounts.items()
        if what.measure is not Measure.CAPACITY
    ]
