"""``"%s of %d".format([…])`` and ``strings.quote`` (cel-go's ``ext/formatting.go``)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final

from devices.dra.cel import times
from devices.dra.cel.arguments import a_list, a_text
from devices.dra.cel.arithmetic import to_string
from devices.dra.cel.kinds import Duration, Timestamp
from devices.dra.cel.values import CelError, TypeName, Uint, type_name

_CLAUSE: Final = re.compile(r"%%|%(?:\.(\d+))?([a-zA-Z])", re.ASCII)
_SUPERSCRIPTS: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_ESCAPES: Final = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": "\\\\",
    '"': r"\"",
}


def quote(value: Any) -> str:
    """A text as a literal of CEL."""
    return '"' + "".join(_ESCAPES.get(letter, letter) for letter in a_text(value)) + '"'


def clauses(pattern: str) -> list[str]:
    """The letters of a pattern's clauses in their order; raises CelError for one that is none."""
    found = []
    position = 0
    while (start := pattern.find("%", position)) >= 0:
        clause = _CLAUSE.match(pattern, start)
        if clause is None:
            raise CelError("could not parse formatting clause")
        found += [clause[2]] if clause[2] else []
        position = clause.end()
    return found


def formatted(pattern: Any, values: Any) -> str:
    """The pattern with each clause filled in; raises CelError as cel-go does."""
    text, given = a_text(pattern), a_list(values)
    out: list[str] = []
    position = used = 0
    while (start := text.find("%", position)) >= 0:
        found = _CLAUSE.match(text, start)
        if found is None:
            raise CelError("could not parse formatting clause")
        out.append(text[position:start])
        position = found.end()
        if found.group() == "%%":
            out.append("%")
            continue
        if used >= len(given):
            raise CelError(f"index {used} out of range")
        digits = None if found[1] is None else int(found[1])
        out.append(_clause(found[2], 6 if digits is None else digits, given[used]))
        used += 1
    return "".join(out) + text[position:]


def _clause(letter: str, precision: int, value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    match letter:
        case "s":
            return _plain(value)
        case "d" if whole:
            return str(int(value))
        case "b" if whole or isinstance(value, bool):
            return format(int(value), "b")
        case "o" if whole:
            return format(int(value), "o")
        case "x" | "X" if whole:
            return format(int(value), letter)
        case "x" | "X" if isinstance(value, str | bytes):
            hexed = (value.encode() if isinstance(value, str) else value).hex()
            return hexed.upper() if letter == "X" else hexed
        case "f" | "e" if isinstance(value, float):
            return _number(letter, precision, value)
        case "f" | "e" if value in ("NaN", "Infinity", "-Infinity"):
            return _number(letter, precision, float(value))
    raise CelError(f"error during formatting: %{letter} does not take {type_name(value)}")


def _number(letter: str, precision: int, value: float) -> str:
    """As Go's printer for American English: thousands apart, and powers of ten written out.

    A precision of ``%e`` is taken as the width, as cel-go does; the digits are always six.
    """
    if letter == "f":
        return _infinite(value) or format(value, f",.{precision}f")
    if not math.isfinite(value):
        return _infinite(value).rjust(precision)
    digits, _, power = format(value, ".6e").partition("e")
    sign = "-" if power.startswith("-") else ""
    raised = f"{sign}{power.lstrip('+-').rjust(2, '0')}".translate(_SUPERSCRIPTS)
    return f"{digits}×10{raised}".rjust(precision)


def _infinite(value: float) -> str:
    if math.isfinite(value):
        return ""
    return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, TypeName):
        return value.name
    if isinstance(value, Duration | Timestamp):
        return times.as_text(value)
    if isinstance(value, Mapping):
        return _map(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_inner, value)) + "]"
    if isinstance(value, bool | int | float | str | bytes):
        return to_string(value)
    raise CelError(f"error during formatting: no text of {type_name(value)}")


def _map(value: Mapping[Any, Any]) -> str:
    for key in value:
        if not isinstance(key, str | int):
            raise CelError(f"no formatting function for map key of type {type_name(key)}")
    pairs = sorted((_inner(key), _inner(each)) for key, each in value.items())
    return "{" + ", ".join(f"{key}:{each}" for key, each in pairs) + "}"


def _inner(value: Any) -> str:
    """A value within a list or a map, as CEL would write it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return "b" + json.dumps(value.decode("utf-8", "replace"), ensure_ascii=False)
    if isinstance(value, Duration | Timestamp):
        name = "duration" if isinstance(value, Duration) else "timestamp"
        return f'{name}("{times.as_text(value)}")'
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return {math.inf: '"+Inf"', -math.inf: '"-Inf"'}.get(value, '"NaN"')
        return format(value, ".6f")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(Uint(value)) if isinstance(value, Uint) else value)
    return _plain(value)
