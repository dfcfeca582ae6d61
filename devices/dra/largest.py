"""The largest request that fits now, and what the release of one claim would make of it.

Counted devices are only a bound: partitions exclude each other and a request must fit one node, so
every answer here was given by the allocator itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from devices.dra.allocate import Kind, allocate, forecast
from devices.dra.claims import MOST_DEVICES, Ask, Claim, ClaimSpec, DeviceKey, Request
from devices.dra.matching import all_match
from devices.dra.pools import pools
from devices.dra.published import node_of
from devices.dra.released import usage_without
from devices.dra.requests import Wish
from devices.dra.selector import Fault
from devices.dra.slices import Slice
from devices.dra.snapshot import Snapshot
from devices.dra.standing import State, standings

#: How many nodes are tried one by one before all nodes are asked at once.
_FIRST: Final = 4
#: How many claims are tried, the most promising first.
_MOST_MOVES: Final = 24


@dataclass(frozen=True, slots=True)
class Largest:
    """How many devices of a class one request can have now, and on which node.

    ``count`` is None where nobody can say, and ``code`` then says why.
    """

    count: int | None
    node: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Move:
    """A claim whose release alone would let a larger request in: ``count`` devices on ``node``."""

    claim: str
    node: str
    count: int


def largest(snapshot: Snapshot, device_class: str) -> Largest:
    """The largest request for devices of a class (and nothing else) that fits now."""
    return snapshot.once(("largest", device_class), lambda s: _largest(s, device_class))


def moves(snapshot: Snapshot, device_class: str) -> tuple[Move, ...]:
    """Claims of which one alone, if released, would let a larger request in than fits now; those
    that free most first. At most a few dozen claims are tried, those that hold most first.
    """
    now = largest(snapshot, device_class)
    if now.count is None:
        return ()
    local, anywhere = _free(snapshot, device_class)
    held = _held(snapshot, device_class)
    promising = sorted(
        (
            (min(local[node] + anywhere + amount, MOST_DEVICES), node, claim)
            for (claim, node), amount in held.items()
        ),
        key=lambda found: (-found[0], found[1], found[2]),
    )
    found = []
    for bound, node, name in promising[:_MOST_MOVES]:
        used = usage_without(snapshot, {name})
        for count in range(bound, now.count, -1):
            verdict = allocate(snapshot, snapshot.node(node), [_wish(device_class, count)], used)
            if verdict.kind is Kind.OK:
                found.append(Move(name, node, count))
                break
    return tuple(sorted(found, key=lambda move: (-move.count, move.node, move.claim)))


def _largest(snapshot: Snapshot, device_class: str) -> Largest:
    local, anywhere = _free(snapshot, device_class)
    nodes = snapshot.node_names
    for count in range(min(max(local.values(), default=0) + anywhere, MOST_DEVICES), 0, -1):
        enough = [node for node in nodes if local[node] + anywhere >= count]
        enough.sort(key=lambda node: -local[node])
        wish = _wish(device_class, count)
        for node in enough[:_FIRST]:
            verdict = allocate(snapshot, snapshot.node(node), [wish])
            if verdict.kind is Kind.OK:
                return Largest(count, node)
            if verdict.kind is Kind.FATAL:
                return Largest(None, code=verdict.code)
        fitting = forecast(snapshot, [wish], enough[_FIRST:]).fitting
        if fitting:
            return Largest(count, fitting[0])
    if _doubtful(snapshot, device_class):
        return Largest(None, code="SELECTOR_FAILS")
    if anywhere and not snapshot.nodes:  # which nodes reach them, only Node objects say
        return Largest(None, code="NODES_NOT_SEEN")
    return Largest(0, code="NO_MATCHING_DEVICE_FREE")


def _doubtful(snapshot: Snapshot, device_class: str) -> bool:
    """Whether the class's selector fails on some device, so that nobody can say what it selects."""
    found = snapshot.classes.get(device_class)
    return found is not None and any(
        isinstance(answer, Fault)
        for pool in pools(snapshot).values()
        for piece in pool.slices
        for answer in all_match(snapshot, found.selectors, piece)
    )


def _wish(device_class: str, count: int) -> Wish:
    ask = Ask("devices", device_class, count=count)
    return Wish("berth/largest", ClaimSpec((Request("devices", ask),)))


def _free(snapshot: Snapshot, device_class: str) -> tuple[Counter[str], int]:
    """How many devices of a class could be given at best: by node, and to any node."""
    local: Counter[str] = Counter()
    anywhere = 0
    for piece, hits in _selected(snapshot, device_class):
        row = standings(snapshot)[piece.name]
        for position in hits:
            if row[position].state in (State.FREE, State.SHARED):
                device = piece.devices[position]
                reach = device.reach if piece.reach.per_device else piece.reach
                if reach.node_name:
                    local[reach.node_name] += 1
                else:
                    anywhere += 1
    return local, anywhere


def _held(snapshot: Snapshot, device_class: str) -> Mapping[tuple[str, str], int]:
    """By claim and node, how many devices of a class its release could give back at best."""
    by_device: dict[DeviceKey, int] = {}
    blocked: Counter[tuple[str, str]] = Counter()
    for piece, hits in _selected(snapshot, device_class):
        row = standings(snapshot)[piece.name]
        for position in hits:
            device = piece.devices[position]
            by_device[piece.driver, piece.pool, device.name] = 1
            if row[position].state is not State.FREE and device.consumes:
                blocked[piece.driver, piece.pool] += 1
    found: dict[tuple[str, str], int] = defaultdict(int)
    for claim in snapshot.claims.values():
        amount = _gain(claim, by_device, blocked)
        node = node_of(claim, snapshot) if amount else ""
        if node:
            found[str(claim), node] += amount
    return found


def _gain(
    claim: Claim,
    by_device: Mapping[DeviceKey, int],
    blocked: Mapping[tuple[str, str], int],
) -> int:
    results = claim.allocation.results if claim.allocation else ()
    keys = {result.key for result in results if not result.admin}
    held_up = sum(blocked.get(pool, 0) for pool in {key[:2] for key in keys})
    return sum(by_device.get(key, 0) for key in keys) + held_up


def _selected(snapshot: Snapshot, device_class: str) -> Iterable[tuple[Slice, Sequence[int]]]:
    """By slice, the positions of the devices that a class selects."""
    found = snapshot.classes.get(device_class)
    for pool in pools(snapshot).values() if found is not None else ():
        for piece in pool.slices:
            answers = all_match(snapshot, found.selectors if found else (), piece)
            hits = [position for position, answer in enumerate(answers) if answer is True]
            if hits:
                yield piece, hits
