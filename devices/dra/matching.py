"""Which devices a class or a request selects, over a whole snapshot, each question asked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from devices.dra.cel.evaluate import Unmodelled
from devices.dra.selector import Fault, Outcome, Selector, SelectorError, compile_selector
from devices.dra.slices import Slice
from devices.dra.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Broken:
    """A selector that cannot be run at all; ``why`` is the compiler's word. ``unmodelled`` means
    that it may well be valid, but uses what is not modelled here: the answer is then unknown.
    """

    why: str
    unmodelled: bool = False


def selector(snapshot: Snapshot, expression: str | None) -> Selector | Broken:
    """An expression as this cluster's scheduler compiles it; None is a selector that is not CEL."""
    if expression is None:
        return Broken("CEL expression empty (unsupported selector type?)")
    try:
        return compile_selector(expression, snapshot.gates)
    except SelectorError as error:
        return Broken(str(error))
    except Unmodelled as error:
        return Broken(str(error), unmodelled=True)


def outcomes(snapshot: Snapshot, expression: str) -> Mapping[str, Sequence[Outcome]]:
    """By slice name, what an expression answers for each device of the slice, lazily.

    An expression that cannot be compiled answers a Fault everywhere.
    """
    return snapshot.once(("outcomes", expression), lambda s: _Outcomes(s, expression))


class _Outcomes(dict[str, Sequence[Outcome]]):
    """Outcomes by slice name, evaluated when first asked for.

    Slices whose devices are, one by one, equal in all that the expression looks at have the very
    same row: of 5,000 slices a few dozen are evaluated.
    """

    def __init__(self, snapshot: Snapshot, expression: str) -> None:
        super().__init__()
        self._selector = selector(snapshot, expression)
        self._slices = slices_by_name(snapshot)
        self._columns = _columns(snapshot)
        self._names: dict[str, tuple[Column, ...]] = {}
        self._rows: dict[tuple[object, ...], Sequence[Outcome]] = {}

    def __missing__(self, name: str) -> Sequence[Outcome]:
        piece = self._slices[name]
        if isinstance(self._selector, Broken):
            answers: Sequence[Outcome] = (Fault(self._selector.why),) * len(piece.devices)
        elif self._selector.paths.whole or not piece.plain:
            answers = self._selector.on_slice(piece.devices, piece.driver)
        else:
            answers = self._shared(piece, self._selector)
        self[name] = answers
        return answers

    def _shared(self, piece: Slice, compiled: Selector) -> Sequence[Outcome]:
        columns = self._names.get(piece.driver)
        if columns is None:
            attributes, capacities = compiled.names(piece.driver)
            columns = self._names[piece.driver] = (
                *(self._columns[False, name] for name in attributes),
                *(self._columns[True, name] for name in capacities),
            )
        key = (piece.driver, len(piece.devices), *[column.number(piece) for column in columns])
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = compiled.on_slice(piece.devices, piece.driver)
        return row


class Column:
    """One attribute or capacity of every device, as a number for each slice: equal numbers mean
    that the slices' devices have, one by one, equal values.
    """

    def __init__(self, name: str, capacity: bool) -> None:
        self._name, self._capacity = name, capacity
        self._numbers: dict[str, int] = {}
        self._known: dict[tuple[object, ...], int] = {}

    def number(self, piece: Slice) -> int:
        """The slice's number."""
        found = self._numbers.get(piece.name)
        if found is None:
            name = self._name
            row: tuple[object, ...]
            if self._capacity:
                row = tuple([device.capacity.get(name) for device in piece.devices])
            else:
                row = tuple([device.attributes.get(name) for device in piece.devices])
            found = self._known.setdefault(row, len(self._known))
            self._numbers[piece.name] = found
        return found


class _Columns(dict[tuple[bool, str], Column]):
    def __missing__(self, key: tuple[bool, str]) -> Column:
        capacity, name = key
        column = self[key] = Column(name, capacity)
        return column


def _columns(snapshot: Snapshot) -> _Columns:
    """The columns of a snapshot by kind and name, shared by all expressions."""
    return snapshot.once("columns", lambda s: _Columns())


def slices_by_name(snapshot: Snapshot) -> Mapping[str, Slice]:
    """All slices by their object name."""
    return snapshot.once("slices by name", lambda s: {piece.name: piece for piece in s.slices})


def all_match(
    snapshot: Snapshot, expressions: Sequence[str | None], piece: Slice
) -> Sequence[Outcome]:
    """For each device of a slice: whether every expression selects it, in the order given.

    The first expression that does not answer true decides, as in the scheduler; a Fault is passed
    on. Unknown kinds of selectors (None) are a Fault.
    """
    answer: Sequence[Outcome] = (True,) * len(piece.devices)
    for expression in expressions:
        if expression is None:
            more: Sequence[Outcome] = (Fault("unsupported selector"),) * len(piece.devices)
        else:
            more = outcomes(snapshot, expression)[piece.name]
        answer = tuple(
            [
                after if before is True else before
                for before, after in zip(answer, more, strict=True)
            ]
        )
    return answer
