"""Which answers can be given together, few changes first: what a check tries. Pure and bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any, Final

from devices.dra.quantity import parse
from devices.dra.templates.answers import questions
from devices.dra.templates.content import Amount, Choice, Count, Parameter, Switch, Template, Value

#: So many different sets of answers are kept, and so many are looked at for them.
MOST_KEPT: Final = 256
MOST_TRIED: Final = 4096


@dataclass(frozen=True, slots=True)
class Reachable:
    """Sets of answers that the template takes, the usual one first, then those with one other
    answer, then two and so on. ``complete`` says that there are no others, of numbers only the
    ends being looked at.
    """

    kept: tuple[Mapping[str, Value], ...]
    complete: bool


def reachable(template: Template) -> Reachable:
    """What can be answered, at most ``MOST_KEPT`` sets of answers."""
    usual = whole(template, {})
    others = [
        [(one.name, value) for value in _candidates(one) if value != usual.get(one.name)]
        for one in template.parameters
    ]
    kept = {_key(usual): usual}
    tried = 0
    for sent in islice(_changes(others), MOST_TRIED):
        tried += 1
        values = whole(template, sent)
        # An answer that is not taken hides behind another: such a set cannot be reached.
        if sent.items() <= values.items():
            kept.setdefault(_key(values), values)
        if len(kept) >= MOST_KEPT:
            break
    complete = len(kept) < MOST_KEPT and tried < MOST_TRIED
    return Reachable(tuple(kept.values()), complete)


def whole(template: Template, sent: Mapping[str, Any]) -> dict[str, Value]:
    """The answers with the usual ones beside them; a question without a usual answer that needs
    one gets the first that it takes.
    """
    raw = dict(sent)
    for _ in template.parameters:
        for question, value, _ in questions(template, raw):
            if value is None and question.required and question.name not in raw:
                first = next(
                    (one for one in _candidates(question.parameter) if question.takes(one)), None
                )
                if first is not None:
                    raw[question.name] = first
                    break
        else:
            break
    found = questions(template, raw)
    return {question.name: value for question, value, _ in found if value is not None}


def _changes(others: list[list[tuple[str, Value]]]) -> Iterator[dict[str, Value]]:
    for size in range(1, len(others) + 1):
        for some in combinations(others, size):
            yield from (dict(chosen) for chosen in product(*some))


def _candidates(parameter: Parameter) -> list[Value]:
    """Every option; of numbers the ends, where what can go wrong does."""
    match parameter:
        case Choice():
            return [option.value for option in parameter.options if option.offered]
        case Count():
            numbers = [parameter.minimum, parameter.maximum]
            for bounds in parameter.bounds:
                numbers += [one for one in (bounds.minimum, bounds.maximum) if one is not None]
            return [*dict.fromkeys(numbers)]
        case Amount():
            texts = [parameter.minimum, parameter.maximum]
            texts += [text for one in parameter.bounds for text in (one.minimum, one.maximum)]
            return [*dict.fromkeys(str(parse(text)) for text in texts if text)]
        case Switch():
            return [False, True]


def _key(values: Mapping[str, Value]) -> tuple[tuple[str, Value], ...]:
    return tuple(values.items())
