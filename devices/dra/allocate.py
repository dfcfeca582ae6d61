"""Would these claims be allocated, and where: what the scheduler's allocator would answer per node.

A prediction from a snapshot: nothing is reserved, and what is in flight in the scheduler is not
seen. Verdicts are OK with devices, NO, NODE_ERROR (this node only) or FATAL (the whole attempt
ends). Source: ``Allocate`` and ``validateDeviceRequest`` of upstream's structured allocator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from devices.dra.alike import rows_for, signatures
from devices.dra.attempt import Fatal, Ready, fatal
from devices.dra.capacity_requests import NotRepresentable, consumed, fits
from devices.dra.claims import ALL, EXACT, MOST_DEVICES, Ask, DeviceClass, DeviceKey, Request
from devices.dra.collector import collector_at_rest
from devices.dra.constraints import Tracker, tracker
from devices.dra.nodes import Node
from devices.dra.quantity import Quantity
from devices.dra.requests import Failure, Want, Wish, answers, closed
from devices.dra.search import Search, picked
from devices.dra.snapshot import Snapshot
from devices.dra.usage import Usage, usage
from devices.dra.visibility import Place, View, reaches, view

NO_TEXT = "cannot allocate all claims"
INVALID_TEXT = "invalid resource pools were encountered"


class Kind(StrEnum):
    """What comes of claims on a node."""

    OK = "OK"
    NO = "NO"
    NODE_ERROR = "NODE_ERROR"
    FATAL = "FATAL"


@dataclass(frozen=True, slots=True)
class Given:
    """One device that would be given: for which claim (by position) and request."""

    claim: int
    request: str
    device: DeviceKey
    consumed: Mapping[str, Quantity] | None = None
    admin: bool = False

    def __str__(self) -> str:
        return "/".join(self.device)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the allocator answers on one node. ``text`` is upstream's, ``code`` Berth's.

    ``work`` is about how many steps upstream would take; beyond ten seconds' worth it gives up.
    """

    kind: Kind
    given: tuple[Given, ...] = ()
    text: str = ""
    code: str = ""
    work: int = 0
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Alike:
    """Nodes on which the same comes out, by name; ``verdict`` names the devices of the first."""

    nodes: tuple[str, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Forecast:
    """What comes of claims on every node, nodes that are alike together."""

    snapshot: Snapshot
    wishes: tuple[Wish, ...]
    groups: tuple[Alike, ...]

    def on(self, node: str) -> Verdict:
        """The verdict on one node, with its own devices; raises KeyError for a node not asked."""
        for group in self.groups:
            if node in group.nodes:
                return self._translated(group, node)
        raise KeyError(node)

    def __iter__(self) -> Iterator[tuple[str, Verdict]]:
        """Every node with its verdict."""
        for group in self.groups:
            for node in group.nodes:
                yield node, self._translated(group, node)

    @property
    def fitting(self) -> tuple[str, ...]:
        """The nodes on which all claims would be allocated."""
        return tuple(
            n for group in self.groups if group.verdict.kind is Kind.OK for n in group.nodes
        )

    def _translated(self, group: Alike, node: str) -> Verdict:
        verdict = group.verdict
        if node == group.nodes[0] or verdict.kind is Kind.NO:
            return verdict
        if verdict.kind is not Kind.OK:  # the text names pools and devices of the first node
            return allocate(self.snapshot, self.snapshot.node(node), self.wishes)
        places = view(self.snapshot, self.snapshot.node(node)).places
        given = tuple(
            Given(old.claim, old.request, places[index].key, old.consumed, old.admin)
            for old, index in zip(verdict.given, verdict.places, strict=True)
        )
        return Verdict(Kind.OK, given, work=verdict.work, places=verdict.places)


def forecast(
    snapshot: Snapshot, wishes: Sequence[Wish], nodes: Iterable[str] | None = None
) -> Forecast:
    """The verdict for all claims of one Pod together, on each node (all nodes by default)."""
    with collector_at_rest():
        return _forecast(snapshot, tuple(wishes), nodes)


def _forecast(snapshot: Snapshot, asked: tuple[Wish, ...], nodes: Iterable[str] | None) -> Forecast:
    try:
        wants: Sequence[Sequence[Sequence[Want]]] = [
            list(_wants(snapshot, number, wish)) for number, wish in enumerate(asked)
        ]
    except Fatal:
        wants = []
    every = snapshot.node_names if nodes is None else nodes
    if wants:
        keyed = signatures(snapshot, every, rows_for(snapshot, asked, wants))
    else:
        keyed = ((name, None) for name in every)
    found: dict[object, tuple[list[str], Verdict]] = {}
    for name, key in keyed:
        group = found.get(key)
        if group is None:
            found[key] = ([name], allocate(snapshot, snapshot.node(name), asked))
        else:
            group[0].append(name)
    groups = tuple(Alike(tuple(names), verdict) for names, verdict in found.values())
    return Forecast(snapshot, asked, groups)


def allocate(
    snapshot: Snapshot, node: Node, wishes: Sequence[Wish], used: Usage | None = None
) -> Verdict:
    """The verdict for all claims of one Pod together on one node.

    ``used`` replaces what the snapshot's own claims take, for "what if that claim were gone".
    """
    used = usage(snapshot) if used is None else used
    seen = view(snapshot, node)
    try:
        ready, trackers = _ready(snapshot, node, seen, used, wishes)
        search = Search(snapshot, node, seen, used, wishes, ready, trackers)
        done = search.run()
    except Fatal as error:
        return Verdict(Kind.FATAL, text=error.text, code=error.code)
    if done:
        return _given(search)
    if any(pool.invalid for pool in seen.pools):
        return Verdict(Kind.NODE_ERROR, text=INVALID_TEXT, code="POOL_INVALID", work=search.work)
    return Verdict(Kind.NO, text=NO_TEXT, code="NO_MATCHING_DEVICE_FREE", work=search.work)


def _given(search: Search) -> Verdict:
    numbers = {id(place): index for index, place in enumerate(search.places)}
    picks = list(picked(search))
    given = tuple(
        Given(
            pick.want.claim, pick.want.name, pick.place.key, pick.taken, bool(pick.want.ask.admin)
        )
        for pick in picks
    )
    places = tuple(numbers[id(pick.place)] for pick in picks)
    return Verdict(Kind.OK, given, work=search.work, places=places)


# What is checked before the search, claim by claim, in upstream's order


def _ready(
    snapshot: Snapshot, node: Node, seen: View, used: Usage, wishes: Sequence[Wish]
) -> tuple[list[list[list[Ready]]], list[list[Tracker]]]:
    ready: list[list[list[Ready]]] = []
    trackers: list[list[Tracker]] = []
    for number, wish in enumerate(wishes):
        total = 0
        rows = []
        for alternatives in _wants(snapshot, number, wish):
            row = [_one(snapshot, node, seen, used, wish, want) for want in alternatives]
            rows.append(row)
            least = min(found.need for found in row)
            if snapshot.gates.at_least("1.37") and least > MOST_DEVICES - total:
                request = alternatives[0].request.name
                raise Fatal(
                    f"claim {wish.name}, request {request}: adding {least} devices exceeds the "
                    f"claim limit of {MOST_DEVICES}, with {total} already accounted for",
                    "TOO_MANY_DEVICES",
                )
            total += least
        if total > MOST_DEVICES:
            raise Fatal(
                f"claim {wish.name}: number of requested devices {total} exceeds the claim "
                f"limit of {MOST_DEVICES}",
                "TOO_MANY_DEVICES",
            )
        ready.append(rows)
        trackers.append(_trackers(snapshot, wish))
    return ready, trackers


def _trackers(snapshot: Snapshot, wish: Wish) -> list[Tracker]:
    found = []
    for number, constraint in enumerate(wish.spec.constraints):
        one = tracker(constraint, snapshot.gates)
        if one is None:
            text = f"constraint #{number}: empty constraint (unsupported constraint type?)"
            raise Fatal(f"claim {wish.name}, {text}", "REQUEST_UNSUPPORTED")
        found.append(one)
    return found


def _wants(snapshot: Snapshot, number: int, wish: Wish) -> Iterator[list[Want]]:
    """Each request's ask, or its alternatives. Raises Fatal for what this cluster cannot take."""
    for request in wish.spec.requests:
        _check_gates(snapshot, wish, request)
        yield [
            Want(
                number,
                request,
                ask,
                _check_ask(snapshot, wish, ask),
                ask.name if request.alternatives else "",
            )
            for ask in request.asks
        ]


def _check_gates(snapshot: Snapshot, wish: Wish, request: Request) -> None:
    where = f"claim {wish.name}, request {request.name}"
    if request.alternatives and "DRAPrioritizedList" not in snapshot.gates:
        text = "has subrequests, but the DRAPrioritizedList feature is disabled"
        raise Fatal(f"{where}: {text}", "FEATURE_OFF")
    if "DRAConsumableCapacity" not in snapshot.gates:
        for ask in request.asks:
            if ask.capacity is not None:
                if request.alternatives:
                    where = f"claim {wish.name}, subrequest {ask.name}"
                text = "has capacity requests, but the DRAConsumableCapacity feature is disabled"
                raise Fatal(f"{where}: {text}", "FEATURE_OFF")
    if not request.asks:
        raise Fatal(f"{where}: unknown request type", "REQUEST_UNSUPPORTED")


def _check_ask(snapshot: Snapshot, wish: Wish, ask: Ask) -> DeviceClass:
    """The class of an ask. Raises Fatal for what this cluster cannot take."""
    where = f"claim {wish.name}, request {ask.name}"
    gates = snapshot.gates
    if ask.derived and gates.at_least("1.37") and "DRADerivedAttributes" not in gates:
        text = "cannot handle request with derived attributes, the feature is disabled"
        raise Fatal(f"{where}: {text}", "FEATURE_OFF")
    if None in ask.selectors:
        text = f"selector #{ask.selectors.index(None)}: CEL expression empty"
        raise Fatal(f"{where}, {text} (unsupported selector type?)", "REQUEST_UNSUPPORTED")
    if ask.admin is not None and "DRAAdminAccess" not in gates:
        text = "admin access is requested, but the feature is disabled"
        raise Fatal(f"{where}: {text}", "FEATURE_OFF")
    if not ask.device_class:
        text = "missing device class name (unsupported request type?)"
        raise Fatal(f"{where}: {text}", "REQUEST_UNSUPPORTED")
    found = snapshot.classes.get(ask.device_class)
    if found is None:
        text = f"could not retrieve device class {ask.device_class}"
        raise Fatal(f"{where}: {text}: not found", "CLASS_MISSING")
    if ask.mode not in (EXACT, ALL):
        raise Fatal(f"{where}: unsupported count mode {ask.mode}", "REQUEST_UNSUPPORTED")
    return found


def _one(snapshot: Snapshot, node: Node, seen: View, used: Usage, wish: Wish, want: Want) -> Ready:
    rows, taints = answers(snapshot, want), closed(snapshot, want.ask.tolerations)
    pieces = [piece for pool in seen.pools for piece in pool.slices]
    ready = Ready(
        want,
        [answer for piece in pieces for answer in rows.of(piece)],
        [shut for piece in pieces for shut in taints.of(piece)],
        want.ask.count,
    )
    if want.everything:
        ready.every = tuple(_every(snapshot, node, seen, used, wish, ready))
        ready.need = len(ready.every)
    return ready


def _every(
    snapshot: Snapshot, node: Node, seen: View, used: Usage, wish: Wish, ready: Ready
) -> Iterator[int]:
    """All devices that mode All means, of every pool that the node sees. Raises Fatal."""
    want = ready.want
    where = f"claim {wish.name}, request {want.ask.name}: asks for all devices, but resource pool"
    places = iter(enumerate(seen.places))
    for pool in seen.pools:
        if pool.incomplete:
            raise Fatal(f"{where} {pool} is currently being updated", "POOL_INCOMPLETE")
        if pool.invalid:
            raise Fatal(f"{where} {pool} is currently invalid", "POOL_INVALID")
        for piece in pool.slices:
            for _ in piece.devices:
                index, place = next(places)
                if _meant(snapshot, node, used, wish, ready, index, place):
                    yield index


def _meant(
    snapshot: Snapshot,
    node: Node,
    used: Usage,
    wish: Wish,
    ready: Ready,
    index: int,
    place: Place,
) -> bool:
    gates, device, want = snapshot.gates, place.device, ready.want
    if device.binding_conditions and not gates.binding:
        return False
    answer = ready.answers[index]
    if isinstance(answer, Failure):
        raise fatal(wish, want, answer, place, gates.at_least("1.37"))
    if not answer or (place.piece.reach.per_device and not reaches(device.reach, node)):
        return False
    if "DRAConsumableCapacity" not in gates:
        return True
    try:
        taken = consumed(want.ask.capacity, device.capacity, gates)
    except NotRepresentable as error:
        text = f"claim {wish.name}, request {want.ask.name}: checking capacity for device"
        raise Fatal(f"{text} {device.name}: {error}", "CAPACITY_NOT_OFFERED") from error
    if taken is None:
        return False
    # Through 1.36 All passes over shareable devices with too little left; later it waits for them.
    before = {} if gates.at_least("1.37") else used.consumed.get(place.key, {})
    return fits(taken, device.capacity, before, {})
