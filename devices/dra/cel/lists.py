"""Functions over lists: Kubernetes' own, and cel-go's ext.Lists and ext.Sets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from devices.dra.cel.arguments import a_list, an_int
from devices.dra.cel.arithmetic import add
from devices.dra.cel.values import CelError, compare, contains


def is_sorted(value: Any) -> bool:
    items = a_list(value)
    return all(compare(a, b) <= 0 for a, b in pairwise(items))


def total(value: Any) -> Any:
    items = a_list(value)
    if not items:
        return 0
    total = items[0]
    for item in items[1:]:
        total = add(total, item)
    return total


def extreme(sign: int, name: str) -> Callable[[Any], Any]:
    def extreme(value: Any) -> Any:
        items = a_list(value)
        if not items:
            raise CelError(f"{name} called on empty list")
        best = items[0]
        for item in items[1:]:
            if compare(item, best) * sign > 0:
                best = item
        return best

    return extreme


def includes(value: Any, wanted: Any) -> bool:
    """Also on a scalar, which then counts as a list of one (KEP-5491)."""
    return contains(value if isinstance(value, list | tuple) else [value], wanted)


def distinct(value: Any) -> list[Any]:
    out: list[Any] = []
    for item in a_list(value):
        if not contains(out, item):
            out.append(item)
    return out


def part(value: Any, start: Any, end: Any) -> list[Any]:
    items, first, last = a_list(value), an_int(start), an_int(end)
    if first < 0 or last < 0 or first > last or last > len(items):
        raise CelError(f"cannot slice({first}, {last}), list is length {len(items)}")
    return list(items[first:last])


def flatten(value: Any, depth: Any = 1) -> list[Any]:
    out: list[Any] = []
    for item in a_list(value):
        out += flatten(item, depth - 1) if isinstance(item, list | tuple) and depth > 0 else [item]
    return out


def reverse(value: Any) -> Any:
    return value[::-1] if isinstance(value, str) else list(reversed(a_list(value)))


def all_in(items: Any, wanted: Any) -> bool:
    return all(contains(items, item) for item in a_list(wanted))
