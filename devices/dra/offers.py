"""What the catalogue offers: per DeviceClass how many devices there are and how they stand.

Devices that are equal in everything that describes them form one group; 40,000 devices are a
handful of groups, and every question is asked once per group or slice, never once per page.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Final

from devices.dra.claims import DeviceClass
from devices.dra.leaks import HIDES_DEVICES_IN_USE
from devices.dra.matching import Broken, all_match, selector
from devices.dra.pools import counter_sets, pools
from devices.dra.published import node_of, published
from devices.dra.selector import Fault
from devices.dra.slices import Attribute, CounterSet, Device, Slice
from devices.dra.snapshot import Snapshot
from devices.dra.standing import COUNTERS, Standing, State, standings, taints
from devices.dra.usage import usage

#: Attributes that say which device it is or where it sits, not what it is; by their last part.
IDENTITIES: Final = frozenset(
    [
        "uuid",
        "UUID",
        "parentUUID",
        "serial",
        "serialNumber",
        "index",
        "minor",
        "pciBusID",
        "pciAddress",
        "pcieBusID",
        "pcieRoot",
        "pciRoot",
        "numa",
        "numaNode",
        "numaNodeID",
        "cpuID",
        "coreID",
        "socketID",
        "cacheL3ID",
        "mac",
        "hardwareAddress",
        "ifName",
        "interfaceName",
        "alias",
        "name",
        "resourceName",
        "cliqueID",
    ]
)


#: A device in use that its driver no longer publishes: nobody can say how it stands.
VANISHED: Final = "LEAK_DEVICE_VANISHED"


@dataclass(frozen=True, slots=True)
class Tally:
    """Devices counted by how they stand; ``unavailable`` and ``unknown`` by code.

    ``fragmented`` devices are not taken, and cannot be had: other parts of their hardware are.
    """

    free: int = 0
    allocated: int = 0
    shared: int = 0
    fragmented: int = 0
    unavailable: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Every device, whatever is known of it."""
        rest = sum(self.unavailable.values()) + sum(self.unknown.values())
        return self.free + self.allocated + self.shared + self.fragmented + rest


@dataclass(frozen=True, slots=True)
class Group:
    """Devices that are equal in all that describes them.

    ``attributes`` and ``capacity`` are what they have in common, by qualified name, as text in
    canonical spelling; ``where`` are the nodes that have one, None where they belong to no node.
    """

    driver: str
    attributes: Mapping[str, str]
    capacity: Mapping[str, str]
    shareable: bool
    partition: bool
    tally: Tally
    where: frozenset[str] | None
    example: str

    @property
    def nodes(self) -> int | None:
        """How many nodes have one."""
        return None if self.where is None else len(self.where)


@dataclass(frozen=True, slots=True)
class ClassCount:
    """What one DeviceClass offers now. ``problem`` is why its devices cannot be counted fully:
    a selector that does not compile, fails on some devices, or is not modelled.

    Devices in use that are not published belong to the class that their claim asked for: those of
    drivers that hide what is in use are allocated, the others unknown. ``relies`` are the feature
    gates without which its devices could not be had as they are.
    """

    name: str
    tally: Tally
    groups: tuple[Group, ...] = ()
    problem: str = ""
    drivers: tuple[str, ...] = ()
    nodes: int | None = None
    relies: frozenset[str] = frozenset()


def catalogue_counts(snapshot: Snapshot) -> Mapping[str, ClassCount]:
    """Every class of the snapshot by name. Devices on which a selector fails are ``unknown`` with
    the code SELECTOR_FAILS: they may or may not belong to the class.
    """
    return snapshot.once("catalogue counts", _count_all)


@dataclass(frozen=True, slots=True)
class _Bucket:
    """What devices are counted by: group, and how they stand."""

    group: int
    standing: Standing


@dataclass(frozen=True, slots=True)
class _Kind:
    """One group of equal devices, with the first device that was met."""

    device: Device
    driver: str
    shown: tuple[tuple[str, Attribute], ...]
    example: str
    partition: bool


@dataclass(slots=True)
class _Index:
    """Every device of the newest generations, as a bucket number, in the order of the slices."""

    slices: list[Slice]
    buckets: list[tuple[int, ...]]
    kinds: list[_Kind]
    table: list[_Bucket]


def _count_all(snapshot: Snapshot) -> Mapping[str, ClassCount]:
    index, absent = _index(snapshot), _not_published(snapshot)
    return {
        name: _count(snapshot, found, index, absent.get(name, {}))
        for name, found in snapshot.classes.items()
    }


def _count(
    snapshot: Snapshot, device_class: DeviceClass, index: _Index, absent: Mapping[Standing, int]
) -> ClassCount:
    problem = ""
    for expression in device_class.selectors:
        compiled = selector(snapshot, expression)
        if isinstance(compiled, Broken):
            problem = compiled.why
    counts: Counter[int] = Counter()
    faults: Counter[int] = Counter()
    nodes: dict[int, set[str]] = defaultdict(set)
    relies: set[str] = set()
    for piece, buckets in zip(index.slices, index.buckets, strict=True):
        answers = all_match(snapshot, device_class.selectors, piece)
        hits = [answer is True for answer in answers]
        if any(hits):
            found = Counter(compress(buckets, hits))
            counts += found
            for bucket in found:
                nodes[index.table[bucket].group].add(piece.reach.node_name)
            if not piece.plain or snapshot.rules:
                relies.update(_relies(snapshot, piece, hits))
        for answer, bucket in zip(answers, buckets, strict=True):
            if isinstance(answer, Fault):
                faults[bucket] += 1
                problem = problem or answer.why
    code = "SELECTOR_FAILS"
    extra = {code: faults.total()} if faults else {}
    standing = [(index.table[bucket].standing, n) for bucket, n in counts.items()]
    names = set().union(*nodes.values())
    return ClassCount(
        device_class.name,
        _tally([*standing, *absent.items()], extra),
        _groups(index, counts, nodes),
        problem,
        drivers=tuple(sorted({index.kinds[group].driver for group in nodes})),
        nodes=None if "" in names else len(names),
        relies=frozenset(relies),
    )


def _relies(snapshot: Snapshot, piece: Slice, hits: Sequence[bool]) -> Iterable[str]:
    """Feature gates that matter for the chosen devices of a slice, beside the core."""
    for device in compress(piece.devices, hits):
        if device.consumes or piece.counters:
            yield "DRAPartitionableDevices"
        if device.shareable:
            yield "DRAConsumableCapacity"
        if device.binding_conditions:
            yield "DRADeviceBindingConditions"
        if device.node_shares:
            yield "DRANodeAllocatableResources"
        if device.odd_attributes:
            yield "DRAListTypeAttributes"
        if taints(snapshot, piece, device):
            yield "DRADeviceTaints"


def _not_published(snapshot: Snapshot) -> Mapping[str, Mapping[Standing, int]]:
    """By class, devices in use that nobody publishes, each once, by how they stand. Those of a node
    that no longer exists went with it.
    """
    found: dict[str, Counter[Standing]] = defaultdict(Counter)
    used = usage(snapshot)
    for key in used.devices():
        driver, pool, _ = key
        if published(snapshot, key) is not None:
            continue
        node = node_of(used.holders(key)[0], snapshot)
        if node and snapshot.nodes and node not in snapshot.nodes:
            continue
        hidden = driver in HIDES_DEVICES_IN_USE and (driver, pool) in pools(snapshot)
        standing = Standing(State.ALLOCATED) if hidden else Standing(State.UNKNOWN, VANISHED)
        asked = {
            claim.spec.class_of(result.request)
            for claim in used.holders(key)
            for result in (claim.allocation.results if claim.allocation else ())
            if result.key == key
        }
        for name in asked:
            found[name][standing] += 1
    return found


def _groups(
    index: _Index, counts: Counter[int], nodes: Mapping[int, set[str]]
) -> tuple[Group, ...]:
    by_group: dict[int, list[tuple[Standing, int]]] = defaultdict(list)
    for bucket, amount in counts.items():
        entry = index.table[bucket]
        by_group[entry.group].append((entry.standing, amount))
    groups = []
    for number, found in by_group.items():
        kind, names = index.kinds[number], nodes[number]
        groups.append(
            Group(
                driver=kind.driver,
                attributes={name: str(value) for name, value in kind.shown},
                capacity={
                    _qualified(name, kind.driver): str(capacity.value)
                    for name, capacity in sorted(kind.device.capacity.items())
                },
                shareable=kind.device.shareable,
                partition=kind.partition,
                tally=_tally(found, {}),
                where=None if "" in names else frozenset(names),
                example=kind.example,
            )
        )
    return tuple(sorted(groups, key=lambda g: (-g.tally.total, g.driver, g.example)))


def _tally(found: Iterable[tuple[Standing, int]], unknown: Mapping[str, int]) -> Tally:
    plain: Counter[State] = Counter()
    fragmented = 0
    closed: Counter[str] = Counter()
    open_questions: Counter[str] = Counter(unknown)
    for standing, amount in found:
        match standing.state:
            case State.UNAVAILABLE if standing == COUNTERS:
                fragmented += amount
            case State.UNAVAILABLE:
                closed[standing.reason] += amount
            case State.UNKNOWN:
                open_questions[standing.reason] += amount
            case _:
                plain[standing.state] += amount
    return Tally(
        free=plain[State.FREE],
        allocated=plain[State.ALLOCATED],
        shared=plain[State.SHARED],
        fragmented=fragmented,
        unavailable=dict(closed),
        unknown=dict(open_questions),
    )


def _index(snapshot: Snapshot) -> _Index:
    slices = [piece for pool in pools(snapshot).values() for piece in pool.slices]
    sets = {key: counter_sets(pool.slices) for key, pool in pools(snapshot).items()}
    told = _telling(slices)
    states = standings(snapshot)
    groups: dict[object, int] = {}
    numbers: dict[tuple[int, Standing], int] = {}
    index = _Index(slices, [], [], [])
    for piece in slices:
        names = told[piece.driver]
        row = []
        for device, standing in zip(piece.devices, states[piece.name], strict=True):
            attribute, capacity = device.attributes.get, device.capacity
            key = (
                piece.driver,
                device.shareable,
                _is_part(device, sets[piece.driver, piece.pool]),
                tuple(capacity),
                tuple([found.value for found in capacity.values()]),
                tuple([attribute(name) for name in names]),
            )
            group = groups.get(key)
            if group is None:
                group = groups[key] = len(groups)
                index.kinds.append(_kind(device, piece, names, key[2]))
            bucket = numbers.get((group, standing))
            if bucket is None:
                bucket = numbers[group, standing] = len(numbers)
                index.table.append(_Bucket(group, standing))
            row.append(bucket)
        index.buckets.append(tuple(row))
    return index


def _is_part(device: Device, sets: Mapping[str, CounterSet]) -> bool:
    """Whether a device takes less than all of the hardware that it shares with others."""
    return any(
        amount < sets[use.counter_set].counters[name]
        for use in device.consumes
        if use.counter_set in sets
        for name, amount in use.counters.items()
        if name in sets[use.counter_set].counters
    )


def _kind(device: Device, piece: Slice, names: Sequence[str], partition: bool) -> _Kind:
    shown = tuple(
        (_qualified(name, piece.driver), device.attributes[name])
        for name in names
        if name in device.attributes
    )
    example = f"{piece.driver}/{piece.pool}/{device.name}"
    return _Kind(device, piece.driver, shown, example, partition)


def _telling(slices: Sequence[Slice]) -> Mapping[str, tuple[str, ...]]:
    """By driver, the attributes that describe a device rather than tell it from its equals.

    Left out are names that are known to be identities, and texts of which nearly every device has
    one of its own: more than eight values, and fewer than three devices to each.
    """
    values: dict[str, dict[str, Counter[Attribute]]] = defaultdict(lambda: defaultdict(Counter))
    for piece in slices:
        seen = values[piece.driver]
        for device in piece.devices:
            for name, attribute in device.attributes.items():
                if name.rpartition("/")[2] not in IDENTITIES:
                    seen[name][attribute] += 1
    return {
        driver: tuple(sorted(n for n, found in seen.items() if not _own(found)))
        for driver, seen in values.items()
    }


def _own(found: Counter[Attribute]) -> bool:
    return len(found) > 8 and found.total() < 3 * len(found)


def _qualified(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"
