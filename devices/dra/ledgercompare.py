"""Three ways to the same numbers: the folded log, the objects of now, and the Pods' status.

Compared per Pod and claim, per NUMA zone and per node, by value whatever the unit. What differs
is named with the lines on both sides. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from devices.dra.charges import Rule, told_amounts
from devices.dra.ledgerentries import NO_SLICE, OF_DEVICES, Entry, Pair, Seen
from devices.dra.quantity import ZERO, Quantity
from devices.dra.slices import UNKNOWN


class Verdict(StrEnum):
    """What a difference means."""

    DIVERGES = "diverges"
    LATER = "later"
    """The slice changed after the Pod was bound: the version at binding counts; a notice."""
    UNKNOWN = "unknown"
    """A side cannot be told, so nobody can say whether they agree."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One amount on which the three do not agree; None where a side cannot be told.

    ``keys`` are those of the log's lines; ``entries`` what is computed from the objects of now.
    """

    node: str
    resource: str
    pod: str
    claim: str
    verdict: Verdict
    code: str
    log: Quantity | None
    objects: Quantity | None
    status: Quantity | None
    keys: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()

    @property
    def key(self) -> str:
        """The same for the same difference, whenever it is found."""
        return "/".join((self.node, self.resource, self.pod, self.claim))


@dataclass(frozen=True, slots=True)
class Balance:
    """One resource of one node, three times."""

    node: str
    resource: str
    log: Quantity | None
    objects: Quantity | None
    status: Quantity | None

    @property
    def equal(self) -> bool:
        return self.log is not None and self.log == self.objects == self.status


_Place = tuple[str, str]
_Amounts = dict[_Place, Quantity | None]


def compare(standing: Mapping[str, Entry], seen: Seen) -> tuple[Difference, ...]:
    """Every Pod, claim and resource on which the log, the objects and the Pods' status differ.

    What Pods ask for themselves is written nowhere a second time: of it two sides are compared.
    """
    logged, shown = _groups(standing.values()), _groups(seen.entries)
    names = {entry.pair: entry for entry in (*standing.values(), *seen.entries) if entry.pod_uid}
    found = []
    for pair in sorted({*logged, *shown}):
        resources = {*logged.get(pair, {}), *shown.get(pair, {}), *(_told(pair, seen) or {})}
        for resource in sorted(resources):
            ours = logged.get(pair, {}).get(resource, ())
            now = shown.get(pair, {}).get(resource, ())
            difference = _difference(names[pair], resource, ours, now, seen)
            if difference is not None:
                found.append(difference)
    for entry in seen.doubled:
        found.append(_doubled(entry, seen))
    return tuple(found)


def balances(standing: Mapping[str, Entry], seen: Seen) -> Iterator[Balance]:
    """Every node and resource three times; zones add up to it (`ledgerlog.zone_sums`)."""
    log, objects = _nodes(standing.values()), _nodes(seen.entries)
    status = _by_status(seen)
    for node, resource in sorted({*log, *objects, *status}):
        place = (node, resource)
        yield Balance(
            node, resource, log.get(place, ZERO), objects.get(place, ZERO),
            status.get(place, ZERO),
        )  # fmt: skip


def _difference(
    who: Entry, resource: str, ours: Sequence[Entry], now: Sequence[Entry], seen: Seen
) -> Difference | None:
    log, objects = _total(ours), _total(now)
    told = _told(who.pair, seen)
    status = objects if not who.claim else None if told is None else told.get(resource, ZERO)
    if log is not None and log == objects == status:
        return None
    odd = next((entry.code for entry in (*now, *ours) if entry.code), "")
    if status is None or log is None:
        verdict, odd = Verdict.UNKNOWN, odd or "LEDGER_UNKNOWN_SHAPE"
    elif log != status:
        verdict = Verdict.DIVERGES
        if _forgotten(who.pair, ours, now, seen):
            odd = "LEDGER_SHAPE_LOST"
    elif who.pair in seen.missing:
        return None  # a device that is not published now: the version at binding counts
    elif not now or max(e.version for e in now) > max((e.version for e in ours), default=NO_SLICE):
        verdict, odd = Verdict.LATER, "LEDGER_CHANGED_LATER"
    else:
        verdict = Verdict.DIVERGES if objects is not None else Verdict.UNKNOWN
    return Difference(
        who.node, resource, who.pod, who.claim, verdict, odd or "LEDGER_POD_STATUS_DIFFERS",
        log, objects, status, tuple(entry.key for entry in ours), tuple(now),
    )  # fmt: skip


def _forgotten(pair: Pair, ours: Sequence[Entry], now: Sequence[Entry], seen: Seen) -> bool:
    """Whether neither the slices of now nor the Pod's status say what the log was told: an API
    server of another release knows the older fields no more, or not yet, and drops them.
    """
    known = any(entry.rule in OF_DEVICES and entry.device for entry in ours)
    charge = seen.told.get(pair)
    told = charge is not None and any(told_amounts(charge).values())
    return known and not now and not told and pair in seen.held and pair not in seen.missing


def _doubled(entry: Entry, seen: Seen) -> Difference:
    charge = seen.told.get(entry.pair)
    told = told_amounts(charge) if charge is not None else {}
    return Difference(
        entry.node, entry.resource, entry.pod, entry.claim, Verdict.DIVERGES, entry.code,
        ZERO, ZERO, told.get((entry.rule, entry.resource), ZERO), (entry.key,), (entry,),
    )  # fmt: skip


def _groups(entries: Iterable[Entry]) -> Mapping[Pair, Mapping[str, list[Entry]]]:
    """By Pod and claim (none for what the Pod asks for itself), by resource."""
    found: dict[Pair, dict[str, list[Entry]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        if entry.rule is not Rule.ALLOCATABLE:
            found[entry.pair][entry.resource].append(entry)
    return found


def _told(pair: Pair, seen: Seen) -> Mapping[str, Quantity] | None:
    """What the Pod's status says of a claim by resource; None where its shape is unknown, and
    nothing where it says nothing.
    """
    charge = seen.told.get(pair)
    if charge is None:
        return {}
    if charge.shape == UNKNOWN:
        return None
    found: dict[str, Quantity] = {}
    for (_, resource), amount in told_amounts(charge).items():
        found[resource] = found.get(resource, ZERO) + amount
    return found


def _total(entries: Iterable[Entry]) -> Quantity | None:
    total = ZERO
    for entry in entries:
        if entry.amount is None:
            return None
        total = total + entry.amount
    return total


def _nodes(entries: Iterable[Entry]) -> _Amounts:
    found: _Amounts = {}
    for entry in entries:
        if not entry.contained:
            _add(found, (entry.node, entry.resource), entry.amount)
    return found


def _by_status(seen: Seen) -> _Amounts:
    """Node sums as the scheduler makes them: what Pods ask for, and what was written for claims."""
    found: _Amounts = {}
    budgets: dict[str, set[str]] = defaultdict(set)
    nodes: dict[str, str] = {}
    for entry in (*seen.entries, *seen.doubled):
        if entry.pod_uid:
            nodes[entry.pod_uid] = entry.node
        if entry.rule in OF_DEVICES or entry.rule is Rule.ALLOCATABLE:
            continue
        if entry.rule is Rule.BUDGET:
            budgets[entry.pod_uid].add(entry.resource)
        if not entry.contained:
            _add(found, (entry.node, entry.resource), entry.amount)
    for (pod_uid, _), charge in seen.told.items():
        if pod_uid not in nodes:
            continue
        if charge.shape == UNKNOWN:
            _add(found, (nodes[pod_uid], UNKNOWN), None)
            continue
        for (_, resource), amount in told_amounts(charge).items():
            if resource not in budgets[pod_uid]:
                _add(found, (nodes[pod_uid], resource), amount)
    return found


def _add(sums: _Amounts, place: _Place, amount: Quantity | None) -> None:
    before = sums.get(place, ZERO)
    sums[place] = None if amount is None or before is None else before + amount
