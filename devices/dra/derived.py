"""Attributes that a request derives from a device by an expression, for constraints (KEP-6080)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from devices.dra.cel.evaluate import Unmodelled
from devices.dra.gates import Gates
from devices.dra.selector import Fault, SelectorError, compile_derived
from devices.dra.semver import Semver
from devices.dra.slices import Attribute, Device

_KINDS: Final[tuple[tuple[type, str, Callable[[Any], Any]], ...]] = (
    (bool, "bool", bool),
    (int, "int", int),
    (str, "string", str),
    (Semver, "version", str),
)


class DerivedError(ValueError):
    """The expression does not compile, fails on the device, or yields what is no attribute."""


def derive(expression: str, device: Device, driver: str, gates: Gates) -> Attribute:
    """The attribute that an expression yields for a device. Raises DerivedError."""
    try:
        value = compile_derived(expression, gates).value(device, driver)
    except (SelectorError, Unmodelled) as error:
        raise DerivedError(str(error)) from error
    if isinstance(value, Fault):
        raise DerivedError(value.why)
    if isinstance(value, list | tuple):
        return _list(value)
    for kind, name, convert in _KINDS:
        if isinstance(value, kind):
            return Attribute(name, convert(value))
    raise DerivedError(f"unsupported CEL return type: {type(value).__name__}")


def _list(values: list[Any] | tuple[Any, ...]) -> Attribute:
    if not values:
        return Attribute("strings", ())
    for kind, name, convert in _KINDS:
        if isinstance(values[0], kind):
            if any(type(value) is not type(values[0]) for value in values):
                raise DerivedError("a list of values of different types")
            return Attribute(f"{name}s", tuple(convert(value) for value in values))
    raise DerivedError(f"unsupported list element type: {type(values[0]).__name__}")
