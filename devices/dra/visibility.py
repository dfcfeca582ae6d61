"""Which pools and devices one node can use, in the order in which the scheduler tries them.

Decides nothing about a request. Source: ``GatherPools`` of the allocator; the releases differ in
what they make of slices with shared counters: through 1.36 those of every node are looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from devices.dra.claims import DeviceKey
from devices.dra.nodes import Node
from devices.dra.pools import PoolKey, counter_sets, why_invalid
from devices.dra.slices import CounterSet, Device, Reach, Slice
from devices.dra.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class PoolView:
    """What one node sees of a pool.

    ``slices`` hold devices for this node, by name; ``others`` are the pool's slices for other
    nodes, which matter for shared counters only. Nothing is given from a pool that is incomplete
    or invalid (``invalid`` says why), and then it has no slices here.
    """

    driver: str
    name: str
    slices: tuple[Slice, ...] = ()
    others: tuple[Slice, ...] = ()
    counters: Mapping[str, CounterSet] | None = None
    incomplete: bool = False
    invalid: str = ""

    @property
    def key(self) -> PoolKey:
        """Driver and name."""
        return (self.driver, self.name)

    @property
    def usable(self) -> bool:
        """Whether devices can be given from it."""
        return not self.incomplete and not self.invalid

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


@dataclass(frozen=True, slots=True)
class Place:
    """One device where the scheduler meets it: pool, slice and position in the slice."""

    pool: PoolView
    piece: Slice
    position: int

    @property
    def device(self) -> Device:
        """The device itself."""
        return self.piece.devices[self.position]

    @property
    def key(self) -> DeviceKey:
        """Driver, pool and device name."""
        return (self.pool.driver, self.pool.name, self.device.name)

    def __str__(self) -> str:
        return "/".join(self.key)


@dataclass(frozen=True, eq=False)
class View:
    """All that one node can use: its pools in search order, and the devices of the usable ones."""

    pools: tuple[PoolView, ...]

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Every device in the scheduler's order; few views are ever searched."""
        return tuple(
            Place(pool, piece, position)
            for pool in self.pools
            for piece in pool.slices
            for position in range(len(piece.devices))
        )


def view(snapshot: Snapshot, node: Node) -> View:
    """What a node sees, once per snapshot and node."""
    return snapshot.once(("view", node.name), lambda s: _view(s, node))


def reaches(reach: Reach, node: Node) -> bool:
    """Whether something with this reach can be used from the node (upstream's ``NodeMatches``)."""
    if reach.node_name:
        return reach.node_name == node.name
    if reach.all_nodes:
        return True
    return reach.selector is not None and reach.selector.matches(node)


@dataclass(frozen=True, slots=True)
class _Shelf:
    """Slices by where they are looked for; those of compatibility groups are left out."""

    local: Mapping[str, Sequence[Slice]]
    shared: Sequence[Slice]
    by_pool: Mapping[PoolKey, Sequence[Slice]]


def _shelf(snapshot: Snapshot) -> _Shelf:
    groups = "DRADeviceCompatibilityGroups" in snapshot.gates
    counters_anywhere = not snapshot.gates.at_least("1.37")
    local: dict[str, list[Slice]] = defaultdict(list)
    shared: list[Slice] = []
    by_pool: dict[PoolKey, list[Slice]] = defaultdict(list)
    for piece in snapshot.slices:
        by_pool[piece.driver, piece.pool].append(piece)
        if not groups and _uses_groups(piece):
            continue
        if piece.reach.node_name and not (counters_anywhere and piece.counters):
            local[piece.reach.node_name].append(piece)
        else:
            shared.append(piece)
    return _Shelf(local, shared, by_pool)


def _uses_groups(piece: Slice) -> bool:
    if piece.plain:
        return False
    return any(use.groups for device in piece.devices for use in device.consumes)


def _view(snapshot: Snapshot, node: Node) -> View:
    shelf = snapshot.once("shelf", _shelf)
    found: dict[PoolKey, list[Slice]] = {}
    for piece in (*shelf.local.get(node.name, ()), *shelf.shared):
        if _relevant(snapshot, piece, node):
            _add(found, piece)
    pools = []
    for key, pieces in found.items():
        pool = _pool_view(snapshot, shelf, key, pieces)
        if pool is not None:
            pools.append(pool)
    pools.sort(key=lambda pool: (_binds(pool), pool.driver, pool.name))
    return View(tuple(pools))


def _relevant(snapshot: Snapshot, piece: Slice, node: Node) -> bool:
    partitions = "DRAPartitionableDevices" in snapshot.gates
    if not partitions and (piece.reach.per_device or piece.counters):
        return False
    if piece.counters and not snapshot.gates.at_least("1.37"):
        return True
    if piece.reach.per_device:
        return any(reaches(device.reach, node) for device in piece.devices)
    return reaches(piece.reach, node)


def _add(found: dict[PoolKey, list[Slice]], piece: Slice) -> None:
    """Keeps the newest generation among the slices that this node sees."""
    pieces = found.setdefault((piece.driver, piece.pool), [piece])
    if piece.generation > pieces[0].generation:
        found[piece.driver, piece.pool] = [piece]
    elif piece.generation == pieces[0].generation and pieces[-1] is not piece:
        pieces.append(piece)


def _pool_view(
    snapshot: Snapshot, shelf: _Shelf, key: PoolKey, pieces: list[Slice]
) -> PoolView | None:
    """The pool, or None where a newer generation exists that this node cannot see."""
    all_pieces: Sequence[Slice] | None = None
    if len(pieces) != pieces[0].slice_count:
        generation = pieces[0].generation
        everything = shelf.by_pool[key]
        if any(piece.generation > generation for piece in everything):
            return None
        groups = "DRADeviceCompatibilityGroups" in snapshot.gates
        all_pieces = [
            piece
            for piece in everything
            if piece.generation == generation and (groups or not _uses_groups(piece))
        ]
        if len(all_pieces) != pieces[0].slice_count:
            return PoolView(*key, incomplete=True)
    return _built(snapshot, key, sorted(pieces, key=lambda piece: piece.name), all_pieces)


def _built(
    snapshot: Snapshot, key: PoolKey, pieces: list[Slice], everything: Sequence[Slice] | None
) -> PoolView:
    partitions = "DRAPartitionableDevices" in snapshot.gates
    plain = [piece for piece in pieces if not (partitions and piece.counters)]
    if not partitions:
        return PoolView(*key, tuple(plain), invalid=why_invalid(plain, (), ignore_counters=True))
    seen = {piece.name for piece in pieces}
    rest = [piece for piece in everything or () if piece.name not in seen]
    counting = [piece for piece in (*pieces, *rest) if piece.counters]
    others = [piece for piece in rest if not piece.counters]
    invalid = why_invalid(plain, counting, others)
    if invalid:
        return PoolView(*key, invalid=invalid)
    return PoolView(*key, tuple(plain), tuple(others), counter_sets(counting))


def _binds(pool: PoolView) -> bool:
    """Pools with a device that has binding conditions are tried last."""
    return any(
        device.binding_conditions
        for piece in pool.slices
        if not piece.plain
        for device in piece.devices
    )
