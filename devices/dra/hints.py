"""What would let claims in that do not fit now: each change was tried, and what is listed works.

Smallest first: waiting for the fewest holders changes nothing of the request; then a clause that
looks before it reads, one clause or constraint less, a taint tolerated, less of a capacity, fewer
devices, another class of the same driver, other labels of a node; and where no single change of the
request helps, two of them together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Final

from devices.dra.allocate import Forecast, Kind, forecast
from devices.dra.claims import EXACT, MOST_DEVICES, DeviceClass, DeviceKey
from devices.dra.clauses import clauses
from devices.dra.matching import Broken, all_match, outcomes, selector
from devices.dra.nodelabels import Labels, relabelled, relabellings
from devices.dra.pods import Pod
from devices.dra.quantity import ZERO, Quantity
from devices.dra.released import released
from devices.dra.requests import Want, Wish, answers
from devices.dra.restate import restate
from devices.dra.selector import Fault
from devices.dra.slices import Slice
from devices.dra.snapshot import Snapshot
from devices.dra.standing import taints
from devices.dra.taints import DeviceTaint, Toleration, untolerated
from devices.dra.usage import usage
from devices.dra.waits import waits, wants_of
from devices.dra.wishes import (
    with_capacity,
    with_class,
    with_count,
    with_selector,
    with_toleration,
    without_clause,
    without_constraint,
)

#: How many other classes are tried.
MOST_CLASSES: Final = 12
#: How many pairs of changes are tried where no single one helps.
MOST_PAIRS: Final = 40


class Change(IntEnum):
    """What a hint changes, the smallest change first."""

    WAIT = 1
    GUARD = 2
    CLAUSE = 3
    CONSTRAINT = 4
    TOLERATE = 5
    CAPACITY = 6
    COUNT = 7
    CLASS = 8
    PLACE = 9
    LABEL = 10
    TWO = 11


@dataclass(frozen=True, slots=True)
class Hint:
    """One change after which the claims fit, on ``node``.

    Either ``release`` names the claims to wait for (``until`` when that is, where their Pods have
    said when they end), or ``wishes`` are what to ask for instead, or ``labels`` are what the node
    would have to be labelled with, or ``pod`` is the Pod as it would have to be.
    """

    change: Change
    text: str
    node: str
    size: int = 1
    release: tuple[str, ...] = ()
    wishes: tuple[Wish, ...] = ()
    until: datetime | None = None
    labels: Labels = ()
    pod: Pod | None = None

    def applied(
        self, snapshot: Snapshot, wishes: Sequence[Wish]
    ) -> tuple[Snapshot, Sequence[Wish]]:
        """The cluster and the claims after the change."""
        after = released(snapshot, self.release) if self.release else snapshot
        if self.labels:
            after = relabelled(after, self.node, self.labels)
        return after, self.wishes or wishes


def hints(
    snapshot: Snapshot, wishes: Sequence[Wish], seen: Forecast | None = None
) -> tuple[Hint, ...]:
    """Changes of which each lets the claims in, the smallest first; empty where they fit, or where
    no change of these kinds helps. Two changes together stand for one hint, and only where no
    single change of the request helps.
    """
    seen = seen or forecast(snapshot, wishes)
    found: list[Hint] = []
    kinds: tuple[_Options, ...] = (_guards, _clauses, _capacities, _counts)
    if all(group.verdict.kind is not Kind.FATAL for group in seen.groups):
        if seen.fitting:
            return ()
        found += (
            Hint(Change.WAIT, wait.text, wait.node, len(wait.claims), wait.claims, until=wait.until)
            for wait in waits(snapshot, seen)
        )
        found += _labels(snapshot, seen)
        kinds = (_clauses, _constraints, _tolerations, _capacities, _counts, _classes)
    single = [hint for kind in kinds for hint in _tried(snapshot, seen.wishes, kind)]
    found += single or _pairs(snapshot, seen.wishes, kinds)
    return tuple(sorted(found, key=lambda hint: (hint.change, hint.size, hint.text)))


def nearest(found: Sequence[Hint]) -> Hint | None:
    """The smallest change of the request itself that fits now."""
    return next((hint for hint in found if hint.wishes), None)


#: A change of the wishes that has not been tried yet.
@dataclass(frozen=True, slots=True)
class _Option:
    change: Change
    text: str
    wishes: tuple[Wish, ...]
    size: int = 1


_Options = Callable[[Snapshot, Sequence[Wish]], Iterable[_Option]]


def _tried(snapshot: Snapshot, wishes: Sequence[Wish], options: _Options) -> Iterator[Hint]:
    for option in options(snapshot, wishes):
        after = forecast(snapshot, option.wishes)
        failing = any(group.verdict.kind is Kind.FATAL for group in after.groups)
        if after.fitting and not failing:
            yield Hint(
                option.change, option.text, after.fitting[0], option.size, wishes=option.wishes
            )


def _pairs(snapshot: Snapshot, wishes: Sequence[Wish], kinds: Sequence[_Options]) -> Iterator[Hint]:
    """Two changes of the request together, none of which helps alone."""
    tried = 0
    seen: set[tuple[Wish, ...]] = set()
    for place, kind in enumerate(kinds):
        for first in kind(snapshot, wishes):
            for other in kinds[place:]:
                for second in other(snapshot, first.wishes):
                    if second.wishes in seen:
                        continue
                    seen.add(second.wishes)
                    tried += 1
                    if tried > MOST_PAIRS:
                        return
                    text = f"{first.text}, and {second.text}"
                    both = _Option(Change.TWO, text, second.wishes, first.size + second.size)
                    yield from _tried(snapshot, wishes, lambda s, w, both=both: (both,))  # type: ignore[misc]


def _labels(snapshot: Snapshot, seen: Forecast) -> Iterator[Hint]:
    """Labels of one node of each group of equal nodes."""
    for change in relabellings(snapshot, (group.nodes[0] for group in seen.groups)):
        after = relabelled(snapshot, change.node, change.labels)
        if forecast(after, seen.wishes, [change.node]).fitting:
            size = len(change.labels)
            yield Hint(Change.LABEL, change.text, change.node, size, labels=change.labels)


# --- changes of the request ---


def _clauses(snapshot: Snapshot, wishes: Sequence[Wish]) -> Iterator[_Option]:
    for number, wish in enumerate(wishes):
        for want in wants_of(snapshot, [wish]):
            for index, expression in enumerate(want.ask.selectors):
                for part, clause in enumerate(clauses(expression or "")):
                    changed = without_clause(wish, want.name, index, part)
                    text = f"without the condition “{restate(clause) or clause}” of {want.name}"
                    yield _Option(Change.CLAUSE, text, _with(wishes, number, changed))


def _guards(snapshot: Snapshot, wishes: Sequence[Wish]) -> Iterator[_Option]:
    """Clauses that read an attribute which some devices lack, with a look before the reading."""
    for number, wish in enumerate(wishes):
        for want in wants_of(snapshot, [wish]):
            for index, expression in enumerate(want.ask.selectors):
                guarded = [_guarded(snapshot, clause) for clause in clauses(expression or "")]
                if any(names for _, names in guarded):
                    joined = " && ".join(clause for clause, _ in guarded)
                    changed = with_selector(wish, want.name, index, joined)
                    what = ", ".join(sorted({name for _, names in guarded for name in names}))
                    text = f"looking for {what} before reading it in {want.name}"
                    yield _Option(Change.GUARD, text, _with(wishes, number, changed))


def _guarded(snapshot: Snapshot, clause: str) -> tuple[str, tuple[str, ...]]:
    """A clause that fails on some device, and the names that it looks for first now."""
    if isinstance(selector(snapshot, clause), Broken):
        return clause, ()
    rows = outcomes(snapshot, clause)
    missing = {
        answer.why.partition("no such key: ")[2].split(" ")[0].rstrip(",")
        for piece in snapshot.slices
        for answer in rows[piece.name]
        if isinstance(answer, Fault) and "no such key: " in answer.why
    }
    found = {
        (kind, domain, name) for kind, domain, name in _READS.findall(clause) if name in missing
    }
    looks = [f'"{name}" in device.{kind}["{domain}"]' for kind, domain, name in sorted(found)]
    names = tuple(f"{domain}/{name}" for _, domain, name in sorted(found))
    return " && ".join([*looks, f"({clause})"] if looks else [clause]), names


_READS = re.compile(
    r"""device\.(attributes|capacity)\[\s*["']([^"']+)["']\s*\]\.([A-Za-z_][A-Za-z0-9_]*)"""
)


def _constraints(snapshot: Snapshot, wishes: Sequence[Wish]) -> Iterator[_Option]:
    for number, wish in enumerate(wishes):
        for index, constraint in enumerate(wish.spec.constraints):
            name = constraint.match or constraint.distinct
            what = "equal" if constraint.match else "different"
            changed = without_constraint(wish, index)
            text = f"without {name} having to be {what}"
            yield _Option(Change.CONSTRAINT, text, _with(wishes, number, changed))


def _tolerations(snapshot: Snapshot, wishes: Sequence[Wish]) -> Iterator[_Option]:
    for number, wish in enumerate(wishes):
        for want in wants_of(snapshot, [wish]):
            for taint in _taints(snapshot, want):
                toleration = Toleration(taint.key, "Equal", taint.value, taint.effect)
                changed = with_toleration(wish, want.name, toleration)
                text = f"tolerating {taint} in {want.name}"
                yield _Option(Change.TOLERATE, text, _with(wishes, number, changed))


def _capacities(snapshot: Snapshot, wishes: Sequence[Wish]) -> Iterator[_Option]:
    for number, wish in enumerate(wishes):
        for want in wants_of(snapshot, [wish]):
            for name, asked in (want.ask.capacity or {}).items():
                most = _most_left(snapshot, want, name)
                if most is None:
                    changed = with_capacity(wish, want.name, name, None)
                    text = f"without {name}, which no device has, in {want.name}"
                    yield _Option(Change.CAPACITY, text, _with(wishes, number, changed))
                elif ZERO < most < asked:
                    changed = with_capacity(wish, want.name, name, most)
                    text = f"with {most} instead of {asked} of {name} in {want.name}"
                    yield _Option(Change.CAPACITY, text, _with(wishes, number, changed))


def _counts(snapshot: Snapshot, wishes: Sequence[Wish]) -> Iterator[_Option]:
    """The greatest number that fits, of each request alone."""
    for number, wish in enumerate(wishes):
        for want in wants_of(snapshot, [wish]):
            if want.ask.mode != EXACT:
                continue
            for count in range(min(want.ask.count - 1, MOST_DEVICES), 0, -1):
                changed = _with(wishes, number, with_count(wish, want.name, count))
                if forecast(snapshot, changed).fitting:
                    text = f"{count} instead of {want.ask.count} devices in {want.name}"
                    yield _Option(Change.COUNT, text, changed, want.ask.count - count)
                    break


def _classes(snapshot: Snapshot, wishes: Sequence[Wish]) -> Iterator[_Option]:
    for number, wish in enumerate(wishes):
        for want in wants_of(snapshot, [wish]):
            own = _drivers(snapshot, want.device_class)
            others = [
                name
                for name, other in snapshot.classes.items()
                if name != want.device_class.name and own & _drivers(snapshot, other)
            ]
            for name in others[:MOST_CLASSES]:
                changed = with_class(wish, want.name, name)
                text = f"of class {name} instead of {want.device_class.name} in {want.name}"
                yield _Option(Change.CLASS, text, _with(wishes, number, changed))


# --- what devices say ---


def _selected(snapshot: Snapshot, want: Want) -> Iterator[tuple[Slice, int]]:
    rows = answers(snapshot, want)
    for piece in snapshot.slices:
        for position, answer in enumerate(rows.of(piece)):
            if answer is True:
                yield piece, position


def _drivers(snapshot: Snapshot, device_class: DeviceClass) -> frozenset[str]:
    """The drivers whose devices a class selects."""
    return snapshot.once(
        ("drivers of class", device_class.name),
        lambda s: frozenset(
            piece.driver
            for piece in s.slices
            if True in all_match(s, device_class.selectors, piece)
        ),
    )


def _taints(snapshot: Snapshot, want: Want) -> list[DeviceTaint]:
    """Taints that close devices which the request selects, each kind once."""
    found: dict[str, DeviceTaint] = {}
    for piece, position in _selected(snapshot, want):
        taint = untolerated(taints(snapshot, piece, piece.devices[position]), want.ask.tolerations)
        if taint is not None:
            found.setdefault(str(taint), taint)
    return list(found.values())


def _most_left(snapshot: Snapshot, want: Want, name: str) -> Quantity | None:
    """The most that is left of a capacity on one selected device, in steps that it allows; None
    where none of them has such a capacity.
    """
    used = usage(snapshot)
    most: Quantity | None = None
    for piece, position in _selected(snapshot, want):
        device = piece.devices[position]
        capacity = device.capacity.get(name)
        key: DeviceKey = (piece.driver, piece.pool, device.name)
        if capacity is None:
            continue
        most = most or ZERO
        if key in used.whole:
            continue
        left = capacity.value - used.consumed.get(key, {}).get(name, ZERO)
        policy = capacity.policy
        if policy is not None and policy.values is not None:
            left = max((value for value in policy.values if value <= left), default=ZERO)
        elif policy is not None and policy.range is not None:
            least, step = policy.range.min or ZERO, policy.range.step
            if left < least:
                left = ZERO
            elif step is not None and step > ZERO:
                steps = (left.nanos - least.nanos) // step.nanos
                left = Quantity(least.nanos + steps * step.nanos, capacity.value.format)
        most = max(most, left)
    return most


def _with(wishes: Sequence[Wish], number: int, changed: Wish) -> tuple[Wish, ...]:
    return tuple(changed if n == number else wish for n, wish in enumerate(wishes))
