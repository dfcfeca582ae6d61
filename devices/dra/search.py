"""One claim after the other, one device after the other, on one node: the scheduler's own search.

Depth first, first solution wins, devices in the order of `visibility`. Upstream tries every
combination before it says no, which takes it for ever on large counts; here a branch that cannot
succeed is cut by counting, and what upstream would have spent on it is added up (`Search.work`).
Source: ``allocator_experimental.go``, of which the other two allocators are subsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb
from typing import Final

from devices.dra.attempt import Fatal, Pick, Ready, TooMany, Undoing, fatal
from devices.dra.bounds import Bounds
from devices.dra.capacity_requests import NotRepresentable, consumed, fits
from devices.dra.claims import MOST_DEVICES
from devices.dra.constraints import Tracker, attribute_of
from devices.dra.counters import Counters, Groups
from devices.dra.deadends import Memory
from devices.dra.derived import DerivedError, derive
from devices.dra.nodes import Node
from devices.dra.quantity import Quantity
from devices.dra.requests import Failure, Wish
from devices.dra.slices import Attribute
from devices.dra.snapshot import Snapshot
from devices.dra.usage import Usage
from devices.dra.visibility import Place, View, reaches

#: Steps of upstream's search that fit in its ten seconds (8 million took 5.9 s on two cores).
PATIENCE: Final = 14_000_000
#: Steps of this search after which it gives up as well.
OWN_PATIENCE: Final = 150_000


class Search:
    """The search for all claims of one Pod on one node. Use once."""

    def __init__(
        self,
        snapshot: Snapshot,
        node: Node,
        view: View,
        used: Usage,
        wishes: Sequence[Wish],
        ready: Sequence[Sequence[Sequence[Ready]]],
        trackers: Sequence[Sequence[Tracker]],
    ) -> None:
        self.gates = snapshot.gates
        self.node, self.view, self.used = node, view, used
        self.wishes, self.ready, self.trackers = wishes, ready, trackers
        self.places = view.places
        self.whole = [place.key in used.whole for place in self.places]
        self.shares = "DRAConsumableCapacity" in self.gates
        self.counters = Counters(used, self.gates)
        self.groups = Groups(used) if "DRADeviceCompatibilityGroups" in self.gates else None
        self.allocating: dict[int, set[int]] = {}
        self.sharing: dict[int, list[Mapping[str, Quantity]]] = {}
        self.picks: list[list[Pick]] = [[] for _ in wishes]
        self.work = 0
        self.steps = 0
        self.bounds = Bounds(self)
        self.memory = Memory(self)

    def run(self) -> bool:
        """Whether all claims can be allocated; `picks` then says how. Raises Fatal."""
        try:
            return self._claim(0)
        except TooMany:
            return False
        except RecursionError as error:
            raise Fatal("timed out trying to allocate devices", "SEARCH_TOO_LONG") from error
        finally:  # they refer to the search: without them it is freed at once
            del self.bounds, self.memory

    # The recursion: claim → request → alternative → device

    def _claim(self, claim: int) -> bool:
        self.step()
        if claim >= len(self.wishes):
            return True
        if not self.bounds.claims_can_fit(claim):
            return False
        return self._request(claim, 0)

    def _request(self, claim: int, request: int) -> bool:
        self.step()
        if request >= len(self.ready[claim]):
            try:
                return self._claim(claim + 1)
            except TooMany:
                # Another alternative of an earlier claim may leave this one what it needs.
                return False
        if claim == request == 0:  # nobody comes here twice
            return self._alternatives(claim, request)
        key = self.memory.key(claim, request)
        if self.memory.failed(key):
            return False
        before = self.work
        done = self._alternatives(claim, request)
        if not done:
            self.memory.remember(key, self.work - before)
        return done

    def _alternatives(self, claim: int, request: int) -> bool:
        alternatives = self.ready[claim][request]
        if not alternatives[0].want.alternative:
            return self._device(claim, request, alternatives[0], 0, 0)
        too_many = True
        for ready in alternatives:
            try:
                if self._device(claim, request, ready, 0, 0):
                    return True
            except TooMany:
                continue
            too_many = False
        if too_many:
            raise TooMany
        return False

    def _device(self, claim: int, request: int, ready: Ready, got: int, start: int) -> bool:
        """Chooses the next device of a request, having got so many, looking from a place on."""
        self.step()
        if ready.want.everything and not ready.every:
            return False
        if got >= ready.need:
            return self._request(claim, request + 1)
        if ready.need - got > MOST_DEVICES - len(self.picks[claim]):
            raise TooMany
        if ready.want.everything:
            undo = self._take(claim, ready, ready.every[got], must=True)
            return undo is not None and self._go_on(claim, request, ready, got, 0, undo)
        if not self._can_fill(claim, ready, ready.need - got, start):
            return False
        for index in range(start, len(self.places)):
            if self._usable(claim, ready, index):
                undo = self._take(claim, ready, index, must=False)
                if undo is not None and self._go_on(claim, request, ready, got, index + 1, undo):
                    return True
        return False

    def _go_on(
        self, claim: int, request: int, ready: Ready, got: int, start: int, undo: Undoing
    ) -> bool:
        """The rest of the search with one more device; gives it back where that fails."""
        done = False
        try:
            done = self._device(claim, request, ready, got + 1, start)
        finally:
            if not done:
                self._give_back(claim, ready, undo)
        return done

    def step(self) -> None:
        """Counts one step. Raises Fatal when upstream, or this search, would give up."""
        self.work += 1
        self.steps += 1
        if self.work > PATIENCE or self.steps > OWN_PATIENCE:
            raise Fatal("timed out trying to allocate devices", "SEARCH_TOO_LONG")

    def _can_fill(self, claim: int, ready: Ready, need: int, start: int) -> bool:
        """False where too few devices are left; meets the selectors that upstream would meet."""
        left = self.bounds.most(claim, ready, start)
        if left >= need:
            return True
        for index in range(start, len(self.places)):
            self._usable(claim, ready, index)
        if "DRASchedulerFilterTimeout" in self.gates:
            self.work += sum(comb(left, size) for size in range(1, need))
            self.step()
        return False

    # One device

    def _usable(self, claim: int, ready: Ready, index: int) -> bool:
        """In use is cheap and asked first, then selectors, then capacity. Raises Fatal."""
        ask = ready.want.ask
        if ask.admin:
            if claim in self.allocating.get(index, ()):
                return False
        elif self.in_use(index):
            return False
        if not self._selected(claim, ready, index):
            return False
        return not self.shares or self._share(claim, ready, index) is not None

    def could_serve(self, claim: int, ready: Ready, index: int) -> bool:
        """Whether a place could serve a request by itself, whatever else is chosen."""
        place, ask = self.places[index], ready.want.ask
        device = place.device
        return (
            ready.answers[index] is True
            and not ready.closed[index]
            and (bool(ask.admin) or not self.whole[index])
            and not (device.binding_conditions and not self.gates.binding)
            and (not place.piece.reach.per_device or reaches(device.reach, self.node))
            and self._operations_known(place)
            and not (device.consumes and "DRAPartitionableDevices" not in self.gates)
            and (not self.shares or self._share(claim, ready, index, alone=True) is not None)
        )

    def in_use(self, index: int) -> bool:
        """Whether a place is taken as a whole, by others or by this attempt."""
        return self.whole[index] or bool(self.allocating.get(index))

    def _selected(self, claim: int, ready: Ready, index: int) -> bool:
        place = self.places[index]
        device = place.device
        if device.binding_conditions and not self.gates.binding:
            return False
        answer = ready.answers[index]
        if isinstance(answer, Failure):
            raise fatal(self.wishes[claim], ready.want, answer, place, self.gates.at_least("1.37"))
        if not answer:
            return False
        return not place.piece.reach.per_device or reaches(device.reach, self.node)

    def _share(
        self, claim: int, ready: Ready, index: int, *, alone: bool = False
    ) -> Mapping[str, Quantity] | None:
        """What a share of the device takes, or None where it does not fit or is not allowed;
        with ``alone`` as if this attempt had taken nothing of it yet.
        """
        place = self.places[index]
        device, ask = place.device, ready.want.ask
        if not device.shareable and ask.capacity is None and not device.capacity:
            return {}
        try:
            taken = consumed(ask.capacity, device.capacity, self.gates)
        except NotRepresentable as error:
            text = f"claim {self.wishes[claim].name}, request {ask.name}: checking capacity"
            raise Fatal(f"{text} for device {place}: {error}", "CAPACITY_NOT_OFFERED") from error
        if taken is None:
            return None
        more: dict[str, Quantity] = {}
        for share in () if alone else self.sharing.get(index, ()):
            for name, amount in share.items():
                more[name] = more[name] + amount if name in more else amount
        used = self.used.consumed.get(place.key, {})
        return taken if fits(taken, device.capacity, used, more) else None

    def _take(self, claim: int, ready: Ready, index: int, *, must: bool) -> Undoing | None:
        """Takes a device for a request, or answers None. With ``must`` a constraint that refuses
        it ends the attempt, as it does for mode All.
        """
        place, want = self.places[index], ready.want
        device = place.device
        shared = self.shares and device.shareable
        if want.ask.admin:
            if not shared and claim in self.allocating.get(index, ()):
                return None
        elif self.in_use(index):
            return None
        if not self._operations_known(place):
            return None
        partitions = "DRAPartitionableDevices" in self.gates
        if device.consumes and not partitions:
            return None
        undo = Undoing(index)
        if device.consumes and not (shared and self._shared_already(index)):
            if self.groups is not None:
                undo.groups = self.groups.take(place.pool, device)
                if undo.groups is None:
                    return None
            if not self.counters.take(place.pool, device):
                self._give_back(claim, ready, undo)
                return None
            undo.counters = True
        if ready.closed[index] or not self._add_to_constraints(claim, ready, place, undo, must):
            self._give_back(claim, ready, undo)
            return None
        if not shared:
            self.allocating.setdefault(index, set()).add(claim)
            undo.marked = True
        taken = self._share(claim, ready, index) if self.shares else None
        if self.shares and taken is None:
            self._give_back(claim, ready, undo)
            return None
        if shared and taken is not None:
            self.sharing.setdefault(index, []).append(taken)
            undo.shared = taken
        self.picks[claim].append(Pick(want, place, taken if shared else None))
        undo.picked = True
        return undo

    def _operations_known(self, place: Place) -> bool:
        """Devices that want node operations skipped need a gate and a node that knows it."""
        if not place.piece.skipped_operations:
            return True
        if "DRAOptionalNodeOperations" not in self.gates:
            # Older schedulers do not know the field at all.
            return not self.gates.at_least("1.37")
        return "DRAOptionalNodeOperations" in (self.node.declared_features or ())

    def _shared_already(self, index: int) -> bool:
        """Further shares of a device do not pay its counters again.

        Through 1.36 a share that took no capacity is not remembered.
        """
        key = self.places[index].key
        if key in self.used.consumed or self.sharing.get(index):
            return True
        return self.gates.at_least("1.37") and key in self.used.shared

    def _add_to_constraints(
        self, claim: int, ready: Ready, place: Place, undo: Undoing, must: bool
    ) -> bool:
        want = ready.want
        for tracker in self.trackers[claim]:
            value = None
            if tracker.applies(want.request.name, want.alternative):
                value = self.attribute(claim, ready, place, tracker.attribute)
                if value is None or not tracker.admits(value, want.request.name):
                    if must:
                        raise Fatal(
                            f"claim {self.wishes[claim].name}, request {want.ask.name}: cannot add "
                            f"device {place} because a claim constraint would not be satisfied",
                            "CONSTRAINT_NOT_SATISFIED",
                        )
                    return False
                tracker.add(value, want.request.name)
            undo.attributes.append(value)
        return True

    def attribute(self, claim: int, ready: Ready, place: Place, name: str) -> Attribute | None:
        """The value that a constraint compares: derived by the request, or published."""
        for derived, expression in ready.want.ask.derived:
            if derived == name:
                return self._derived(claim, name, expression, place)
        return attribute_of(place.device.attributes, name, place.pool.driver)

    def _derived(self, claim: int, name: str, expression: str, place: Place) -> Attribute | None:
        try:
            return derive(expression, place.device, place.pool.driver, self.gates)
        except DerivedError as error:
            text = f"evaluate derived attribute {name} on device {place} failed: {error}"
            raise Fatal(text, "SELECTOR_FAILS") from error

    def _give_back(self, claim: int, ready: Ready, undo: Undoing) -> None:
        index = undo.index
        place, want = self.places[index], ready.want
        if undo.picked:
            self.picks[claim].pop()
        if undo.shared is not None:
            self.sharing[index].pop()
        if undo.marked:
            self.allocating[index].discard(claim)
        for tracker, value in reversed(
            list(zip(self.trackers[claim], undo.attributes, strict=False))
        ):
            if value is not None:
                tracker.remove(want.request.name)
        if undo.groups is not None and self.groups is not None:
            self.groups.give_back(undo.groups)
        if undo.counters:
            self.counters.give_back(place.pool, place.device)


def picked(search: Search) -> Iterator[Pick]:
    """Every device that a successful search chose, claim by claim, in the order of choosing."""
    for picks in search.picks:
        yield from picks
