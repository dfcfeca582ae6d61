"""Values placed in a driver's configuration by JSON pointer (RFC 6901); never text in text."""

from __future__ import annotations

from copy import deepcopy
from typing import Any


class PointerError(ValueError):
    """The pointer leads nowhere; the message says at which step."""


def read_at(data: Any, pointer: str) -> Any:
    """What stands at a pointer such as "/sharing/clients". Raises PointerError."""
    for step in _steps(pointer):
        data = data[_key(data, step)]
    return data


def placed(data: Any, pointer: str, value: Any) -> Any:
    """A copy with another value at the pointer, where one stands already. Raises PointerError."""
    data = deepcopy(data)
    *way, last = _steps(pointer)
    spot = data
    for step in way:
        spot = spot[_key(spot, step)]
    spot[_key(spot, last)] = value
    return data


def _steps(pointer: str) -> list[str]:
    if not pointer.startswith("/"):
        raise PointerError("A pointer starts with '/', such as /sharing/clients.")
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _key(data: Any, step: str) -> Any:
    if isinstance(data, dict) and step in data:
        return step
    if isinstance(data, list) and step.isdecimal() and int(step) < len(data):
        return int(step)
    raise PointerError(f"The parameters have nothing at {step!r}; put what it is by default there.")
