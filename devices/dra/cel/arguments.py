"""What the functions of CEL check of their arguments; a wrong type is "no such overload"."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devices.dra.cel.values import Uint, no_overload


def a_text(value: Any) -> str:
    if not isinstance(value, str):
        raise no_overload(value)
    return value


def an_int(value: Any) -> int:
    if isinstance(value, bool | Uint) or not isinstance(value, int):
        raise no_overload(value)
    return value


def a_list(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise no_overload(value)
    return value
