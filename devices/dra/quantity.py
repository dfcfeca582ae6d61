"""A Kubernetes quantity ("80Gi", "500m", "1e3") as an exact number; no float ever touches it.

The grammar, the rounding and the canonical form are those of ``k8s.io/apimachinery``
``pkg/api/resource``: what the API server accepts, this accepts, and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

NANO = 10**9
MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)
#: The API accepts any 32-bit exponent; a number with more digits than this is nobody's device.
LARGEST_EXPONENT = 400

_SHAPE = re.compile(r"([+-]?)0*([0-9]*)(\.?)([0-9]*)([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIX = {exponent: suffix for suffix, exponent in _DECIMAL.items()}
_BINARY_SUFFIX = {exponent // 10: suffix for suffix, exponent in _BINARY.items()} | {0: ""}


class QuantityError(ValueError):
    """The text is not a quantity; the message says what is wrong with it."""


class Format(StrEnum):
    """How the number was written, and therefore how it is written back."""

    DECIMAL = "DecimalSI"
    BINARY = "BinarySI"
    EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact number of billionths; equal and ordered by value, whatever the spelling.

    ``scale`` remembers how Go holds the number (a 64-bit integer times a power of ten, or None
    for an arbitrary decimal), because CEL's ``asInteger`` answers by that and not by value.
    """

    nanos: int
    format: Format = field(default=Format.DECIMAL, compare=False)
    scale: int | None = field(default=0, compare=False)

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(
            self.nanos + other.nanos,
            self.format if self.nanos else other.format,
            _scale_of_sum(self, other),
        )

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(
            self.nanos - other.nanos,
            self.format if self.nanos else other.format,
            _scale_of_sum(self, -other),
        )

    def __neg__(self) -> Quantity:
        return Quantity(-self.nanos, self.format, self.scale)

    def __mul__(self, factor: int | Quantity) -> Quantity:
        """The product; of two quantities it is rounded up to the billionth, as Go rounds."""
        if isinstance(factor, Quantity):
            return Quantity(-(-self.nanos * factor.nanos // NANO), self.format, None)
        return Quantity(self.nanos * factor, self.format, self.scale)

    def __bool__(self) -> bool:
        return self.nanos != 0

    @property
    def fraction(self) -> Fraction:
        """The exact value, for arithmetic that leaves the billionths."""
        return Fraction(self.nanos, NANO)

    def rounded_up(self) -> int:
        """The value as an integer, rounded away from zero (Go's ``Value``)."""
        return -(-self.nanos // NANO) if self.nanos >= 0 else self.nanos // NANO

    def as_int64(self) -> int | None:
        """What Go's ``AsInt64`` answers: None for what Go does not hold as a whole int64."""
        if self.scale is None or self.scale < 0:
            return None
        value = self.nanos // NANO
        return value if MIN_INT64 <= value <= MAX_INT64 else None

    def __str__(self) -> str:
        """The canonical form: the largest suffix that loses nothing."""
        return canonical(self)


ZERO = Quantity(0)


def whole(value: int, form: Format = Format.DECIMAL) -> Quantity:
    """An integer as a quantity."""
    return Quantity(value * NANO, form)


@lru_cache(maxsize=1 << 16)
def parse(text: str) -> Quantity:
    """Reads one quantity, rounding up to the billionth what is finer (as the API server does).

    Raises QuantityError for what the API server refuses, and for exponents beyond
    LARGEST_EXPONENT.
    """
    shape = _SHAPE.fullmatch(text)
    if not text or shape is None:
        raise QuantityError(f"{text!r} is not a quantity such as 2, 500m or 80Gi")
    sign, digits, _, decimals, suffix = shape.groups()
    exponent, form = _suffix(text, suffix)
    number = int((digits + decimals) or "0")
    if form is Format.BINARY:
        nanos = -(-number * 2**exponent * NANO // 10 ** len(decimals))
        scale = 0 if not decimals and 14 - len(digits) - exponent * 3 // 10 >= 0 else None
        nanos = min(nanos, MAX_INT64 * NANO)
        if 0 < nanos < NANO:
            form = Format.DECIMAL
    else:
        power = exponent - len(decimals)
        scale = power if len(digits or "0") + len(decimals) <= 18 and power >= -9 else None
        nanos = number * 10 ** (power + 9) if power >= -9 else -(-number // 10 ** (-9 - power))
    return Quantity(-nanos if sign == "-" else nanos, form, scale)


def read(value: object) -> Quantity:
    """A quantity out of decoded JSON or YAML: text, or a bare number as the API server takes it.

    Raises QuantityError for anything else.
    """
    if isinstance(value, str):
        return parse(value if value.isascii() and " " not in value else value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return parse(repr(value).replace("e+", "e"))
    raise QuantityError(f"{value!r} is not a quantity such as 2, 500m or 80Gi")


def canonical(quantity: Quantity) -> str:
    """Writes a quantity so that no precision is lost, no fraction appears, and the suffix is
    the largest possible: 1536Mi stays 1536Mi, 1024Mi becomes 1Gi, 1500m stays 1500m.
    """
    nanos, form = quantity.nanos, quantity.format
    if nanos == 0:
        return "0"
    if form is Format.BINARY and (abs(nanos) < 1024 * NANO or nanos % NANO):
        form = Format.DECIMAL
    if form is Format.BINARY:
        value, exponent = nanos // NANO, 0
        while value % 1024 == 0 and exponent < 6:
            value, exponent = value // 1024, exponent + 1
        return f"{value}{_BINARY_SUFFIX[exponent]}"
    exponent = -9
    while nanos % 1000 == 0 and (exponent < 18 or form is Format.EXPONENT):
        nanos, exponent = nanos // 1000, exponent + 3
    if form is Format.EXPONENT:
        return f"{nanos}e{exponent}" if exponent else str(nanos)
    return f"{nanos}{_DECIMAL_SUFFIX[exponent]}"


def _suffix(text: str, suffix: str) -> tuple[int, Format]:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], Format.DECIMAL
    if suffix in _BINARY:
        return _BINARY[suffix], Format.BINARY
    if suffix[:1] in "eE" and re.fullmatch(r"[+-]?[0-9]+", suffix[1:]):
        exponent = int(suffix[1:6])
        if len(suffix) > 6 or abs(exponent) > LARGEST_EXPONENT:
            raise QuantityError(f"{text!r} has an exponent beyond {LARGEST_EXPONENT}")
        return exponent, Format.EXPONENT
    raise QuantityError(
        f"{text!r} has no known unit; {suffix!r} is none of n u m k M G T P E Ki Mi …"
    )


def _scale_of_sum(one: Quantity, other: Quantity) -> int | None:
    """Go adds two 64-bit amounts at the finer scale, or falls back to an arbitrary decimal."""
    if one.scale is None or other.scale is None:
        return None
    if not other.nanos:
        return one.scale
    if not one.nanos:
        return other.scale
    scale = min(one.scale, other.scale)
    fits = abs(one.nanos + other.nanos) <= MAX_INT64 * 10 ** (scale + 9)
    return scale if fits else None
