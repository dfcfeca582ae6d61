"""Durations and timestamps of CEL (cel-go's ``common/types/duration.go`` and ``timestamp.go``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from devices.dra.cel.arguments import a_text
from devices.dra.cel.kinds import Duration, Timestamp
from devices.dra.cel.values import CelError, Uint, no_overload

_SECOND: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
_MOST: Final = 2**63
#: 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z in seconds since 1970.
_FIRST, _LAST = -62135596800, 253402300799
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_MOMENT: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))", re.ASCII
)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def duration(value: Any) -> Duration:
    """``duration("1h30m")``; raises CelError for a text that Go does not read as one."""
    if isinstance(value, Duration):
        return value
    text = a_text(value)
    sign, rest = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    parts = _PART.findall(rest)
    if rest != "0" and (not parts or "".join(a + b for a, b in parts) != rest):
        raise _conversion("string", "google.protobuf.Duration")
    nanos = sum(int(Decimal(amount) * _UNITS[unit]) for amount, unit in parts)
    if nanos > _MOST - (sign != "-"):
        raise _conversion("string", "google.protobuf.Duration")
    return Duration(-nanos if sign == "-" else nanos)


def timestamp(value: Any) -> Timestamp:
    """``timestamp("2026-01-02T03:04:05Z")``, or of seconds since 1970."""
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, int) and not isinstance(value, bool | Uint):
        return _within(value * _SECOND, 0)
    found = _MOMENT.fullmatch(a_text(value))
    if found is None:
        raise _conversion("string", "google.protobuf.Timestamp")
    moment, fraction, sign, hours, minutes = found.groups()
    try:
        seconds = int((datetime.fromisoformat(moment + "+00:00") - _EPOCH).total_seconds())
    except ValueError as error:
        raise _conversion("string", "google.protobuf.Timestamp") from error
    offset = 0
    if sign:
        if int(hours) > 24 or int(minutes) > 60:
            raise _conversion("string", "google.protobuf.Timestamp")
        offset = (int(hours) * 60 + int(minutes)) * (-1 if sign == "-" else 1)
    nanos = int(((fraction or "") + "000000000")[:9])
    return _within((seconds - offset * 60) * _SECOND + nanos, offset)


def _within(nanos: int, offset: int) -> Timestamp:
    if not _FIRST <= nanos // _SECOND <= _LAST:
        raise CelError("timestamp overflow")
    return Timestamp(nanos, offset)


def _length(nanos: int) -> Duration:
    if not -_MOST <= nanos < _MOST:
        raise CelError("duration overflow")
    return Duration(nanos)


def _conversion(given: str, wanted: str) -> CelError:
    return CelError(f"type conversion error from '{given}' to '{wanted}'")


def add(left: Any, right: Any) -> Any:
    """A moment and a length, or two lengths."""
    match left, right:
        case Duration(), Duration():
            return _length(left.nanos + right.nanos)
        case (Timestamp() as moment, Duration() as length) | (
            Duration() as length,
            Timestamp() as moment,
        ):
            return _within(moment.nanos + length.nanos, moment.offset)
    raise no_overload(left, right)


def subtract(left: Any, right: Any) -> Any:
    """A length from a length or a moment, or the length between two moments."""
    match left, right:
        case (Duration(), Duration()) | (Timestamp(), Timestamp()):
            return _length(left.nanos - right.nanos)
        case Timestamp(), Duration():
            return _within(left.nanos - right.nanos, left.offset)
    raise no_overload(left, right)


def negated(value: Duration) -> Duration:
    return _length(-value.nanos)


def as_int(value: Duration | Timestamp) -> int:
    """Nanoseconds of a length; seconds since 1970 of a moment."""
    return value.nanos if isinstance(value, Duration) else value.nanos // _SECOND


def as_text(value: Duration | Timestamp) -> str:
    """As Go prints them: ``5400s``, ``2026-01-02T03:04:05.5+01:00``."""
    if isinstance(value, Duration):
        whole, rest = divmod(abs(value.nanos), _SECOND)
        seconds = (whole + rest / _SECOND) * (-1 if value.nanos < 0 else 1)
        text = format(Decimal(repr(seconds)), "f")
        return (text.rstrip("0").rstrip(".") if "." in text else text) + "s"
    moment = _moment(value, timezone(timedelta(minutes=value.offset)))
    fraction = f".{value.nanos % _SECOND:09d}".rstrip("0") if value.nanos % _SECOND else ""
    zone = "Z" if not value.offset else moment.isoformat()[-6:]
    return f"{moment.replace(tzinfo=None).isoformat()}{fraction}{zone}"


def _moment(value: Timestamp, zone: tzinfo) -> datetime:
    try:
        return (_EPOCH + timedelta(seconds=value.nanos // _SECOND)).astimezone(zone)
    except OverflowError as error:
        raise CelError("timestamp overflow") from error


def _zone(name: str) -> tzinfo:
    if ":" not in name:
        try:
            return ZoneInfo(name) if name else UTC
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise CelError(f"unknown time zone {name}") from error
    found = re.fullmatch(r"([+-]?)(\d{1,2}):(\d\d)", name, re.ASCII)
    if found is None or int(found[3]) > 59:
        raise CelError(f"timezone offset out of range: {name}")
    minutes = int(found[2]) * 60 + int(found[3])
    try:
        return timezone(timedelta(minutes=-minutes if found[1] == "-" else minutes))
    except ValueError as error:
        raise CelError(f"timezone offset out of range: {name}") from error


def _reader(
    of_moment: Callable[[datetime], int], of_length: Callable[[int], int] | None = None
) -> Callable[..., int]:
    """One of the get… functions: of a moment (in a zone, UTC if none), and maybe of a length."""

    def read(value: Any, zone: Any = None) -> int:
        if isinstance(value, Duration) and of_length is not None and zone is None:
            return of_length(value.nanos)
        if not isinstance(value, Timestamp):
            raise no_overload(value)
        return of_moment(_moment(value, UTC if zone is None else _zone(a_text(zone))))

    return read


def _parts(nanos: int, unit: int) -> int:
    """Whole units of a length, towards zero."""
    return abs(nanos) // unit * (-1 if nanos < 0 else 1)


def _milliseconds(value: Any, zone: Any = None) -> int:
    if isinstance(value, Duration) and zone is None:
        return _parts(value.nanos, 10**6)
    if not isinstance(value, Timestamp):
        raise no_overload(value)
    if zone is not None:
        _zone(a_text(zone))
    return value.nanos % _SECOND // 10**6


READERS: Final[dict[str, Callable[..., int]]] = {
    "getFullYear": _reader(lambda moment: moment.year),
    "getMonth": _reader(lambda moment: moment.month - 1),
    "getDayOfYear": _reader(lambda moment: moment.timetuple().tm_yday - 1),
    "getDayOfMonth": _reader(lambda moment: moment.day - 1),
    "getDate": _reader(lambda moment: moment.day),
    "getDayOfWeek": _reader(lambda moment: moment.isoweekday() % 7),
    "getHours": _reader(lambda moment: moment.hour, lambda n: _parts(n, 3600 * _SECOND)),
    "getMinutes": _reader(lambda moment: moment.minute, lambda n: _parts(n, 60 * _SECOND)),
    "getSeconds": _reader(lambda moment: moment.second, lambda n: _parts(n, _SECOND)),
    "getMilliseconds": _milliseconds,
}
