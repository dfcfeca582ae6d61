"""Sums over the log for pages and API, made by the database of what stands at a moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from django.db.models import Count, Q, Sum

from devices.dra.charges import Rule
from devices.dra.ledgerentries import Entry
from devices.dra.quantity import NANO, Format, Quantity
from devices.models import LedgerLine
from devices.models.ledger import LedgerLines

GIB: Final = 2**30
STREAMS: Final = ("requests", "mapping", "overhead")
_PLACES: Final = {Rule.MAPPING: 2, Rule.OVERHEAD: 3}
_COUNTED = Q(contained=False)
_DEVICES = Q(rule__in=[Rule.MAPPING.value, Rule.OVERHEAD.value])


@dataclass(frozen=True, slots=True)
class Figure:
    """One resource of one node, in billionths; None: a line without an amount stands there.

    ``offered`` is None where the node offers none of it, or did not say. ``budgeted`` is what
    devices cost inside Pods' budgets: part of ``requests``.
    """

    node: str
    resource: str
    offered: int | None
    requests: int | None
    mapping: int | None
    overhead: int | None
    budgeted: int = 0
    lines: int = 0
    odd: int = 0

    @property
    def charged(self) -> int | None:
        parts = (self.requests, self.mapping, self.overhead)
        return None if None in parts else sum(part or 0 for part in parts)

    @property
    def left(self) -> int | None:
        """Negative where more is charged than there is; never clamped."""
        charged = self.charged
        return None if charged is None or self.offered is None else self.offered - charged

    @property
    def share(self) -> Fraction | None:
        """Charged of offered."""
        if self.charged is None or not self.offered:
            return None
        return Fraction(self.charged, self.offered)

    @property
    def unit(self) -> str:
        return unit_of(self.resource)

    @property
    def bar(self) -> Mapping[str, int | None]:
        """Parts for a bar, in thousandths of the unit."""
        left = self.left
        parts: dict[str, int | None] = {
            "requests": _milli(self.requests, self.resource),
            "mapping": _milli(self.mapping, self.resource),
            "overhead": _milli(self.overhead, self.resource),
        }
        if left is not None and left > 0:
            parts["free"] = _milli(left, self.resource)
        return parts

    @property
    def bar_total(self) -> int | None:
        most = None if self.offered is None else max(self.offered, self.charged or 0)
        return _milli(most, self.resource)


@dataclass(frozen=True, slots=True)
class Zone:
    """What devices of one NUMA zone (None: they do not say one; or no device) are charged."""

    numa: int | None
    amounts: Mapping[str, int | None] = field(default_factory=dict)
    devices: tuple[str, ...] = ()


def unit_of(resource: str) -> str:
    """CPU, Gi, or nothing for what is counted in pieces."""
    if resource == "cpu":
        return "CPU"
    bytes_of = ("memory", "ephemeral-storage")
    return "Gi" if resource in bytes_of or resource.startswith("hugepages-") else ""


def in_unit(nanos: int | None, resource: str) -> Decimal | None:
    """Billionths in the resource's unit, to three places (what is exact is in `exact`)."""
    if nanos is None:
        return None
    value = Fraction(nanos, NANO * (GIB if unit_of(resource) == "Gi" else 1))
    return Decimal(round(value * 1000)) / 1000


def exact(nanos: int | None, resource: str) -> str:
    """Billionths as a quantity that loses nothing; empty for unknown."""
    if nanos is None:
        return ""
    form = Format.BINARY if unit_of(resource) == "Gi" else Format.DECIMAL
    return str(Quantity(nanos, form))


def figures(rows: LedgerLines) -> list[Figure]:
    """By node and resource, from charges that stand; one query."""
    found = (
        rows.order_by()
        .values("node", "resource")
        .annotate(
            offered=Sum("nanos", filter=Q(rule=Rule.ALLOCATABLE.value)),
            own=Sum("nanos", filter=_COUNTED & ~_DEVICES),
            mapping=Sum("nanos", filter=_COUNTED & Q(rule=Rule.MAPPING.value)),
            overhead=Sum("nanos", filter=_COUNTED & Q(rule=Rule.OVERHEAD.value)),
            inside=Sum("nanos", filter=Q(contained=True) & _DEVICES),
            own_unknown=Count("pk", filter=_COUNTED & ~_DEVICES & Q(nanos=None)),
            map_unknown=Count("pk", filter=Q(rule=Rule.MAPPING.value, nanos=None)),
            over_unknown=Count("pk", filter=Q(rule=Rule.OVERHEAD.value, nanos=None)),
            odd=Count("pk", filter=~Q(code="")),
            number=Count("pk", filter=~Q(rule=Rule.ALLOCATABLE.value)),
        )
    )
    return [
        Figure(
            row["node"],
            row["resource"],
            None if row["offered"] is None else int(row["offered"]),
            _amount(row["own"], row["own_unknown"]),
            _amount(row["mapping"], row["map_unknown"]),
            _amount(row["overhead"], row["over_unknown"]),
            int(row["inside"] or 0),
            row["number"],
            row["odd"],
        )
        for row in found
    ]


def counted(entries: Iterable[Entry]) -> dict[str, dict[str, list[int | None]]]:
    """The same figures by node and resource, from entries in memory, as `LedgerNode` keeps them."""
    found: dict[str, dict[str, list[int | None]]] = defaultdict(dict)
    for entry in entries:
        row = found[entry.node].setdefault(entry.resource, [None, 0, 0, 0, 0])
        nanos = None if entry.amount is None else entry.amount.nanos
        if entry.code:
            row[4] = (row[4] or 0) + 1
        if entry.rule is Rule.ALLOCATABLE:
            row[0] = nanos
        elif not entry.contained:
            place = _PLACES.get(entry.rule, 1)
            before = row[place]
            row[place] = None if nanos is None or before is None else before + nanos
    return found


def kept(node: str, rows: Mapping[str, Sequence[int | None]]) -> list[Figure]:
    """Figures of a node as `LedgerNode` keeps them."""
    return [
        Figure(node, resource, row[0], row[1], row[2], row[3], odd=row[4] or 0)
        for resource, row in rows.items()
    ]


def totals(
    rows: Iterable[Mapping[str, Sequence[int | None]]],
) -> list[tuple[str, float, dict[str, float]]]:
    """Of each resource that devices may cost: what all nodes offer, and what is charged by stream,
    in cores or bytes. A node of which an amount is unknown is left out of that amount.
    """
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for figures_ in rows:
        for resource, row in figures_.items():
            if unit_of(resource):
                sums = found[resource]
                for place in range(4):
                    sums[place] += row[place] or 0
    return [
        (
            resource,
            sums[0] / NANO,
            {word: nanos / NANO for word, nanos in zip(STREAMS, sums[1:], strict=True)},
        )
        for resource, sums in sorted(found.items())
    ]


def by_importance(found: Iterable[Figure]) -> list[Figure]:
    """CPU, memory, huge pages, storage, then the rest by name; what is nothing at all is left
    out.
    """
    return sorted(
        (one for one in found if one.offered or one.charged or one.charged is None),
        key=lambda one: (_place(one.resource), one.resource),
    )


def zones(node: str, at: datetime | None = None) -> list[Zone]:
    """What is charged by NUMA zone, devices named; those that say no zone, and Pods, come last."""
    rows = (
        LedgerLine.objects.charges(at)
        .filter(node=node, contained=False)
        .exclude(rule=Rule.ALLOCATABLE.value)
        .order_by()
        .values_list("numa", "resource", "device")
        .annotate(total=Sum("nanos"), unknown=Count("pk", filter=Q(nanos=None)))
    )
    amounts: dict[int | None, dict[str, int | None]] = defaultdict(dict)
    devices: dict[int | None, set[str]] = defaultdict(set)
    for numa, resource, device, total, unknown in rows:
        before = amounts[numa].get(resource, 0)
        amounts[numa][resource] = None if unknown or before is None else before + int(total or 0)
        if device:
            devices[numa].add(device)
    return [
        Zone(numa, dict(sorted(amounts[numa].items())), tuple(sorted(devices[numa])))
        for numa in sorted(amounts, key=lambda numa: (numa is None, numa))
    ]


def steps(
    node: str, resource: str, since: datetime, until: datetime
) -> tuple[int, list[tuple[datetime, int]]]:
    """What was charged at first, and after each change since; two queries.

    What nobody knew is left out: a chart shows what could be added up.
    """
    rows = LedgerLine.objects.filter(node=node, resource=resource, contained=False)
    opening = (
        LedgerLine.objects.charges(since)
        .filter(node=node, resource=resource, contained=False)
        .aggregate(total=Sum("nanos"))["total"]
    )
    changes: dict[datetime, int] = defaultdict(int)
    lines = (
        rows.filter(at__gt=since, at__lte=until)
        .exclude(act__in=["doubled", "older"])
        .values_list("at", "act", "nanos", "ends__nanos", "ends__node", "ends__contained")
    )
    for at, act, nanos, before, other, inside in lines:
        if act == "charge":
            changes[at] += int(nanos or 0)
        if before is not None and other == node and not inside:
            changes[at] -= int(before)
    now, found = int(opening or 0), []
    first = now
    for at in sorted(changes):
        now += changes[at]
        found.append((at, now))
    return first, found


def _amount(total: Any, unknown: int) -> int | None:
    return None if unknown else int(total or 0)


def _milli(nanos: int | None, resource: str) -> int | None:
    value = in_unit(nanos, resource)
    return None if value is None else int(value * 1000)


def _place(resource: str) -> int:
    if resource.startswith("hugepages-"):
        return 1
    return {"cpu": 0, "memory": 0, "ephemeral-storage": 2}.get(resource, 3)


def shown_first(resources: Sequence[str]) -> list[str]:
    """Resources for a choice: those that devices may cost first."""
    return sorted(resources, key=lambda name: (_place(name), name))
