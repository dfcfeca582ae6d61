"""Lists and lengths of time as sentences carry them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

_UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def some_of(names: Sequence[str], most: int, *, by: str = ", ") -> str:
    """The first few names, and how many more: "a, b and 3 more"."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return by.join(names[:most]) + more


def many(number: int, one: str, several: str = "") -> str:
    """A number and its noun, with its verb where both are given: "1 Pod holds", "2 Pods hold"."""
    return f"{number} {one}" if number == 1 else f"{number} {several or one + 's'}"


def lasting(length: timedelta) -> str:
    """A length of time in its two largest units, rounded: "2 days 3 hours", "40 minutes"."""
    rest = max(int(length.total_seconds()), 0)
    for size, smaller in ((86_400, 3_600), (3_600, 60)):
        if rest >= size:
            rest = round(rest / smaller) * smaller
    told = []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            told.append(many(count, unit))
    return " ".join(told[:2]) or "no time"
