"""How much hardware there is and how it stands: idle, in use, partly used, closed, unknown.

What is counted are pieces of hardware, not published devices: partitions of one card and two views
of it are one piece. Every piece stands in exactly one column, so idle + allocated + fragmented +
unavailable + unknown is always the total. Devices that are reached from several nodes belong to the
cluster and to no node's sum.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import compress

from devices.dra.claims import DeviceKey
from devices.dra.collector import collector_at_rest
from devices.dra.hardware import identities, is_partition, joined
from devices.dra.leaks import HIDES_DEVICES_IN_USE
from devices.dra.matching import all_match
from devices.dra.pools import PoolKey, pools
from devices.dra.published import node_of
from devices.dra.selector import Fault
from devices.dra.slices import Device, Slice
from devices.dra.snapshot import Snapshot
from devices.dra.standing import Standing, standings
from devices.dra.standing import State as Stands
from devices.dra.usage import names_taken, usage


class State(StrEnum):
    """The one column in which a piece of hardware stands."""

    IDLE = "idle"
    """Nothing of it is taken, and all of it can be given."""
    ALLOCATED = "allocated"
    """Nothing more of it can be given."""
    FRAGMENTED = "fragmented"
    """Part of it is taken; who wants the whole piece cannot have it."""
    UNAVAILABLE = "unavailable"
    """Nothing of it is taken and nothing can be given, and a code says why."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Column:
    """A state, and the code that says why a piece is unavailable or unknown."""

    state: State
    code: str = ""


@dataclass(frozen=True, slots=True)
class Tally:
    """Pieces of hardware by how they stand; ``unavailable`` and ``unknown`` by code.

    ``devices`` is how many devices are published for them; ``hidden`` are devices in use that their
    driver does not publish meanwhile, each a piece that counts as allocated.
    """

    idle: int = 0
    allocated: int = 0
    fragmented: int = 0
    unavailable: Mapping[str, int] = field(default_factory=dict)
    unknown: Mapping[str, int] = field(default_factory=dict)
    devices: int = 0
    hidden: int = 0

    @property
    def total(self) -> int:
        """Every piece, whatever is known of it."""
        closed, open_questions = sum(self.unavailable.values()), sum(self.unknown.values())
        return self.idle + self.allocated + self.fragmented + closed + open_questions


@dataclass(frozen=True, slots=True)
class Capacity:
    """The whole cluster, and the same by slice pool, by class and by node.

    ``nodes`` has an empty name for what belongs to no single node. ``not_published`` are allocated
    devices whose driver publishes no such pool: they are in no sum.
    """

    cluster: Tally
    pools: Mapping[PoolKey, Tally]
    classes: Mapping[str, Tally]
    nodes: Mapping[str, Tally]
    not_published: tuple[DeviceKey, ...] = ()


def capacity(snapshot: Snapshot) -> Capacity:
    """The capacity of a snapshot, computed once."""
    with collector_at_rest():
        return snapshot.once("capacity", _capacity)


#: A device as slice name and position.
_Spot = tuple[str, int]
#: Which devices of a slice are meant: those marked, or all of them.
_Marks = Sequence[bool] | None


@dataclass(frozen=True, slots=True)
class _Layout:
    """Devices grouped into pieces. ``rows`` has, by slice, one byte for each device: the number of
    its column in ``table`` where it is a piece of its own, 0 where it is part of a larger one.
    ``larger`` are those with all their devices, ``places`` says which one a device belongs to.
    """

    table: Sequence[Column]
    rows: Mapping[str, bytes]
    larger: Sequence[Sequence[_Spot]]
    places: Mapping[_Spot, int]
    tallies: dict[bytes, Tally] = field(default_factory=dict, compare=False, repr=False)


def _capacity(snapshot: Snapshot) -> Capacity:
    layout = _layout(snapshot)
    current = {piece.name: piece for pool in pools(snapshot).values() for piece in pool.slices}
    hidden, gone = _not_published(snapshot)
    by_pool = {
        key: _tally(snapshot, layout, {piece.name: None for piece in pool.slices})
        for key, pool in pools(snapshot).items()
    }
    by_node: dict[str, dict[str, _Marks]] = defaultdict(dict)
    for name, piece in current.items():
        if piece.reach.per_device:
            where = [device.reach.node_name for device in piece.devices]
            for node in set(where):
                by_node[node][name] = [node == other for other in where]
        else:
            by_node[piece.reach.node_name][name] = None
    in_pool: Counter[PoolKey] = Counter()
    on_node: Counter[str] = Counter()
    for (node, *pool), number in hidden.items():
        in_pool[pool[0], pool[1]] += number
        on_node[node] += number
    every = _tally(snapshot, layout, dict.fromkeys(current))
    return Capacity(
        cluster=_hiding(every, sum(hidden.values())),
        pools={key: _hiding(found, in_pool[key]) for key, found in by_pool.items()},
        classes=_classes(snapshot, layout, current),
        nodes={
            node: _hiding(_tally(snapshot, layout, chosen), on_node[node])
            for node, chosen in sorted(by_node.items())
        },
        not_published=gone,
    )


def _classes(
    snapshot: Snapshot, layout: _Layout, current: Mapping[str, Slice]
) -> Mapping[str, Tally]:
    """By class, the pieces with a device that it selects. A device on which a selector fails may or
    may not belong to the class: its piece is unknown where nothing else of it is selected.
    """
    found = {}
    for name, device_class in snapshot.classes.items():
        chosen: dict[str, _Marks] = {}
        doubtful: dict[str, _Marks] = {}
        for piece in current.values():
            answers = all_match(snapshot, device_class.selectors, piece)
            hits = answers.count(True)
            if hits == len(answers):
                chosen[piece.name] = None
                continue
            if hits:
                chosen[piece.name] = [answer is True for answer in answers]
            faults = [isinstance(answer, Fault) for answer in answers]
            if True in faults:
                doubtful[piece.name] = faults
        tally = _tally(snapshot, layout, chosen)
        if doubtful:
            number = _tally(snapshot, layout, doubtful).total
            tally = Tally(
                tally.idle, tally.allocated, tally.fragmented, tally.unavailable,
                dict(Counter(tally.unknown) + Counter({"SELECTOR_FAILS": number})),
                tally.devices,
            )  # fmt: skip
        found[name] = tally
    return found


def _tally(snapshot: Snapshot, layout: _Layout, chosen: Mapping[str, _Marks]) -> Tally:
    """Counts the pieces with a chosen device: of each slice named, all devices or those marked."""
    picked = [
        layout.rows[name] if marks is None else bytes(compress(layout.rows[name], marks))
        for name, marks in chosen.items()
    ]
    if len(picked) == 1 and picked[0] in layout.tallies:
        return layout.tallies[picked[0]]
    columns: Counter[Column] = Counter()
    for row, times in Counter(picked).items():
        for number, amount in Counter(row).items():
            if number:
                columns[layout.table[number]] += times * amount
    parts = any(0 in row for row in picked)
    for number, spots in _larger(layout, chosen).items() if parts else ():
        columns[_column(snapshot, spots, layout.larger[number])] += 1
    found = _counted(columns, sum(map(len, picked)))
    if len(picked) == 1 and not parts:
        layout.tallies[picked[0]] = found
    return found


def _larger(layout: _Layout, chosen: Mapping[str, _Marks]) -> Mapping[int, list[_Spot]]:
    """The larger pieces with a chosen device, each with its chosen devices."""
    found: dict[int, list[_Spot]] = defaultdict(list)
    for name, marks in chosen.items():
        for position, number in enumerate(layout.rows[name]):
            if not number and (marks is None or marks[position]):
                found[layout.places[name, position]].append((name, position))
    return found


def _counted(columns: Counter[Column], devices: int) -> Tally:
    plain: Counter[State] = Counter()
    closed: Counter[str] = Counter()
    open_questions: Counter[str] = Counter()
    for column, number in columns.items():
        match column.state:
            case State.UNAVAILABLE:
                closed[column.code] += number
            case State.UNKNOWN:
                open_questions[column.code] += number
            case _:
                plain[column.state] += number
    return Tally(
        plain[State.IDLE],
        plain[State.ALLOCATED],
        plain[State.FRAGMENTED],
        dict(closed),
        dict(open_questions),
        devices,
    )


def _hiding(tally: Tally, hidden: int) -> Tally:
    if not hidden:
        return tally
    return Tally(
        tally.idle, tally.allocated + hidden, tally.fragmented, tally.unavailable, tally.unknown,
        tally.devices, hidden,
    )  # fmt: skip


# --- which devices are one piece ---


def _layout(snapshot: Snapshot) -> _Layout:
    return snapshot.once("layout", _lay_out)


def _lay_out(snapshot: Snapshot) -> _Layout:
    used, states = usage(snapshot), standings(snapshot)
    table, numbers = [Column(State.UNKNOWN)], {}  # the first stands for "part of a larger piece"
    by_identity: dict[int, int] = {}

    def number(column: Column) -> int:
        if column not in numbers:
            numbers[column] = len(table)
            table.append(column)
        return numbers[column]

    rows: dict[str, bytearray] = {}
    for pool in pools(snapshot).values():
        for piece in pool.slices:
            row = rows[piece.name] = bytearray(len(piece.devices))
            for position, standing in enumerate(states[piece.name]):
                known = by_identity.get(id(standing))
                if known is None:
                    if standing.state is Stands.UNAVAILABLE:
                        device = piece.devices[position]
                        taken = used.taken((piece.driver, piece.pool, device.name))
                        known = number(_closed(standing, taken))
                    else:
                        known = by_identity[id(standing)] = number(_alone(standing))
                row[position] = known
    larger: list[list[_Spot]] = []
    places: dict[_Spot, int] = {}
    for group in joined(snapshot):
        found = [(piece.name, _position(piece, device)) for piece, device in group]
        places.update(dict.fromkeys(found, len(larger)))
        larger.append(found)
        for name, position in found:
            rows[name][position] = 0
    return _Layout(table, {name: bytes(row) for name, row in rows.items()}, larger, places)


def _position(piece: Slice, device: Device) -> int:
    return next(index for index, each in enumerate(piece.devices) if each is device)


_ALONE = {
    Stands.FREE: Column(State.IDLE),
    Stands.ALLOCATED: Column(State.ALLOCATED),
    Stands.SHARED: Column(State.FRAGMENTED),
}


def _alone(standing: Standing) -> Column:
    return _ALONE.get(standing.state) or Column(State.UNKNOWN, standing.reason)


def _closed(standing: Standing, taken: bool) -> Column:
    """A device that cannot be given: in use where something of it is taken (all of its capacity,
    or a share of it while a taint closes it), else unavailable.
    """
    return Column(State.ALLOCATED) if taken else Column(State.UNAVAILABLE, standing.reason)


def _column(snapshot: Snapshot, chosen: Sequence[_Spot], everything: Sequence[_Spot]) -> Column:
    """The column of a piece of several devices, as far as the chosen ones are concerned."""
    slices = _slices(snapshot)
    taken = [spot for spot in everything if _taken(snapshot, slices, spot)]
    givable = [
        spot for spot in chosen if _givable(snapshot, spot) and not _shadowed(slices, spot, taken)
    ]
    if givable:
        return Column(State.FRAGMENTED if taken else State.IDLE)
    if taken:
        # Whole pieces that are blocked by parts in use are free in part, unless nothing is left.
        others = [spot for spot in everything if spot not in chosen and spot not in taken]
        left = any(_givable(snapshot, s) and not _shadowed(slices, s, taken) for s in others)
        return Column(State.FRAGMENTED if left else State.ALLOCATED)
    standing = _worst(snapshot, chosen)
    unknown = standing.state is Stands.UNKNOWN
    return Column(State.UNKNOWN if unknown else State.UNAVAILABLE, standing.reason)


def _shadowed(slices: Mapping[str, Slice], spot: _Spot, taken: Iterable[_Spot]) -> bool:
    """Whether a device is another view of hardware that is in use, which no counter says: the
    scheduler would still give it out.
    """
    device = _device(slices, spot)
    marks, counters = identities(device), {use.counter_set for use in device.consumes}
    for other_spot in taken:
        other = _device(slices, other_spot)
        apart = is_partition(device) and is_partition(other)
        counted = counters & {use.counter_set for use in other.consumes}
        if other_spot != spot and not apart and not counted and marks & identities(other):
            return True
    return False


def _worst(snapshot: Snapshot, chosen: Sequence[_Spot]) -> Standing:
    found = Counter(standings(snapshot)[name][position] for name, position in chosen)
    return max(found, key=lambda standing: (found[standing], standing.reason))


def _givable(snapshot: Snapshot, spot: _Spot) -> bool:
    return standings(snapshot)[spot[0]][spot[1]].state in (Stands.FREE, Stands.SHARED)


def _taken(snapshot: Snapshot, slices: Mapping[str, Slice], spot: _Spot) -> bool:
    piece = slices[spot[0]]
    return usage(snapshot).taken((piece.driver, piece.pool, piece.devices[spot[1]].name))


def _device(slices: Mapping[str, Slice], spot: _Spot) -> Device:
    return slices[spot[0]].devices[spot[1]]


def _slices(snapshot: Snapshot) -> Mapping[str, Slice]:
    return snapshot.once(
        "newest slices",
        lambda s: {piece.name: piece for pool in pools(s).values() for piece in pool.slices},
    )


# --- what is in use and not published ---


def _not_published(
    snapshot: Snapshot,
) -> tuple[Mapping[tuple[str, str, str], int], tuple[DeviceKey, ...]]:
    """Allocated devices that nobody publishes: by node, driver and pool those that their driver
    hides while they are in use, and the others.
    """
    hidden: Counter[tuple[str, str, str]] = Counter()
    gone = []
    used, known = usage(snapshot), pools(snapshot)
    for (driver, name), taken in names_taken(snapshot).items():
        pool = known.get((driver, name))
        pieces = pool.slices if pool is not None else ()
        for device in taken.difference(*([d.name for d in piece.devices] for piece in pieces)):
            key = (driver, name, device)
            if driver in HIDES_DEVICES_IN_USE and pool is not None:
                hidden[node_of(used.holders(key)[0], snapshot), driver, name] += 1
            else:
                gone.append(key)
    return hidden, tuple(sorted(gone))
