"""Checks of a template's parameters: bounds, options, conditions, and what answers do. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from devices.dra.quantity import Quantity, parse
from devices.dra.templates.content import (
    Amount,
    Choice,
    Count,
    Fragments,
    Parameter,
    Switch,
    Template,
)
from devices.dra.templates.part_checks import (
    Found,
    doubled,
    of_amounts,
    of_condition,
    of_config,
    of_constraints,
    of_qualified,
    of_quantity,
    of_tolerations,
    possible,
    unknown,
)
from devices.dra.templates.problems import Problem

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}", re.ASCII)
_UNIT: Final = re.compile(r"|[munkMGTP]|[KMGTPE]i", re.ASCII)


# --- parameters -----------------------------------------------------------------------------------


def of_parameters(template: Template) -> Found:
    names = template.names
    yield from doubled([one.name for one in template.parameters], "parameters", "parameter")
    before: dict[str, Parameter] = {}
    for number, parameter in enumerate(template.parameters):
        path = f"parameters[{number}]"
        if not _NAME.fullmatch(parameter.name):
            yield Problem(f"{path}.name", "Use lower-case letters, digits, '-' and '_'.")
        yield from of_condition(parameter.when, before, f"{path}.when")
        match parameter:
            case Choice():
                yield from of_condition(parameter.required_when, before, f"{path}.required_when")
                yield from _choice(parameter, template, names, before, path)
            case Count():
                yield from _count(parameter, names, before, path)
            case Amount():
                yield from of_condition(parameter.required_when, before, f"{path}.required_when")
                yield from _amount(parameter, names, before, path)
            case Switch():
                yield from _fragments(parameter, template, names, {**before}, path)
        before[parameter.name] = parameter


def _choice(
    choice: Choice,
    template: Template,
    names: frozenset[str],
    before: Mapping[str, Parameter],
    path: str,
) -> Found:
    if not choice.options:
        yield Problem(f"{path}.options", "A choice has at least one option.")
    yield from doubled([one.value for one in choice.options], f"{path}.options", "option")
    offered = {one.value for one in choice.options if one.offered}
    if choice.default and choice.default not in offered:
        yield Problem(f"{path}.default", "The default is the value of an option that is offered.")
    yield from _optional(choice, path)
    for index, option in enumerate(choice.options):
        where = f"{path}.options[{index}]"
        if not option.value:
            yield Problem(f"{where}.value", "Give the option a value.")
        if option.instead and option.instead not in offered:
            yield Problem(f"{where}.instead", "Name the value of an option that is offered.")
        if option.hidden and not option.instead and not option.because:
            yield Problem(f"{where}.because", "Say in a sentence why it is not offered any more.")
        yield from of_condition(option.when, before, f"{where}.when")
        yield from _fragments(option, template, names, before, where)


def _optional(parameter: Choice | Amount, path: str) -> Found:
    if parameter.required_when and not parameter.optional:
        yield Problem(f"{path}.required_when", "Only what is optional becomes required.")
    if parameter.default and parameter.optional:
        yield Problem(f"{path}.default", "What is optional has no default; leave one of them out.")


def _fragments(
    part: Fragments,
    template: Template,
    names: frozenset[str],
    before: Mapping[str, Parameter],
    path: str,
) -> Found:
    for field in ("selectors", "device_class", "count", "capacity", "tolerations"):
        yield from unknown(getattr(part, field), names, f"{path}.{field}", as_key=True)
    for name, count in part.count.items():
        if count < 1:
            yield Problem(f"{path}.count.{name}", "Give a whole number from 1 on.")
    for name, capacity in part.capacity.items():
        yield from of_amounts(capacity, f"{path}.capacity.{name}")
    for name, tolerations in part.tolerations.items():
        yield from of_tolerations(tolerations, f"{path}.tolerations.{name}")
    yield from of_constraints(part.constraints, names, before, f"{path}.constraints")
    yield from of_config(part.config, names, before, f"{path}.config")
    known = {one.name: [each.name for each in one.alternatives] for one in template.requests}
    for name, order in part.alternatives.items():
        where = f"{path}.alternatives.{name}"
        if not known.get(name):
            yield Problem(where, "No request with alternatives has this name.")
        elif not order or len(set(order)) < len(order) or not set(order) <= set(known[name]):
            yield Problem(where, f"Take some of {', '.join(known[name])}, each once.")


def _count(
    count: Count, names: frozenset[str], before: Mapping[str, Parameter], path: str
) -> Found:
    if count.request:
        yield from unknown([count.request], names, f"{path}.request", single=True)
    if count.minimum > count.maximum:
        yield Problem(f"{path}.maximum", "The maximum is below the minimum.")
    elif not count.minimum <= count.default <= count.maximum:
        text = f"The default is outside of {count.minimum} to {count.maximum}."
        yield Problem(f"{path}.default", text)
    if count.request and count.minimum < 1:
        yield Problem(f"{path}.minimum", "A request asks for at least one device.")
    for index, other in enumerate(count.bounds):
        where = f"{path}.bounds[{index}]"
        yield from of_condition(other.when, before, f"{where}.when")
        minimum = count.minimum if other.minimum is None else other.minimum
        maximum = count.maximum if other.maximum is None else other.maximum
        if minimum > maximum:
            yield Problem(where, "The maximum is below the minimum.")
        if count.request and minimum < 1:
            yield Problem(f"{where}.minimum", "A request asks for at least one device.")


def _amount(
    amount: Amount, names: frozenset[str], before: Mapping[str, Parameter], path: str
) -> Found:
    yield from unknown([amount.request], names, f"{path}.request", single=True)
    yield from of_qualified(amount.capacity, f"{path}.capacity")
    if amount.unit == "E" or not _UNIT.fullmatch(amount.unit):
        yield Problem(f"{path}.unit", "Give a suffix of quantities, such as Gi, M or nothing.")
    yield from _optional(amount, path)
    texts = {"minimum": amount.minimum, "maximum": amount.maximum}
    texts |= {field: text for field in ("step", "default") if (text := getattr(amount, field))}
    wrong = [
        found for field, text in texts.items() for found in of_quantity(text, f"{path}.{field}")
    ]
    yield from wrong
    if not wrong:
        yield from _range(parse(amount.minimum), parse(amount.maximum), f"{path}.maximum")
        if amount.default and not parse(amount.minimum) <= parse(amount.default) <= parse(
            amount.maximum
        ):
            yield Problem(f"{path}.default", "The default is outside of the bounds.")
        if amount.step and not parse(amount.step).nanos:
            yield Problem(f"{path}.step", "A step is more than nothing.")
    for index, other in enumerate(amount.bounds):
        where = f"{path}.bounds[{index}]"
        yield from of_condition(other.when, before, f"{where}.when")
        given = {field: getattr(other, field) for field in ("minimum", "maximum")}
        bad = [
            found
            for field, text in given.items()
            if text
            for found in of_quantity(text, f"{where}.{field}")
        ]
        yield from bad
        if not bad and not wrong:
            ends = [parse(given[field] or texts[field]) for field in ("minimum", "maximum")]
            yield from _range(ends[0], ends[1], where)


def _range(minimum: Quantity, maximum: Quantity, path: str) -> Found:
    if minimum > maximum:
        yield Problem(path, "The maximum is below the minimum.")


def of_tenant_defaults(template: Template, parameters: Mapping[str, Parameter]) -> Found:
    """Bounds are no matter here: what other answers exclude gives way to the nearest they allow."""
    for tenant, values in template.tenant_defaults.items():
        for name, value in values.items():
            path = f"tenant_defaults.{tenant}.{name}"
            if name not in parameters:
                yield Problem(path, f"No parameter is called {name}.")
            elif not possible(parameters[name], value):
                yield Problem(path, f"{name} never is {value!r}.")
