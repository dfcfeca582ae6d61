"""Windows and lengths of time as people write them, and back. Pure.

"Mon-Thu 22:00-04:00 Europe/Berlin", one window a line; "90m", "24h", "7d".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import time, timedelta
from typing import Final

from migrationplan.windows import DAYS, Window

_LINE: Final = re.compile(
    r"(?P<days>\S+)\s+(?P<begins>\d{1,2}:\d{2})\s*-\s*(?P<ends>\d{1,2}:\d{2})\s+(?P<zone>\S+)"
)
_LENGTH: Final = re.compile(r"(?P<number>\d{1,6})\s*(?P<unit>[mhd])")
_UNITS: Final = {"m": 60, "h": 3600, "d": 86400}


def windows(text: str) -> tuple[Window, ...]:
    """Raises `ValueError` with a sentence that names the line."""
    return tuple(_window(line.strip()) for line in text.splitlines() if line.strip())


def _window(line: str) -> Window:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"Write a window such as Mon-Thu 22:00-04:00 Europe/Berlin, not “{line}”.")
    try:
        begins, ends = (time.fromisoformat(found[name].zfill(5)) for name in ("begins", "ends"))
    except ValueError:
        raise ValueError(f"There is no such time of day in “{line}”.") from None
    return Window(_days(found["days"]), begins, ends, found["zone"])


def _days(text: str) -> frozenset[int]:
    if text.lower() == "daily":
        return frozenset(range(7))
    names = {name.lower(): number for number, name in enumerate(DAYS)}
    days: set[int] = set()
    for part in text.lower().split(","):
        first, _, last = part.partition("-")
        if first not in names or (last and last not in names):
            raise ValueError(f"Write days as Mon-Thu, Sat,Sun or daily, not “{text}”.")
        start, end = names[first], names[last or first]
        days |= {(start + step) % 7 for step in range((end - start) % 7 + 1)}
    return frozenset(days)


def windows_text(found: Iterable[Window]) -> str:
    """The other way; what `windows` reads."""
    return "\n".join(
        f"{_days_text(one.days)} {one.begins:%H:%M}-{one.ends:%H:%M} {one.zone}" for one in found
    )


def _days_text(days: frozenset[int]) -> str:
    if len(days) == len(DAYS):
        return "daily"
    found = sorted(days)
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        return f"{DAYS[found[0]]}-{DAYS[found[-1]]}"
    return ",".join(DAYS[one] for one in found)


def length(text: str) -> timedelta:
    """Raises `ValueError` with a sentence; "0" is none."""
    if text.strip() == "0":
        return timedelta(0)
    found = _LENGTH.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError("Write a length such as 90m, 24h or 7d; 0 for none.")
    return timedelta(seconds=int(found["number"]) * _UNITS[found["unit"]])


def length_text(found: timedelta) -> str:
    """The other way, in the largest unit that fits whole."""
    seconds = int(found.total_seconds())
    if seconds == 0:
        return "0"
    for unit in ("d", "h", "m"):
        if seconds % _UNITS[unit] == 0:
            return f"{seconds // _UNITS[unit]}{unit}"
    return f"{max(seconds // 60, 1)}m"
