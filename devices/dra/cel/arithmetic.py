"""Operators and conversions of CEL, with the overflows that cel-go reports."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from devices.dra.cel import addresses, times
from devices.dra.cel.arguments import a_text
from devices.dra.cel.kinds import Address, Duration, Network, Timestamp
from devices.dra.cel.values import CelError, Uint, is_number, no_overload

MAX_INT, MIN_INT, MAX_UINT = 2**63 - 1, -(2**63), 2**64 - 1


def _fits(value: int | float, like: Any) -> Any:
    """A result of arithmetic as the type of its operands, or the overflow that cel-go reports."""
    if isinstance(like, Uint):
        if not 0 <= value <= MAX_UINT:
            raise CelError("unsigned integer overflow")
        return Uint(value)
    if isinstance(like, int) and not MIN_INT <= value <= MAX_INT:
        raise CelError("integer overflow")
    return value


def _same_numbers(left: Any, right: Any) -> bool:
    return is_number(left) and type(left) is type(right)


def add(left: Any, right: Any) -> Any:
    if _same_numbers(left, right):
        return _fits(left + right, left)
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, bytes) and isinstance(right, bytes):
        return left + right
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return [*left, *right]
    return times.add(left, right)


def subtract(left: Any, right: Any) -> Any:
    if not _same_numbers(left, right):
        return times.subtract(left, right)
    return _fits(left - right, left)


def multiply(left: Any, right: Any) -> Any:
    if not _same_numbers(left, right):
        raise no_overload(left, right)
    return _fits(left * right, left)


def divide(left: Any, right: Any) -> Any:
    if not _same_numbers(left, right):
        raise no_overload(left, right)
    if isinstance(left, float):
        return left / right if right else _divide_by_zero(left)
    if right == 0:
        raise CelError("division by zero")
    size = abs(left) // abs(right)
    return _fits(size if (left < 0) == (right < 0) else -size, left)


def _divide_by_zero(left: float) -> float:
    return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left)


def remainder(left: Any, right: Any) -> Any:
    if not _same_numbers(left, right) or isinstance(left, float):
        raise no_overload(left, right)
    if right == 0:
        raise CelError("modulus by zero")
    rest = abs(left) % abs(right)
    return _fits(rest if left >= 0 else -rest, left)


def negate(value: Any) -> Any:
    if isinstance(value, Duration):
        return times.negated(value)
    if not is_number(value) or isinstance(value, Uint):
        raise no_overload(value)
    return _fits(-value, value)


def negation(value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_overload(value)
    return not value


def size(value: Any) -> int:
    if not isinstance(value, str | bytes | list | tuple | Mapping):
        raise no_overload(value)
    return len(value)


def to_int(value: Any) -> int:
    if isinstance(value, str):
        if (
            not re.fullmatch(r"[+-]?[0-9]+", value, re.ASCII)
            or not MIN_INT <= int(value) <= MAX_INT
        ):
            raise CelError(f'strconv.ParseInt: parsing "{value}": invalid syntax')
        return int(value)
    if isinstance(value, Duration | Timestamp):
        return times.as_int(value)
    if not is_number(value) or (isinstance(value, float) and not math.isfinite(value)):
        raise no_overload(value)
    return int(_fits(int(value), 0))


def to_uint(value: Any) -> Uint:
    if isinstance(value, str):
        if not re.fullmatch(r"[0-9]+", value, re.ASCII):
            raise CelError(f'strconv.ParseUint: parsing "{value}": invalid syntax')
        value = int(value)
    if not is_number(value) or (isinstance(value, float) and not math.isfinite(value)):
        raise no_overload(value)
    return Uint(_fits(int(value), Uint(0)))


def to_double(value: Any) -> float:
    if isinstance(value, str):
        try:
            number = float("" if value != value.strip() else value)  # Go takes no blanks
        except ValueError as error:
            raise CelError(f'strconv.ParseFloat: parsing "{value}": invalid syntax') from error
        if math.isinf(number) and any(char.isdigit() for char in value):
            raise CelError(f'strconv.ParseFloat: parsing "{value}": value out of range')
        return number
    if not is_number(value):
        raise no_overload(value)
    return float(value)


def to_string(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, int | str):
        return str(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError as error:
            raise CelError("invalid UTF-8 in bytes, cannot convert to string") from error
    if isinstance(value, Duration | Timestamp):
        return times.as_text(value)
    if isinstance(value, Address | Network):
        return addresses.as_text(value)
    raise no_overload(value)


def _float_text(value: float) -> str:
    """As Go's ``%g`` prints it: the fewest digits, and an exponent below 1e-4 and from 1e6 on."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) + int(exponent) - 1
    if value and not -4 <= power < 6:
        mantissa = f"{text[0]}.{text[1:]}".rstrip(".")
        written = f"{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"
        return f"-{written}" if sign else written
    plain = format(Decimal(repr(value)), "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "true", "TRUE", "True"):
        return True
    if value in ("0", "f", "false", "FALSE", "False"):
        return False
    raise no_overload(value)


def to_bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else a_text(value).encode()
