"""The nearest asks that fit: other answers to the template's own questions, tried one by one. Pure.

Everything that is listed was asked of the allocator and fits now. First what changes one answer,
then two; of these the switch before the number, the number before the choice, and the smallest
step. Other answers may hide or bring questions: what is not asked then is left out, what is asked
then has its default.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any, Final

from devices.dra.allocate import Kind, forecast
from devices.dra.objects import ClaimWish
from devices.dra.quantity import Quantity, parse
from devices.dra.templates import (
    Amount,
    Choice,
    Count,
    Draft,
    Question,
    Switch,
    Template,
    Value,
    build,
    questions,
    settle,
    summary,
)
from devices.forecasts.picture import Picture
from devices.forecasts.whatif import outlook, wish_of

#: How many are shown, and how many are tried for them.
MOST_SHOWN: Final = 3
MOST_TRIED: Final = 48
#: Of one quantity so many smaller ones are tried.
MOST_AMOUNTS: Final = 4

#: Draft and answers → the ask that they make.
Asked = Callable[[Draft], ClaimWish]


@dataclass(frozen=True, slots=True)
class Alternative:
    """Other answers with which it fits now: what changes in words, and where it would be."""

    values: Mapping[str, Value]
    changes: tuple[str, ...]
    words: str
    nodes: tuple[str, ...]

    @property
    def text(self) -> str:
        """What changes, as a title."""
        first = ", ".join(self.changes)
        return first[:1].upper() + first[1:]


@dataclass(frozen=True, slots=True)
class _Step:
    """One other answer. ``cost`` orders: by kind of question, then by how far it is."""

    parameter: str
    value: Value
    words: str
    cost: tuple[int, int]


def alternatives(
    seen: Picture,
    template: Template,
    values: Mapping[str, Value],
    asked: Asked,
    *,
    tenant: str = "",
) -> tuple[Alternative, ...]:
    """At most ``MOST_SHOWN`` other asks that fit now, the nearest first; devices and Pod. Questions
    that come up have the ``tenant``'s defaults.
    """
    steps = [list(_steps(question, values)) for question, _, _ in questions(template, values)]
    found: list[Alternative] = []
    kinds: list[frozenset[tuple[str, Value | None]]] = []
    for chosen in islice(_chosen(steps), MOST_TRIED):
        if any(kind <= _kind(chosen) for kind in kinds):
            continue
        wanted = {step.parameter: step.value for step in chosen}
        changed = settle(template, {**values, **wanted}, tenant=tenant)
        if not wanted.items() <= changed.items():
            continue  # these answers do not go together
        draft = build(template, changed)
        wish = asked(draft)
        after = forecast(seen.prepared(), [wish_of(wish)])
        if not after.fitting or any(g.verdict.kind is Kind.FATAL for g in after.groups):
            continue
        nodes = outlook(seen, wish).nodes
        if nodes:
            words = tuple(step.words for step in chosen)
            found.append(Alternative(changed, words, summary(template, draft), nodes))
            kinds.append(_kind(chosen))
        if len(found) == MOST_SHOWN:
            break
    return tuple(found)


def _chosen(steps: list[list[_Step]]) -> Iterator[tuple[_Step, ...]]:
    """Single steps by cost, then pairs of different questions by cost."""
    singles = sorted((step for row in steps for step in row), key=lambda step: step.cost)
    yield from ((step,) for step in singles)
    pairs = [pair for one, other in combinations(steps, 2) for pair in product(one, other)]
    yield from sorted(pairs, key=lambda pair: sorted((s.cost for s in pair), reverse=True))


def _kind(chosen: tuple[_Step, ...]) -> frozenset[tuple[str, Value | None]]:
    """What a change changes: of several numbers the nearest is enough, each option is a thing of
    its own.
    """
    return frozenset(
        (step.parameter, step.value if step.cost[0] == _CHOICE else None) for step in chosen
    )


_SWITCH, _NUMBER, _CHOICE = 0, 1, 2


def _steps(question: Question, values: Mapping[str, Any]) -> Iterator[_Step]:
    """Every other answer to one question; of numbers only smaller ones, for these ask for less."""
    parameter = question.parameter
    now = values.get(parameter.name)
    if now is None:
        return
    match parameter:
        case Switch():
            if now:
                words = f"without “{parameter.label}”"
                yield _Step(parameter.name, False, words, (_SWITCH, 0))
        case Count():
            assert isinstance(question.minimum, int)
            for count in range(int(now) - 1, question.minimum - 1, -1):
                words = f"{count} instead of {now} {parameter.label}"
                yield _Step(parameter.name, count, words, (_NUMBER, int(now) - count))
        case Amount():
            for far, amount in enumerate(_smaller(question, parse(str(now))), start=1):
                words = f"{parameter.words(amount)} instead of {parameter.words(now)}"
                yield _Step(parameter.name, amount, words, (_NUMBER, far))
        case Choice():
            offered = [option.value for option in question.options]
            at = offered.index(str(now))
            for index, option in enumerate(question.options):
                if index != at:
                    words = f"{option.label} instead of {parameter.words(now)}"
                    yield _Step(parameter.name, option.value, words, (_CHOICE, abs(index - at)))


def _smaller(question: Question, now: Quantity) -> Iterator[str]:
    """Half of it, half of that and so on, each on the question's steps; at last the minimum."""
    least, parameter = question.minimum, question.parameter
    assert isinstance(parameter, Amount) and isinstance(least, Quantity)
    step = parse(parameter.step).nanos if parameter.step else 1
    before = now.nanos
    for _ in range(MOST_AMOUNTS):
        half = least.nanos + max(0, before // 2 - least.nanos) // step * step
        if half >= before:
            return
        before = half
        yield str(Quantity(half, now.format))
