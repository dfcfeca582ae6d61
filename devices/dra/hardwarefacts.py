"""What pages say of one pool, one node, one device: validity, standing, taints, in words. Pure.

Every question is about one thing, or about the few dozen that a page shows; nothing here walks over
the whole cluster but `nodes_of_class`, whose parts are kept with the snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import compress

from devices.dra.claims import Claim, DeviceKey
from devices.dra.describe import Trait, title, traits
from devices.dra.hardwarewords import nodes_of, place_words, reach_words, validity
from devices.dra.matching import all_match
from devices.dra.nodes import Node
from devices.dra.pluginpath import requested, whole
from devices.dra.pools import Pool, PoolKey, pools
from devices.dra.published import node_of, published
from devices.dra.slices import Device, Slice
from devices.dra.snapshot import Snapshot
from devices.dra.standing import COUNTERS, Standing, State, pool_standings, standings, taints
from devices.dra.taints import DeviceTaint
from devices.dra.usage import usage


@dataclass(frozen=True, slots=True)
class Figures:
    """Devices by how they stand: the columns of every page."""

    free: int = 0
    allocated: int = 0
    shared: int = 0
    fragmented: int = 0
    unavailable: int = 0
    unknown: int = 0

    @property
    def total(self) -> int:
        return (
            self.free
            + self.allocated
            + self.shared
            + self.fragmented
            + self.unavailable
            + self.unknown
        )

    def plus(self, other: Figures) -> Figures:
        """Both together."""
        return Figures(
            self.free + other.free,
            self.allocated + other.allocated,
            self.shared + other.shared,
            self.fragmented + other.fragmented,
            self.unavailable + other.unavailable,
            self.unknown + other.unknown,
        )


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """One slice pool. ``places`` is where its devices can be used from, in words; ``nodes`` are the
    nodes that it names. ``why`` says in a sentence why nothing is given from it; ``note`` what else
    there is to say.
    """

    pool: Pool
    figures: Figures
    nodes: tuple[str, ...]
    places: str
    state: str
    why: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One device as it is published, or (without ``device``) as claims still hold it."""

    key: DeviceKey
    standing: Standing
    node: str = ""
    title: str = ""
    traits: tuple[Trait, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    holders: tuple[Claim, ...] = ()
    device: Device | None = None
    places: str = ""

    @property
    def kind(self) -> str:
        """The part of a bar or a berth: idle, allocated, shared, fragmented, …"""
        return column(self.standing)


@dataclass(frozen=True, slots=True)
class Resource:
    """An extended resource that a device plugin offers on a node."""

    name: str
    allocatable: int
    requested: int


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """One node: its Node object (None where only slices know the name), its pools, its devices as
    figures, and what plugins offer.
    """

    name: str
    node: Node | None
    figures: Figures
    pools: tuple[PoolKey, ...] = ()
    resources: tuple[Resource, ...] = field(default=())

    @property
    def ready(self) -> bool | None:
        """None where nobody can say."""
        return None if self.node is None else self.node.ready


def column(standing: Standing) -> str:
    """In which column of a page a device stands."""
    match standing.state:
        case State.FREE:
            return "idle"
        case State.UNAVAILABLE if standing == COUNTERS:
            return "fragmented"
    return standing.state.value


def figures(found: Iterable[Standing]) -> Figures:
    """Devices counted by column."""
    counts = Counter(map(column, found))
    return Figures(
        counts["idle"],
        counts["allocated"],
        counts["shared"],
        counts["fragmented"],
        counts["unavailable"],
        counts["unknown"],
    )


# --- pools ---


def pool_facts(snapshot: Snapshot, pool: Pool) -> PoolFacts:
    """What there is to say of a pool."""
    stand = pool_standings(snapshot, pool)
    nodes = tuple(sorted(nodes_of(pool.slices)))
    state, why = validity(pool)
    note = ""
    if pool.outdated:
        number = len(pool.outdated)
        note = (
            f"{number} older slice{'' if number == 1 else 's'} of a former generation "
            f"{'is' if number == 1 else 'are'} still there; the scheduler passes over "
            f"{'it' if number == 1 else 'them'}."
        )
    every = [standing for piece in pool.slices for standing in stand[piece.name]]
    return PoolFacts(pool, figures(every), nodes, reach_words(pool.slices), state, why, note)


# --- devices ---


def device_facts(snapshot: Snapshot, key: DeviceKey) -> DeviceFacts | None:
    """One device; None where nobody publishes or holds it."""
    found = published(snapshot, key)
    held = usage(snapshot).holders(key)
    if found is None:
        if not held:
            return None
        gone = Standing(State.UNKNOWN, "LEAK_DEVICE_VANISHED")
        return DeviceFacts(key, gone, node_of(held[0], snapshot), holders=held)
    row = pool_standings(snapshot, pools(snapshot)[key[0], key[1]])[found.piece.name]
    position = next(i for i, each in enumerate(found.piece.devices) if each.name == key[2])
    return _device(snapshot, found.piece, found.device, row[position], held)


def devices_of_pool(snapshot: Snapshot, pool: Pool) -> Iterator[DeviceFacts]:
    """Every device of a pool, in the order in which it is published."""
    stand, used = pool_standings(snapshot, pool), usage(snapshot)
    for piece in pool.slices:
        for device, standing in zip(piece.devices, stand[piece.name], strict=True):
            held = used.holders((pool.driver, pool.name, device.name))
            yield _device(snapshot, piece, device, standing, held)


def found_devices(
    snapshot: Snapshot,
    *,
    device_class: str = "",
    driver: str = "",
    pool: str = "",
    node: str = "",
) -> list[tuple[Slice, int]]:
    """Devices as slice and position, by driver, pool and name; narrowed by what is not empty."""
    found = snapshot.classes.get(device_class)
    if device_class and found is None:
        return []
    at = []
    for each in pools(snapshot).values():
        if (driver and each.driver != driver) or (pool and each.name != pool):
            continue
        here = []
        for piece in each.slices:
            answers = all_match(snapshot, found.selectors, piece) if found is not None else None
            for position, device in enumerate(piece.devices):
                reach = device.reach if piece.reach.per_device else piece.reach
                if (answers is None or answers[position] is True) and (
                    not node or reach.node_name == node
                ):
                    here.append((piece, position))
        at += sorted(here, key=lambda place: place[0].devices[place[1]].name)
    return at


def device_at(snapshot: Snapshot, piece: Slice, position: int) -> DeviceFacts:
    """The device at a position of a slice of the newest generation."""
    device = piece.devices[position]
    key = (piece.driver, piece.pool, device.name)
    row = pool_standings(snapshot, pools(snapshot)[key[0], key[1]])[piece.name]
    return _device(snapshot, piece, device, row[position], usage(snapshot).holders(key))


def _device(
    snapshot: Snapshot,
    piece: Slice,
    device: Device,
    standing: Standing,
    held: tuple[Claim, ...],
) -> DeviceFacts:
    attributes, capacity = texts(piece, device)
    reach = device.reach if piece.reach.per_device else piece.reach
    return DeviceFacts(
        (piece.driver, piece.pool, device.name),
        standing,
        reach.node_name,
        title(piece.driver, attributes),
        traits(attributes, capacity),
        taints(snapshot, piece, device),
        held,
        device,
        place_words(reach),
    )


def texts(piece: Slice, device: Device) -> tuple[dict[str, str], dict[str, str]]:
    """A device's attributes and capacities by qualified name, as text."""
    attributes = {_name(n, piece.driver): str(value) for n, value in device.attributes.items()}
    capacity = {
        _name(name, piece.driver): str(found.value) for name, found in device.capacity.items()
    }
    return attributes, capacity


def _name(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


# --- nodes ---


def node_facts(snapshot: Snapshot, name: str) -> NodeFacts | None:
    """One node; None where neither a Node object nor a slice knows the name."""
    here = pools_by_node(snapshot).get(name, ())
    node = snapshot.nodes.get(name)
    if node is None and not here:
        return None
    found: list[Standing] = []
    for key in here:
        pool = pools(snapshot)[key]
        stand = pool_standings(snapshot, pool)
        for piece in pool.slices:
            row = stand[piece.name]
            if piece.reach.per_device:
                row = tuple(compress(row, (d.reach.node_name == name for d in piece.devices)))
            elif piece.reach.node_name != name:
                continue
            found += row
    return NodeFacts(name, node, figures(found), here, _resources(snapshot, node))


def devices_of_node(snapshot: Snapshot, facts: NodeFacts) -> Mapping[PoolKey, list[DeviceFacts]]:
    """By pool, the devices that belong to the node alone."""
    return {
        key: [
            device
            for device in devices_of_pool(snapshot, pools(snapshot)[key])
            if device.node == facts.name
        ]
        for key in facts.pools
    }


def pools_by_node(snapshot: Snapshot) -> Mapping[str, tuple[PoolKey, ...]]:
    """By node, the pools with a device of that node alone."""
    return snapshot.once("pools by node", _pools_by_node)


def _pools_by_node(snapshot: Snapshot) -> Mapping[str, tuple[PoolKey, ...]]:
    found: dict[str, list[PoolKey]] = {}
    for key, pool in pools(snapshot).items():
        for name in nodes_of(pool.slices):
            found.setdefault(name, []).append(key)
    return {name: tuple(keys) for name, keys in found.items()}


def is_extended(resource: str) -> bool:
    """Whether a resource of a node is a plugin's (core/v1 ``IsExtendedResourceName``)."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")


def _resources(snapshot: Snapshot, node: Node | None) -> tuple[Resource, ...]:
    if node is None:
        return ()
    names = {name for name in node.allocatable if is_extended(name)}
    asked: Counter[str] = Counter()
    if names:
        for pod in snapshot.pods.values():
            if pod.node_name == node.name and not pod.finished:
                asked.update(requested(pod, names))
    return tuple(
        Resource(name, whole(node.allocatable[name]), asked[name]) for name in sorted(names)
    )


# --- classes ---


def nodes_of_class(snapshot: Snapshot, name: str) -> Mapping[str, Figures]:
    """By node, how the devices of a class stand; devices of no single node under an empty name."""
    return snapshot.once(("class by node", name), lambda s: _nodes_of_class(s, name))


def _nodes_of_class(snapshot: Snapshot, name: str) -> Mapping[str, Figures]:
    found = snapshot.classes.get(name)
    stand = standings(snapshot)
    by_node: dict[str, Figures] = {}
    alike: dict[tuple[object, ...], Figures] = {}  # most slices stand as others do
    for pool in pools(snapshot).values() if found is not None else ():
        for piece in pool.slices:
            answers = all_match(snapshot, found.selectors if found else (), piece)
            hits = [answer is True for answer in answers]
            if True not in hits:
                continue
            row = stand[piece.name]
            if piece.reach.per_device:
                for device, standing in compress(zip(piece.devices, row, strict=True), hits):
                    _add(by_node, device.reach.node_name, figures([standing]))
                continue
            key = (*map(id, row), *hits)
            here = alike.get(key)
            if here is None:
                here = alike[key] = figures(compress(row, hits))
            _add(by_node, piece.reach.node_name, here)
    return dict(sorted(by_node.items()))


def _add(by_node: dict[str, Figures], name: str, more: Figures) -> None:
    before = by_node.get(name)
    by_node[name] = more if before is None else before.plus(more)
