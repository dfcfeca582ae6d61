"""Which nodes are alike for a request: everything that the search looks at, as a key.

Two nodes with equal keys get the same verdict, device for device by position; 5,000 nodes are
usually a few dozen keys. What is put together here are numbers of equal rows (`PerSlice`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from devices.dra.constraints import attribute_of
from devices.dra.counters import amounts_of
from devices.dra.nodes import Node
from devices.dra.requests import PerSlice, Want, Wish, answers, closed
from devices.dra.slices import Device, Slice
from devices.dra.snapshot import Snapshot
from devices.dra.usage import usage
from devices.dra.visibility import PoolView, reaches, view


def signatures(
    snapshot: Snapshot, names: Iterable[str], rows: Sequence[PerSlice[Any]]
) -> Iterator[tuple[str, Hashable]]:
    """The keys of nodes, from the rows that the search for some claims looks at (`rows_for`).

    They are kept: the next question that looks at the same rows, of whatever number of devices,
    finds them again.
    """
    kept: dict[str, Hashable] = snapshot.once(
        ("signatures", tuple(map(id, rows))), lambda s: _Kept(rows)
    )
    for name in names:
        key = kept.get(name)
        if key is None:
            key = kept[name] = _signature(snapshot, snapshot.node(name), rows)
        yield name, key


class _Kept(dict[str, Hashable]):
    """Keys by node; holds the rows, so that nobody else gets their place in memory."""

    def __init__(self, rows: Sequence[PerSlice[Any]]) -> None:
        super().__init__()
        self.rows = tuple(rows)


def _signature(snapshot: Snapshot, node: Node, rows: Sequence[PerSlice[Any]]) -> Hashable:
    names: dict[str, int] = {}
    key: list[Hashable] = []
    for pool in view(snapshot, node).pools:
        number = names.setdefault(pool.name, len(names))
        if not pool.usable:
            key.append((number, pool.incomplete))
            continue
        key.append((number, _counters(snapshot, pool)))
        for piece in pool.slices:
            key.append(tuple([row.number(piece) for row in rows]))
            if piece.reach.per_device:
                key.append(tuple(reaches(device.reach, node) for device in piece.devices))
            if piece.skipped_operations:
                key.append(node.declared_features)
        for piece in pool.others:
            key.append((_look(snapshot).number(piece), _usage(snapshot).number(piece)))
    return tuple(key)


def rows_for(
    snapshot: Snapshot, wishes: Sequence[Wish], wants: Sequence[Sequence[Sequence[Want]]]
) -> Sequence[PerSlice[Any]]:
    """Every row of values that the search for these claims looks at."""
    rows: dict[Hashable, PerSlice[Any]] = {"look": _look(snapshot), "usage": _usage(snapshot)}
    for wish, requests in zip(wishes, wants, strict=True):
        for alternatives in requests:
            for want in alternatives:
                rows["answers", want.key] = answers(snapshot, want)
                rows["closed", want.ask.tolerations] = closed(snapshot, want.ask.tolerations)
                if want.ask.capacity is not None:
                    rows["capacity"] = _capacity(snapshot)
                if want.ask.derived:
                    rows["identity"] = _identity(snapshot)
        for constraint in wish.spec.constraints:
            name = constraint.match or constraint.distinct
            rows["attribute", name] = _attribute(snapshot, name)
    return tuple(rows.values())


def _look(snapshot: Snapshot) -> PerSlice[Hashable]:
    """What the search reads of a device beside selectors, taints and attributes."""

    def look(device: Device) -> Hashable:
        if not (device.consumes or device.shareable or device.binding_conditions):
            return 0
        return (
            tuple(sorted(amounts_of(device.consumes).items())),
            tuple(use.groups for use in device.consumes),
            device.shareable,
            device.shareable and tuple(sorted(device.capacity.items(), key=_first)),
            bool(device.binding_conditions),
        )

    return _per_device(snapshot, "look", look, plain=0)


def _capacity(snapshot: Snapshot) -> PerSlice[Hashable]:
    return _per_device(
        snapshot, "capacity", lambda device: tuple(sorted(device.capacity.items(), key=_first))
    )


def _identity(snapshot: Snapshot) -> PerSlice[Hashable]:
    """Devices that are never alike, for requests that compute with all of a device."""
    return _per_device(snapshot, "identity", id)


def _attribute(snapshot: Snapshot, name: str) -> PerSlice[Hashable]:
    def row(piece: Slice) -> tuple[Hashable, ...]:
        return tuple(attribute_of(d.attributes, name, piece.driver) for d in piece.devices)

    return snapshot.once(("attribute", name), lambda s: PerSlice(row))


def _usage(snapshot: Snapshot) -> PerSlice[Hashable]:
    return snapshot.once("usage rows", _usage_rows)


def _usage_rows(snapshot: Snapshot) -> PerSlice[Hashable]:
    used = usage(snapshot)
    busy = {key[:2] for taken in (used.whole, used.shared, used.consumed) for key in taken}

    def one(piece: Slice, device: Device) -> Hashable:
        key = (piece.driver, piece.pool, device.name)
        if key in used.whole:
            return 1
        if key in used.shared or key in used.consumed:
            taken = used.consumed.get(key)
            return None if taken is None else tuple(sorted(taken.items(), key=_first))
        return 0

    def row(piece: Slice) -> tuple[Hashable, ...]:
        if (piece.driver, piece.pool) not in busy:
            return (0,) * len(piece.devices)
        return tuple(one(piece, device) for device in piece.devices)

    return PerSlice(row)


def _counters(snapshot: Snapshot, pool: PoolView) -> Hashable:
    if not pool.counters:
        return 0
    known: dict[Hashable, int] = snapshot.once("counter numbers", lambda s: {})
    content = tuple(
        (name, tuple(sorted(found.counters.items(), key=_first)))
        for name, found in sorted(pool.counters.items())
    )
    return known.setdefault(content, len(known) + 1)


def _per_device(
    snapshot: Snapshot, name: str, look: Any, plain: Hashable = None
) -> PerSlice[Hashable]:
    """A row of what a function sees; ``plain`` is what it sees of every device of a plain slice."""

    def row(piece: Slice) -> tuple[Hashable, ...]:
        if piece.plain and plain is not None:
            return (plain,) * len(piece.devices)
        return tuple([look(device) for device in piece.devices])

    return snapshot.once(("row", name), lambda s: PerSlice(row))


def _first(pair: tuple[str, object]) -> str:
    return pair[0]
