"""Checks of what several parts of a template hold: names, amounts, conditions. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from devices.dra.names import is_dns_label
from devices.dra.quantity import QuantityError, parse
from devices.dra.templates.content import (
    Amount,
    Between,
    Choice,
    Condition,
    ConfigPart,
    ConstraintPart,
    Count,
    Parameter,
    Switch,
    TolerationPart,
)
from devices.dra.templates.pointers import PointerError, read_at
from devices.dra.templates.problems import Problem

_QUALIFIED: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?/)?[A-Za-z_][A-Za-z0-9_-]{0,31}", re.ASCII
)
_DRIVER: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", re.ASCII)

Found = Iterator[Problem]


def of_amounts(capacity: Mapping[str, str], path: str) -> Found:
    for name, text in capacity.items():
        yield from of_qualified(name, f"{path}.{name}")
        yield from of_quantity(text, f"{path}.{name}")


def of_tolerations(tolerations: Iterable[TolerationPart], path: str) -> Found:
    for number, one in enumerate(tolerations):
        if not one.key and one.operator != "Exists":
            yield Problem(f"{path}[{number}].key", "Without a key the operator is Exists.")
        if one.operator == "Exists" and one.value:
            yield Problem(f"{path}[{number}].value", "Exists takes no value.")


# --- constraints and config -----------------------------------------------------------------------


def of_constraints(
    parts: Iterable[ConstraintPart],
    names: frozenset[str],
    parameters: Mapping[str, Parameter],
    path: str,
) -> Found:
    for number, one in enumerate(parts):
        where = f"{path}[{number}]"
        if bool(one.match_attribute) == bool(one.distinct_attribute):
            yield Problem(where, "Give match_attribute or distinct_attribute, one of the two.")
        for field in ("match_attribute", "distinct_attribute"):
            attribute = getattr(one, field)
            if attribute and not ("/" in attribute and _QUALIFIED.fullmatch(attribute)):
                text = (
                    "Give the full name with its domain, such as resource.kubernetes.io/pcieRoot."
                )
                yield Problem(f"{where}.{field}", text)
        yield from unknown(one.requests, names, f"{where}.requests")
        yield from of_condition(one.when, parameters, f"{where}.when")


def of_config(
    parts: Iterable[ConfigPart],
    names: frozenset[str],
    parameters: Mapping[str, Parameter],
    path: str,
) -> Found:
    for number, one in enumerate(parts):
        where = f"{path}[{number}]"
        if not _DRIVER.fullmatch(one.driver):
            yield Problem(f"{where}.driver", "Give the driver's name, such as gpu.example.com.")
        yield from unknown(one.requests, names, f"{where}.requests")
        yield from of_condition(one.when, parameters, f"{where}.when")
        for pointer, name in one.values.items():
            spot = f"{where}.values.{pointer}"
            if not isinstance(parameters.get(name), Count | Amount | Switch):
                yield Problem(spot, f"No count, quantity or switch is called {name}.")
            try:
                read_at(one.parameters, pointer)
            except PointerError as error:
                yield Problem(spot, str(error))


# --- small things ---------------------------------------------------------------------------------


def of_condition(condition: Condition, before: Mapping[str, Parameter], path: str) -> Found:
    for name, wanted in condition.items():
        where = f"{path}.{name}"
        parameter = before.get(name)
        if parameter is None:
            yield Problem(where, f"No parameter above this is called {name}.")
        elif isinstance(parameter, Amount):
            yield Problem(where, "A quantity cannot be a condition; take a choice or a count.")
        elif isinstance(wanted, Between):
            if not isinstance(parameter, Count):
                yield Problem(where, f"Only a count has bounds; list values of {name}.")
        else:
            for value in wanted:
                if not possible(parameter, value):
                    yield Problem(where, f"{name} never is {value!r}.")
            if not wanted:
                yield Problem(where, "List at least one value.")


def possible(parameter: Parameter, value: object) -> bool:
    match parameter:
        case Choice():
            return value in {option.value for option in parameter.options}
        case Count():
            return isinstance(value, int) and not isinstance(value, bool)
        case Amount():
            return isinstance(value, str) and not any(of_quantity(value, ""))
        case Switch():
            return isinstance(value, bool)


def unknown(
    asked: Iterable[str],
    names: frozenset[str],
    path: str,
    *,
    as_key: bool = False,
    single: bool = False,
) -> Found:
    for number, name in enumerate(asked):
        if name not in names:
            where = path if single else f"{path}.{name}" if as_key else f"{path}[{number}]"
            yield Problem(where, f"No request is called {name}; there are {listed(names)}.")


def doubled(names: Iterable[str], path: str, noun: str) -> Found:
    for name, times in Counter(names).items():
        if times > 1:
            yield Problem(path, f"{times} have the name {name}; each {noun} needs its own.")


def of_label(name: str, path: str) -> Found:
    if not is_dns_label(name):
        yield Problem(path, "Use lower-case letters, digits and '-', at most 63 characters.")


def of_qualified(name: str, path: str) -> Found:
    if not _QUALIFIED.fullmatch(name):
        yield Problem(path, "Give the name of a capacity, such as gpu.example.com/memory.")


def of_quantity(text: str, path: str) -> Found:
    try:
        if parse(text).nanos < 0:
            yield Problem(path, "An amount is not below nothing.")
    except QuantityError as error:
        yield Problem(path, f"{error}.")


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
