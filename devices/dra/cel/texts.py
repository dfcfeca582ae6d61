"""Functions over texts (cel-go's ext.Strings, version 2) and regular expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devices.dra.cel.arguments import a_list, a_text, an_int
from devices.dra.cel.patterns import has_match, pattern
from devices.dra.cel.values import CelError, equal


def char_at(value: Any, position: Any) -> str:
    text, index = a_text(value), an_int(position)
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def index_of(value: Any, wanted: Any, start: Any = 0) -> int:
    if isinstance(value, list | tuple):
        return next((place for place, item in enumerate(value) if equal(item, wanted)), -1)
    text, index = a_text(value), an_int(start)
    if index and not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text.find(a_text(wanted), index)


def last_index_of(value: Any, wanted: Any, end: Any = None) -> int:
    if isinstance(value, list | tuple):
        places = [place for place, item in enumerate(value) if equal(item, wanted)]
        return places[-1] if places else -1
    text = a_text(value)
    if end is None:
        return text.rfind(a_text(wanted))
    return text.rfind(a_text(wanted), 0, an_int(end) + len(a_text(wanted)))


def replace(value: Any, old: Any, new: Any, times: Any = -1) -> str:
    return a_text(value).replace(a_text(old), a_text(new), an_int(times))


def split(value: Any, separator: Any, limit: Any = -1) -> list[str]:
    text, mark, most = a_text(value), a_text(separator), an_int(limit)
    if most == 0:
        return []
    if mark:
        return text.split(mark, most - 1 if most > 0 else -1)
    letters = list(text)
    return letters if most < 0 else [*letters[: most - 1], text[most - 1 :]]


def substring(value: Any, start: Any, end: Any = None) -> str:
    text, first = a_text(value), an_int(start)
    last = len(text) if end is None else an_int(end)
    if not 0 <= first <= len(text) or not 0 <= last <= len(text):
        raise CelError(f"index out of range: {last if 0 <= first <= len(text) else first}")
    if first > last:
        raise CelError(f"invalid substring range. start: {first}, end: {last}")
    return text[first:last]


def case(change: Callable[[str], str]) -> Callable[[Any], str]:
    """lowerAscii and upperAscii leave letters outside ASCII alone."""
    return lambda value: "".join(change(c) if c.isascii() else c for c in a_text(value))


def join(value: Any, separator: Any = "") -> str:
    return a_text(separator).join(a_text(item) for item in a_list(value))


def matches(value: Any, expression: Any) -> bool:
    return has_match(a_text(expression), a_text(value))


def find(value: Any, expression: Any) -> str:
    found = pattern(a_text(expression)).search(a_text(value))
    return found.group() if found else ""


def find_all(value: Any, expression: Any, limit: Any = -1) -> list[str]:
    found = [match.group() for match in pattern(a_text(expression)).finditer(a_text(value))]
    return found if an_int(limit) < 0 else found[:limit]
