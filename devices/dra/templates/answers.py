"""Answers to a template's questions: what is shown, what is allowed, and what is taken.

What is sent for a parameter that is not shown is refused by `answers` (the API and the verb) and
dropped by `settle` (a form that is drawn again, since its person has just chosen otherwise).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from devices.dra.quantity import Quantity, QuantityError, parse
from devices.dra.templates.conditions import holds, in_words
from devices.dra.templates.content import (
    Amount,
    Choice,
    Count,
    Option,
    Parameter,
    Switch,
    Template,
    Value,
    in_unit,
)

_NOTHING: Final = (None, "")
LONGEST_AMOUNT: Final = 40
"""Characters of a quantity; more is nobody's device."""


class BadValue(Exception):
    """Values that the template does not allow; `fields` says per parameter what would be right."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in fields.items()))
        self.fields = dict(fields)


@dataclass(frozen=True, slots=True)
class Question:
    """A parameter as it stands for the answers before it: which options, which bounds.

    `default` is None where nothing is taken for granted; `required` says whether an answer has to
    be there. Bounds are those of a count (whole numbers) or of a quantity.
    """

    parameter: Parameter
    default: Value | None
    required: bool
    options: tuple[Option, ...] = ()
    minimum: int | Quantity | None = None
    maximum: int | Quantity | None = None

    @property
    def name(self) -> str:
        return self.parameter.name

    @property
    def bounds(self) -> str:
        """What is allowed, as a sentence."""
        match self.parameter:
            case Choice():
                values = ", ".join(map(_named, self.options))
                return f"Choose one of {values}." if values else "There is nothing to choose."
            case Count():
                return f"Give a whole number from {self.minimum} to {self.maximum}."
            case Amount() as amount:
                least = in_unit(str(self.minimum), amount.unit) or str(self.minimum)
                steps = ""
                if amount.step:
                    steps = f", in steps of {in_unit(amount.step, amount.unit) or amount.step}"
                return f"Give an amount from {least} to {amount.words(str(self.maximum))}{steps}."
            case Switch():
                return "Give true or false."

    def read(self, raw: Any) -> Value:
        """The value that is meant, or ValueError with a sentence."""
        match self.parameter:
            case Choice():
                # An option named 80 is meant by the number, too: shells and YAML make one of it.
                if isinstance(raw, str | int) and not isinstance(raw, bool):
                    return self._choose(str(raw))
            case Count():
                number = _whole(raw)
                if number is not None and self.minimum <= number <= self.maximum:  # type: ignore[operator]
                    return number
            case Amount() as amount:
                found = _amount(raw, amount.unit)
                if found is not None and self._allowed(found, amount):
                    return str(found)
            case Switch():  # browsers send "on" or nothing
                if isinstance(raw, bool) or raw in ("on", "true", "false", *_NOTHING):
                    return raw in (True, "on", "true")
        raise ValueError(self.bounds)

    def takes(self, raw: Any) -> bool:
        """Whether it would be taken."""
        try:
            self.read(raw)
        except ValueError:
            return False
        return True

    def _choose(self, value: str) -> str:
        assert isinstance(self.parameter, Choice)
        offered = {option.value for option in self.options}
        if value in offered:
            return value
        gone = [one for one in self.parameter.options if one.value == value and not one.offered]
        if gone and gone[0].instead in offered:
            return gone[0].instead
        because = f"{gone[0].because} " if gone and gone[0].because else ""
        raise ValueError(because + self.bounds)

    def _allowed(self, found: Quantity, amount: Amount) -> bool:
        assert isinstance(self.minimum, Quantity) and isinstance(self.maximum, Quantity)
        if not self.minimum <= found <= self.maximum:
            return False
        step = parse(amount.step).nanos if amount.step else 0
        return not step or (found.nanos - self.minimum.nanos) % step == 0


def questions(
    template: Template, raw: Mapping[str, Any], *, tenant: str = ""
) -> Iterator[tuple[Question, Value | None, str]]:
    """Every parameter that is shown, in order, with its value and what is wrong with what was sent.

    What is wrong counts as its default for the questions after it; without one, as unanswered.
    """
    own = template.tenant_defaults.get(tenant, {})
    values: dict[str, Value] = {}
    for parameter in template.parameters:
        if not holds(parameter.when, values):
            continue
        question = _question(parameter, values, own.get(parameter.name))
        value, wrong = question.default, ""
        if parameter.name in raw:
            sent = raw[parameter.name]
            if sent in _NOTHING and _may_be_empty(parameter):
                value = None
            else:
                try:
                    value = question.read(sent)
                except ValueError as error:
                    wrong = str(error)
        if value is None and question.required and not wrong:
            wrong = question.bounds
        if value is not None:
            values[parameter.name] = value
        yield question, value, wrong


def answers(template: Template, raw: Mapping[str, Any], *, tenant: str = "") -> dict[str, Value]:
    """Checked values by parameter; a missing one takes its default.

    Raises `BadValue` for every value that is not allowed, for names the template does not know, and
    for values of parameters that are not shown.
    """
    values: dict[str, Value] = {}
    wrong: dict[str, str] = {}
    shown: set[str] = set()
    for question, value, text in questions(template, raw, tenant=tenant):
        shown.add(question.name)
        if text:
            wrong[question.name] = text
        elif value is not None:
            values[question.name] = value
    parameters = {parameter.name: parameter for parameter in template.parameters}
    for name in sorted(set(raw) - shown):
        if name not in parameters:
            known = ", ".join(sorted(parameters)) or "none"
            wrong[name] = f"This template has no such parameter; it has {known}."
        elif raw[name] is not None and not set(parameters[name].when) & set(wrong):
            words = in_words(parameters[name].when, parameters)
            wrong[name] = f"This is asked only where {words}; leave it out."
    if wrong:
        raise BadValue(wrong)
    return values


def settle(template: Template, raw: Mapping[str, Any], *, tenant: str = "") -> dict[str, Value]:
    """The nearest values that are allowed: what is not shown is dropped, what is wrong gives way to
    the default.
    """
    return {
        question.name: value
        for question, value, _ in questions(template, raw, tenant=tenant)
        if value is not None
    }


def _question(parameter: Parameter, values: Mapping[str, Value], own: Value | None) -> Question:
    """`own` is the tenant's default; one that is not allowed here gives way to what is."""
    default: Value | None = parameter.default if own is None else own
    match parameter:
        case Choice():
            options = tuple(
                one for one in parameter.options if one.offered and holds(one.when, values)
            )
            offered = [one.value for one in options]
            if default not in offered:
                fallback = _first(parameter, offered)
                default = parameter.default if parameter.default in offered else fallback
            required = not parameter.optional or _required(parameter, values)
            return Question(parameter, default, required, options)
        case Count():
            minimum, maximum = parameter.minimum, parameter.maximum
            for other in parameter.bounds:
                if holds(other.when, values):
                    minimum = minimum if other.minimum is None else other.minimum
                    maximum = maximum if other.maximum is None else other.maximum
                    break
            usual = default if isinstance(default, int) else parameter.default
            default = min(max(usual, minimum), maximum)
            return Question(parameter, default, True, (), minimum, maximum)
        case Amount():
            return _amount_question(parameter, values, default)
        case Switch():
            return Question(parameter, default, True)


def _amount_question(
    parameter: Amount, values: Mapping[str, Value], default: Value | None
) -> Question:
    minimum, maximum = parse(parameter.minimum), parse(parameter.maximum)
    for other in parameter.bounds:
        if holds(other.when, values):
            minimum = parse(other.minimum) if other.minimum else minimum
            maximum = parse(other.maximum) if other.maximum else maximum
            break
    required = not parameter.optional or _required(parameter, values)
    question = Question(parameter, None, required, (), minimum, maximum)
    if default in _NOTHING:
        return question
    try:
        taken = question.read(default)
    except ValueError:
        taken = str(minimum)
    return Question(parameter, taken, required, (), minimum, maximum)


def _named(option: Option) -> str:
    """As people read it, with what programs send where that differs."""
    same = option.label == option.value
    return option.label if same else f"{option.label} ({option.value})"


def _first(parameter: Choice, offered: list[str]) -> str | None:
    """Where the usual answer is not offered, the first one is; an author who gives no default
    wants a decision.
    """
    return offered[0] if offered and parameter.default else None


def _required(parameter: Choice | Amount, values: Mapping[str, Value]) -> bool:
    return bool(parameter.required_when) and holds(parameter.required_when, values)


def _may_be_empty(parameter: Parameter) -> bool:
    return isinstance(parameter, Choice | Amount) and parameter.optional


def _whole(raw: Any) -> int | None:
    if isinstance(raw, bool | float):
        return None
    try:
        return int(raw)
    except (TypeError, ValueError):
        return None


def _amount(raw: Any, unit: str) -> Quantity | None:
    """A quantity as Kubernetes writes it, or a bare number that counts in the unit."""
    if isinstance(raw, bool) or not isinstance(raw, str | int):
        return None
    text = str(raw).strip()
    if not text.isascii() or len(text) > LONGEST_AMOUNT:
        return None
    try:
        return parse(text + unit if text[-1:].isdigit() and "e" not in text.lower() else text)
    except QuantityError:
        return None
