"""Conditions between parameters: whether they hold for answers, and how they read."""

from __future__ import annotations

from collections.abc import Mapping

from devices.dra.templates.content import Between, Condition, Parameter, Value


def holds(condition: Condition, values: Mapping[str, Value]) -> bool:
    """Whether every part holds. A parameter without a value, because it is not shown or stays
    unanswered, fulfils nothing.
    """
    return all(
        name in values and _fulfils(wanted, values[name]) for name, wanted in condition.items()
    )


def _fulfils(wanted: tuple[Value, ...] | Between, value: Value) -> bool:
    if not isinstance(wanted, Between):
        # 1 == True in Python; a count of 1 is not a switch that is on.
        return any(
            one == value and isinstance(one, bool) == isinstance(value, bool) for one in wanted
        )
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    above = wanted.minimum is None or value >= wanted.minimum
    return above and (wanted.maximum is None or value <= wanted.maximum)


def in_words(condition: Condition, parameters: Mapping[str, Parameter]) -> str:
    """ "Memory per GPU is 80 GB or 141 GB, and Same PCIe root is on"."""
    return ", and ".join(
        f"{parameters[name].label} is {_wanted(parameters[name], wanted)}"
        if name in parameters
        else f"{name} is something"
        for name, wanted in condition.items()
    )


def _wanted(parameter: Parameter, wanted: tuple[Value, ...] | Between) -> str:
    if isinstance(wanted, Between):
        if wanted.minimum is None:
            return f"at most {wanted.maximum}"
        if wanted.maximum is None:
            return f"at least {wanted.minimum}"
        return f"from {wanted.minimum} to {wanted.maximum}"
    said = [
        ("on" if one else "off") if isinstance(one, bool) else parameter.words(one)
        for one in wanted
    ]
    return f"{', '.join(said[:-1])} or {said[-1]}" if len(said) > 1 else "".join(said)
