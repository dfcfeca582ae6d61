"""Functions over lists: Kubernetes' own, and cel-go's ext.Lists and ext.Sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

from devices.dra.cel.arguments import a_list, an_int
from devices.dra.cel.arithmetic import add
from devices.dra.cel.values import (
    NONE,
    CelError,
    Optional,
    compare,
    contains,
    has_key,
    no_overload,
    type_name,
)


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
    if an_int(depth) < 0:
        raise CelError("level must be non-negative")
    out: list[Any] = []
    for item in a_list(value):
        out += flatten(item, depth - 1) if isinstance(item, list | tuple) and depth > 0 else [item]
    return out


def reverse(value: Any) -> list[Any]:
    return list(reversed(a_list(value)))


def all_in(items: Any, wanted: Any) -> bool:
    return all(contains(items, item) for item in a_list(wanted))


def in_order(value: Any) -> list[Any]:
    """``sort()``: elements of one type that has an order."""
    return in_order_of(value, value)


def in_order_of(value: Any, keys: Any) -> list[Any]:
    """``sortBy``: the elements by their keys; equal ones stay as they were."""
    items, by = a_list(value), a_list(keys)
    if len(items) != len(by):
        raise CelError(f"expected a list of the same size as the keys, {len(items)} and {len(by)}")
    kinds = {type_name(key) for key in by}
    if len(kinds) > 1:
        raise CelError("list elements must have the same type")
    for key in by:
        compare(key, key)  # also a single one must have an order
    order = cmp_to_key(compare)
    return [items[place] for place in sorted(range(len(items)), key=lambda place: order(by[place]))]


def numbers(amount: Any) -> list[int]:
    """``lists.range(n)``: from 0 to n - 1. Through 1.36 a negative n yields nothing."""
    if an_int(amount) < 0:
        raise CelError(f"lists.range: size must be non-negative, got {amount}")
    return list(range(an_int(amount)))


def end(place: int) -> Callable[[Any], Optional]:
    """``first()`` and ``last()``: nothing of an empty list."""
    return lambda value: Optional(True, items[place]) if (items := a_list(value)) else NONE


def with_entry(found: Any, *entry: Any) -> dict[Any, Any]:
    """The map that ``transformMap`` and ``transformMapEntry`` build, with one entry more."""
    more = entry[0] if len(entry) == 1 else {entry[0]: entry[1]}
    if not isinstance(found, Mapping) or not isinstance(more, Mapping):
        raise no_overload(found)
    for key in more:
        if has_key(found, key):
            raise CelError(f"insert failed: key {key} already exists")
    return {**found, **more}


def unwrapped(value: Any) -> list[Any]:
    """``optional.unwrap(list)``: the values that are there."""
    items = a_list(value)
    if not all(isinstance(item, Optional) for item in items):
        raise no_overload(value)
    return [item.value for item in items if item.present]
