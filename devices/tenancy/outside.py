"""What Berth did not make in a tenant's namespaces, as lines of its budget.

Somebody with kubectl may make claims within the namespace's quota; the cluster counts them there,
and the portal counts them here, from the mirror. Three kinds of things are outside: claims and
templates without Berth's label; claims with the label of an ask that holds nothing any more; and
Pods of an ask beyond the number that it is for, counted by the claims that they made from its
template, or by themselves where they ask by extended resource. What the scheduler makes for such
Pods is theirs.

The database adds up, so that twenty thousand claims made by hand cost a page no more than two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.db import connection

from devices.asks.consumers import ENDED
from devices.models import Claim
from devices.routing.routes import Path
from tenants.limits import CLAIMS, ZERO, Kind, Line, Measure, What, devices_of
from tenants.models import BudgetLine, Tenant

MIRROR_MAY_LAG = timedelta(minutes=1)
"""So long the mirror may still show claims of which the API server said that they are gone."""

_CLAIM, _TEMPLATE = "ResourceClaim", "ResourceClaimTemplate"

#: Asks of which the mirror shows more than is paid for, and how many; asks without a claim of their
#: own are counted by their Pods.
_UNPAID: Final = """
    WITH shown AS (
        SELECT claim FROM devices_observed
        WHERE kind = 'ResourceClaim' AND namespace = ANY(%(namespaces)s) AND claim <> ''
        UNION ALL
        SELECT pod.claim FROM devices_observed pod
        JOIN unnest(%(asks)s::varchar[], %(places)s::varchar[]) AS ask(public_id, namespace)
            ON ask.public_id = pod.claim AND ask.namespace = pod.namespace
        WHERE pod.kind = 'Pod' AND pod.phase <> ALL(%(ended)s)
    ), counted AS (SELECT claim, count(*) AS seen FROM shown GROUP BY claim)
    SELECT claim, seen FROM counted LEFT JOIN tenants_budgetline paid
        ON paid.source = claim AND paid.measure = 'claims' AND paid.given_back_at IS NULL
    WHERE paid.amount IS NULL OR seen > paid.amount
    ORDER BY claim
"""
#: What is without a label, or has that of an ask that pays for nothing; claims that the scheduler
#: made for a Pod of an ask are the Pod's. `{name}` is the object's, or nothing for sums.
_UNLABELLED: Final = """
    SELECT kind, namespace, {name}, classes, counts, count(*) FROM devices_observed
    WHERE kind IN ('ResourceClaim', 'ResourceClaimTemplate') AND namespace = ANY(%(namespaces)s)
    AND (
        claim = '' AND NOT EXISTS (
            SELECT FROM devices_observed pod
            WHERE devices_observed.owner_uid <> '' AND pod.uid = devices_observed.owner_uid
            AND pod.kind = 'Pod' AND pod.phase <> ALL(%(ended)s)
            AND devices_observed.name = ANY(pod.uses)
            AND (pod.claim, pod.namespace) IN (
                SELECT * FROM unnest(%(asks)s::varchar[], %(places)s::varchar[])
            )
        )
        OR kind = 'ResourceClaim' AND claim = ANY(%(strangers)s) AND NOT deleting
    )
    GROUP BY 1, 2, 3, 4, 5 ORDER BY 2, 3, 1, 4, 5
"""


def outside_sums(tenant: Tenant, now: datetime) -> tuple[Line, ...]:
    """What everything outside takes, added up: a few lines however many claims there are."""
    return _outside(tenant, now, "''")


def outside_lines(tenant: Tenant, now: datetime) -> tuple[Line, ...]:
    """The same with a line for each object: devices by class, and one claim; five queries at most.

    A template holds nothing until a Pod uses it: its lines are of 0, and say that it is there.
    """
    return _outside(tenant, now, "name")


def _outside(tenant: Tenant, now: datetime, name: str) -> tuple[Line, ...]:
    asks = dict(
        Claim.objects.of(tenant)
        .exclude(path=Path.CLAIM)
        .values_list("public_id", "namespace__name")
    )
    known = {
        "namespaces": list(tenant.namespaces.values_list("name", flat=True)),
        "asks": list(asks),
        "places": list(asks.values()),
        "ended": list(ENDED),
    }
    with connection.cursor() as cursor:
        cursor.execute(_UNPAID, known)
        counted: dict[str, int] = dict(cursor.fetchall())
    taken: dict[str, dict[What, BudgetLine]] = defaultdict(dict)
    lately = set()
    for row in BudgetLine.objects.filter(source__in=list(counted)) if counted else ():
        if row.given_back_at is None:
            taken[row.source][row.what] = row
        elif now - row.given_back_at < MIRROR_MAY_LAG:
            lately.add(row.source)
    strangers = [claim for claim in counted if claim not in taken and claim not in lately]
    with connection.cursor() as cursor:
        cursor.execute(_UNLABELLED.format(name=name), {**known, "strangers": strangers})
        lines = [line for found in cursor.fetchall() for line in _lines(*found)]
    for source, amounts in taken.items():
        lines += _beyond(source, counted[source], amounts)
    return tuple(lines)


def _lines(
    kind: str, namespace: str, name: str, classes: Sequence[str], counts: Sequence[int], times: int
) -> Iterable[Line]:
    source = f"{kind} {name}".strip()
    for device_class, count in zip(classes, counts, strict=True):
        amount = ZERO if kind == _TEMPLATE else Decimal(count * times)
        yield Line(Kind.OUTSIDE, devices_of(device_class), amount, namespace, source)
    if kind == _CLAIM:
        yield Line(Kind.OUTSIDE, CLAIMS, Decimal(times), namespace, source)


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
