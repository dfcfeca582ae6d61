"""Requests made ready for the search: their class, how many devices, and which devices they select.

Answers are computed per slice and kept with the snapshot, so that equal requests, and equal
slices, are asked once. Evaluation is lazy and in upstream's order: class selectors before the
request's own, and the first that fails on a device ends the attempt only if it is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from devices.dra.claims import ALL, Ask, ClaimSpec, DeviceClass, Request
from devices.dra.matching import Broken, outcomes, selector
from devices.dra.selector import Fault, Outcome
from devices.dra.slices import Slice
from devices.dra.snapshot import Snapshot
from devices.dra.standing import rule_taints, taints
from devices.dra.taints import Toleration, untolerated

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Wish:
    """A claim to be allocated; ``name`` is ``namespace/name`` as messages show it."""

    name: str
    spec: ClaimSpec


@dataclass(frozen=True, slots=True)
class Failure:
    """A selector that ends the attempt: whose it is, which one, and what goes wrong."""

    of_class: bool
    index: int
    why: str
    compiles: bool = True
    unmodelled: bool = False


#: What all selectors of a request together answer for one device.
Answer = bool | Failure


@dataclass(frozen=True, slots=True)
class Want:
    """One request, or one alternative of a request, ready for the search."""

    claim: int
    request: Request
    ask: Ask
    device_class: DeviceClass
    alternative: str = ""

    @property
    def name(self) -> str:
        """How results name it: ``request`` or ``request/alternative``."""
        return f"{self.request.name}/{self.alternative}" if self.alternative else self.request.name

    @property
    def everything(self) -> bool:
        """Whether it wants all matching devices."""
        return self.ask.mode == ALL

    @property
    def key(self) -> tuple[str, tuple[str | None, ...]]:
        """What its answers depend on."""
        return (self.device_class.name, self.ask.selectors)


class PerSlice(dict[str, Sequence[Value]]):
    """A row of values for each slice, one for each of its devices, and a number for equal rows.

    Rows are computed when they are first asked for; ``number`` is equal for slices whose rows are
    equal, which is how nodes that are alike are recognised.
    """

    def __init__(self, compute: Callable[[Slice], Sequence[Value]]) -> None:
        super().__init__()
        self._compute = compute
        self._numbers: dict[str, int] = {}
        self._known: dict[object, int] = {}

    def of(self, piece: Slice) -> Sequence[Value]:
        """The row of a slice."""
        row = self.get(piece.name)
        if row is None:
            row = self[piece.name] = self._compute(piece)
        return row

    def number(self, piece: Slice) -> int:
        """A number that slices share whose rows are equal."""
        number = self._numbers.get(piece.name)
        if number is None:
            row = self.of(piece)
            number = self._numbers[piece.name] = self._known.setdefault(row, len(self._known))
        return number


def answers(snapshot: Snapshot, want: Want) -> PerSlice[Answer]:
    """Which devices the class and the request select."""
    return snapshot.once(("answers", want.key), lambda s: PerSlice(_Answers(s, want)))


def closed(snapshot: Snapshot, tolerations: tuple[Toleration, ...]) -> PerSlice[bool]:
    """Which devices a taint keeps away from a request with these tolerations."""

    def compute(snapshot: Snapshot) -> PerSlice[bool]:
        tainted = Snapshot(rules=snapshot.rules, gates=snapshot.gates)
        return PerSlice(lambda piece: _closed(tainted, tolerations, piece))

    return snapshot.once(("closed", tolerations), compute)


def _closed(
    snapshot: Snapshot, tolerations: tuple[Toleration, ...], piece: Slice
) -> tuple[bool, ...]:
    if piece.plain and not rule_taints(snapshot, piece):
        return (False,) * len(piece.devices)
    return tuple(
        untolerated(taints(snapshot, piece, device), tolerations) is not None
        for device in piece.devices
    )


class _Answers:
    """Selectors of a class and a request, one after the other, as a function of a slice."""

    def __init__(self, snapshot: Snapshot, want: Want) -> None:
        sources = ((True, want.device_class.selectors), (False, want.ask.selectors))
        self._steps = [
            (of_class, index, selector(snapshot, expression), _found(snapshot, expression))
            for of_class, expressions in sources
            for index, expression in enumerate(expressions)
        ]

    def __call__(self, piece: Slice) -> tuple[Answer, ...]:
        row: tuple[Answer, ...] = (True,) * len(piece.devices)
        for of_class, index, compiled, found in self._steps:
            if isinstance(compiled, Broken):
                failure = Failure(of_class, index, compiled.why, False, compiled.unmodelled)
                more: Sequence[Answer] = (failure,) * len(piece.devices)
            else:
                more = [
                    Failure(of_class, index, outcome.why) if isinstance(outcome, Fault) else outcome
                    for outcome in found[piece.name]
                ]
            row = tuple(
                [after if now is True else now for now, after in zip(row, more, strict=True)]
            )
        return row


def _found(snapshot: Snapshot, expression: str | None) -> Mapping[str, Sequence[Outcome]]:
    return {} if expression is None else outcomes(snapshot, expression)
