"""Numbers, times and names as people read them; pure, so that tests pin every word."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

Part = tuple[str, str]  # ("26", "min"): a number and its unit, which is printed in a lighter tone

_STEPS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def span(length: timedelta | float, *, exact: bool = False) -> list[Part]:
    """A length of time, short: 0.4 s, 18 s, 26 min, 3 h, 12 d; exact adds the next unit.

    >>> span(192), span(192, exact=True)
    ([('3', 'min')], [('3', 'min'), ('12', 's')])
    """
    seconds = length.total_seconds() if isinstance(length, timedelta) else float(length)
    seconds = max(seconds, 0.0)
    if exact and seconds < 10:
        return [(f"{seconds:.1f}", "s")]
    for index, (size, unit) in enumerate(_STEPS):
        if seconds >= size:
            whole = int(seconds // size)
            parts = [(f"{whole:,}", unit)]
            if exact and index + 1 < len(_STEPS):
                below, small = _STEPS[index + 1]
                rest = int(seconds % size // below)
                if rest:
                    parts.append((str(rest), small))
            return parts
    return [("0", "s")]


def in_words(parts: list[Part]) -> str:
    """The same as one string: '3 min 12 s'."""
    return " ".join(f"{number} {unit}" for number, unit in parts)


def since(then: datetime, now: datetime) -> str:
    """How long ago, short: '26 min'. A moment ahead of us (another clock) counts as now."""
    return in_words(span(now - then))


def number(value: int | float | Decimal | None) -> str:
    """1024 → '1,024'; None → '?', for unknown is never zero."""
    if value is None:
        return "?"
    if isinstance(value, int):
        return f"{value:,}"
    text = f"{value:,.2f}" if isinstance(value, float) else f"{value:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def halves(name: str, tail: int = 6) -> tuple[str, str]:
    """A long name cut so that its end stays: ('training-a', '-x7k2p').

    The end is what Kubernetes generates, so it tells names apart; it is never the part that goes.
    The cut is made before the last hyphen or dot in reach, else `tail` characters from the end.
    """
    for back in range(2, min(len(name), tail * 2)):
        if name[-back] in "-.":
            return name[:-back], name[-back:]
    return name[:-tail], name[-tail:]


def one_or_many(count: int | None, one: str, many: str = "") -> str:
    """'1 device', '2 devices', '? devices'."""
    return f"{number(count)} {one if count == 1 else many or one + 's'}"


_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iOS"),
    ("iPad", "iPadOS"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def browser(user_agent: str) -> str:
    """'Firefox on Linux'; what nobody recognises is called by its own first word."""
    name = next((name for sign, name in _BROWSERS if sign in user_agent), "")
    system = next((name for sign, name in _SYSTEMS if sign in user_agent), "")
    if not name:
        return user_agent.partition(" ")[0] or "Unknown"
    return f"{name} on {system}" if system else name
