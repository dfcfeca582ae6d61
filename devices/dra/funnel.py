"""Where the devices go: step by step from all that are published to those that a request can have.

48 devices → 20 of the class → 6 with the memory → 2 untainted → 0 free, and at each step what
removed the others: a clause of a selector, a taint, or the claims that hold them. Each step looks
at one device at a time; what devices do to each other is the allocator's to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest

from devices.dra.capacity_requests import NotRepresentable, consumed, fits
from devices.dra.claims import ALL, DeviceKey
from devices.dra.clauses import clauses
from devices.dra.matching import Broken, outcomes, selector
from devices.dra.pools import PoolKey, counter_sets, pools
from devices.dra.requests import Want, closed
from devices.dra.selector import Fault
from devices.dra.slices import Slice
from devices.dra.snapshot import Snapshot
from devices.dra.standing import counters_left, fits_counters, rule_taints, taints
from devices.dra.taints import untolerated
from devices.dra.usage import Usage

#: How many holders, taints or pools a step names.
NAMED = 8


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a funnel: what has to be so, how many devices are left, and what removed the
    others. ``code`` is the code for a request whose devices all end here.

    ``clause`` is the condition in CEL where the step is one (``selector`` says of which selector of
    the request it is a part); ``by`` are the most frequent removers: claims, taints or pools.
    """

    what: str
    code: str
    left: int
    removed: int
    clause: str = ""
    selector: int | None = None
    by: tuple[str, ...] = ()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class Funnel:
    """The steps for one request (or one alternative), and what is left on the best single node.

    ``need`` is how many devices are asked for, None where all that match are; ``most`` is the most
    that match on one node, whether they are free or not.
    """

    claim: int
    request: str
    device_class: str
    published: int
    steps: tuple[Step, ...]
    need: int | None
    best: int
    best_node: str
    most: int = 0

    @property
    def left(self) -> int:
        """Devices that are left after the last step, wherever they are."""
        return self.steps[-1].left if self.steps else self.published

    @property
    def ends(self) -> Step | None:
        """The step after which too few devices are left for the request, None where enough are."""
        enough = 1 if self.need is None else self.need
        return next((step for step in self.steps if step.left < enough), None)


#: Positions of the devices that are still there, by slice; equal slices share one tuple.
_Alive = dict[str, tuple[int, ...]]
#: What removes a device, or nothing; an empty name removes it without naming anything.
_Test = Callable[[Slice, int], str | None]


def funnel(snapshot: Snapshot, want: Want, used: Usage) -> Funnel:
    """The funnel of one request of a claim, by what is taken now."""
    return _Funnel(snapshot, want, used).run()


class _Funnel:
    def __init__(self, snapshot: Snapshot, want: Want, used: Usage) -> None:
        self.snapshot, self.want, self.used = snapshot, want, used
        current = [piece for pool in pools(snapshot).values() for piece in pool.slices]
        self.slices: Mapping[str, Slice] = {piece.name: piece for piece in current}
        whole = {n: tuple(range(n)) for n in {len(piece.devices) for piece in current}}
        self.alive: _Alive = {
            piece.name: whole[len(piece.devices)] for piece in current if piece.devices
        }
        self.steps: list[Step] = []

    def run(self) -> Funnel:
        published = self._count()
        ask = self.want.ask
        self._pools()
        for number, expression in enumerate(self.want.device_class.selectors):
            self._selector("of the class", "NO_DEVICE_IN_CLASS", expression, number, False)
        for number, expression in enumerate(ask.selectors):
            self._selector("", "NO_DEVICE_MATCHES_SELECTOR", expression, number, True)
        odd, busy = _odd(self.snapshot), _busy(self.used)
        if "DRAConsumableCapacity" in self.snapshot.gates and ask.capacity is not None:
            self._keep("with that capacity", "CAPACITY_NOT_OFFERED", self._offered)
        most, _ = self._best()
        self._keep("usable in this cluster", "FEATURE_OFF", self._feature, odd.__contains__)
        self._keep(
            "tolerated",
            "DEVICE_TAINTED",
            self._taint,
            lambda name: name in odd or bool(rule_taints(self.snapshot, self.slices[name])),
        )
        if not ask.admin:
            used_here = lambda name: _pool_key(self.slices[name]) in busy  # noqa: E731
            self._keep("free", "NO_MATCHING_DEVICE_FREE", self._holder, used_here)
            self._keep("with enough left", "CAPACITY_TAKEN", self._share, used_here)
            self._keep(
                "not blocked by partitions in use",
                "COUNTERS_TAKEN",
                self._counters(),
                odd.__contains__,
            )
        best, node = self._best()
        return Funnel(
            self.want.claim,
            self.want.name,
            self.want.device_class.name,
            published,
            tuple(self.steps),
            None if ask.mode == ALL else ask.count,
            best,
            node,
            most,
        )

    # one step

    def _keep(
        self, what: str, code: str, test: _Test, where: Callable[[str], bool] | None = None
    ) -> None:
        """Removes what a test names, in the slices where it can; a step that removes nothing is
        left out.
        """
        by: Counter[str] = Counter()
        removed = 0
        for name, positions in list(self.alive.items()):
            if where is not None and not where(name):
                continue
            piece = self.slices[name]
            kept = []
            for position in positions:
                remover = test(piece, position)
                if remover is None:
                    kept.append(position)
                else:
                    removed += 1
                    by[remover] += 1
            if len(kept) != len(positions):
                self._set(name, tuple(kept))
        if removed:
            del by[""]
            most = nsmallest(NAMED, by.items(), key=lambda b: (-b[1], b[0]))
            named = tuple(name for name, _ in most)
            self.steps.append(Step(what, code, self._count(), removed, by=named))

    def _selector(
        self, what: str, code: str, expression: str | None, number: int, own: bool
    ) -> None:
        """One selector, clause by clause where each clause compiles by itself."""
        parts = clauses(expression) if expression is not None and own else (expression,)
        if len(parts) > 1 and any(isinstance(selector(self.snapshot, p), Broken) for p in parts):
            parts = (expression,)
        for part in parts:
            removed, failed = self._clause(part)
            if removed:
                self.steps.append(
                    Step(
                        what or "that meet a condition",
                        _code(code, failed),
                        self._count(),
                        removed,
                        part or "",
                        number if own else None,
                        failed=failed,
                    )
                )

    def _clause(self, expression: str | None) -> tuple[int, str]:
        removed, failed = 0, ""
        compiled = selector(self.snapshot, expression)
        if expression is None or isinstance(compiled, Broken):
            removed = self._count()
            self.alive.clear()
            return removed, compiled.why if isinstance(compiled, Broken) else "no CEL"
        found = outcomes(self.snapshot, expression)
        # Equal slices have the very same row and positions: each pair of them is looked at once.
        known: dict[tuple[int, int], tuple[int, ...]] = {}
        for name, positions in list(self.alive.items()):
            row = found[name]
            kept = known.get((id(row), id(positions)))
            if kept is None:
                kept = tuple([position for position in positions if row[position] is True])
                known[id(row), id(positions)] = positions if kept == positions else kept
            if len(kept) != len(positions):
                removed += len(positions) - len(kept)
                failed = failed or next(
                    (a.why for p in positions if isinstance(a := row[p], Fault)), ""
                )
                self._set(name, kept)
        return removed, failed

    # the tests

    def _pools(self) -> None:
        broken = {
            (pool.driver, pool.name): "POOL_INVALID" if pool.invalid else "POOL_INCOMPLETE"
            for pool in pools(self.snapshot).values()
            if pool.invalid or pool.incomplete
        }
        codes = sorted(set(broken.values()))
        for code in codes:
            self._keep(
                "in pools that can be used",
                code,
                lambda piece, _, code=code: (  # type: ignore[misc]
                    f"{piece.driver}/{piece.pool}"
                    if broken.get((piece.driver, piece.pool)) == code
                    else None
                ),
            )

    def _feature(self, piece: Slice, position: int) -> str | None:
        device, gates = piece.devices[position], self.snapshot.gates
        if device.binding_conditions and not gates.binding:
            return "DRADeviceBindingConditions"
        if device.consumes and "DRAPartitionableDevices" not in gates:
            return "DRAPartitionableDevices"
        return None

    def _taint(self, piece: Slice, position: int) -> str | None:
        tolerations = self.want.ask.tolerations
        if not closed(self.snapshot, tolerations).of(piece)[position]:
            return None
        found = untolerated(taints(self.snapshot, piece, piece.devices[position]), tolerations)
        return str(found) if found is not None else ""

    def _offered(self, piece: Slice, position: int) -> str | None:
        device, ask = piece.devices[position], self.want.ask
        try:
            taken = consumed(ask.capacity, device.capacity, self.snapshot.gates)
        except NotRepresentable:
            return ""
        if taken is None or not fits(taken, device.capacity, {}, {}):
            return ""
        return None

    def _holder(self, piece: Slice, position: int) -> str | None:
        key = _key(piece, position)
        holders = self.used.whole.get(key)
        return str(holders[0]) if holders else None

    def _share(self, piece: Slice, position: int) -> str | None:
        key, device = _key(piece, position), piece.devices[position]
        if key not in self.used.consumed:
            return None
        try:
            taken = consumed(self.want.ask.capacity, device.capacity, self.snapshot.gates) or {}
        except NotRepresentable:
            return ""
        if fits(taken, device.capacity, self.used.consumed[key], {}):
            return None
        holders = self.used.shared.get(key)
        return str(holders[0]) if holders else ""

    def _counters(self) -> _Test:
        left: dict[tuple[str, str], Mapping[str, Mapping[str, object]]] = {}

        def test(piece: Slice, position: int) -> str | None:
            device = piece.devices[position]
            if not device.consumes:
                return None
            key = (piece.driver, piece.pool)
            if key not in left:
                pool = pools(self.snapshot)[key]
                left[key] = counters_left(pool.slices, self.used, counter_sets(pool.slices))
            if fits_counters(device, left[key]):  # type: ignore[arg-type]
                return None
            return self._who_blocks(piece, position)

        return test

    def _who_blocks(self, piece: Slice, position: int) -> str:
        """A claim that holds another partition of the same hardware."""
        wanted = {use.counter_set for use in piece.devices[position].consumes}
        for other in pools(self.snapshot)[piece.driver, piece.pool].slices:
            for device in other.devices:
                key = (other.driver, other.pool, device.name)
                if wanted & {use.counter_set for use in device.consumes}:
                    for claim in self.used.holders(key):
                        return str(claim)
        return ""

    # counting

    def _set(self, name: str, kept: tuple[int, ...]) -> None:
        if kept:
            self.alive[name] = kept
        else:
            del self.alive[name]

    def _count(self) -> int:
        return sum(map(len, self.alive.values()))

    def _best(self) -> tuple[int, str]:
        """The most that are left on one node, those that every node reaches included."""
        local: Counter[str] = Counter()
        anywhere = 0
        for piece, positions in self._left():
            if piece.reach.per_device:
                for position in positions:
                    node = piece.devices[position].reach.node_name
                    local[node] += bool(node)
                    anywhere += not node
            elif piece.reach.node_name:
                local[piece.reach.node_name] += len(positions)
            else:
                anywhere += len(positions)
        node = max(local, key=lambda name: (local[name], name), default="")
        return local[node] + anywhere, node

    def _left(self) -> Iterator[tuple[Slice, Sequence[int]]]:
        for name, positions in self.alive.items():
            yield self.slices[name], positions


def _odd(snapshot: Snapshot) -> frozenset[str]:
    """Slices with a device that is more than a plain one: a taint, counters, conditions."""
    return snapshot.once(
        "odd slices",
        lambda s: frozenset(
            piece.name
            for piece in s.slices
            if not piece.plain
            and any(d.taints or d.consumes or d.binding_conditions for d in piece.devices)
        ),
    )


def _busy(used: Usage) -> frozenset[PoolKey]:
    """Pools of which something is taken."""
    return frozenset((driver, pool) for driver, pool, _ in (*used.whole, *used.shared))


def _pool_key(piece: Slice) -> PoolKey:
    return (piece.driver, piece.pool)


def _key(piece: Slice, position: int) -> DeviceKey:
    return (piece.driver, piece.pool, piece.devices[position].name)


def _code(code: str, failed: str) -> str:
    """A selector that fails on a device ends everything, whatever it selects elsewhere."""
    if not failed:
        return code
    return "SELECTOR_NO_SUCH_KEY" if "no such key" in failed else "SELECTOR_FAILS"
