"""What few samples can say: the range of a share, of a difference of shares, of a percentile. Pure.

All ranges are of 95 in 100: when samples are drawn again and again, that many of the ranges hold
the truth. None assumes a bell curve.

Sources: E. B. Wilson, JASA 22 (1927); R. G. Newcombe, Statistics in Medicine 17 (1998), method 10;
order statistics as in Conover, Practical Nonparametric Statistics, section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, exp, floor, lgamma, log, sqrt
from typing import Final

#: Half the width of a range of 95 in 100, in standard deviations.
Z: Final = 1.959964
#: What may lie beyond each end of such a range.
TAIL: Final = 0.025


@dataclass(frozen=True, slots=True)
class Range:
    """From ``low`` to ``high``; None where the samples set no bound on that side."""

    low: float | None
    high: float | None


def share(hits: int, of: int) -> tuple[float, float]:
    """Wilson's range for a share. 0 of 20 → (0, 0.161); raises ValueError where there is none."""
    if not 0 <= hits <= of or of < 1:
        raise ValueError(f"{hits} of {of} is no share")
    seen, square = hits / of, Z * Z
    middle = (seen + square / (2 * of)) / (1 + square / of)
    half = Z / (1 + square / of) * sqrt(seen * (1 - seen) / of + square / (4 * of * of))
    low = 0.0 if hits == 0 else middle - half
    high = 1.0 if hits == of else middle + half
    return low, high


def difference(hits: int, of: int, base_hits: int, base_of: int) -> tuple[float, float, float]:
    """The first share less the second, and Newcombe's range for it.

    56 of 70 and 48 of 80 → 0.2, from 0.0524 to 0.3339 (his own example).
    """
    one, other = hits / of, base_hits / base_of
    low, high = share(hits, of)
    base_low, base_high = share(base_hits, base_of)
    apart = one - other
    down = sqrt((one - low) ** 2 + (base_high - other) ** 2)
    up = sqrt((high - one) ** 2 + (other - base_low) ** 2)
    return apart, apart - down, apart + up


def percentile(values: Sequence[float], part: float) -> float:
    """The percentile of samples, between neighbours as PostgreSQL's percentile_cont.

    [1, 2, 3, 4], 0.5 → 2.5. Raises ValueError where there are none.
    """
    if not values:
        raise ValueError("no samples have no percentile")
    ordered = sorted(values)
    at = part * (len(ordered) - 1)
    low, high = floor(at), ceil(at)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def percentile_range(values: Sequence[float], part: float) -> Range:
    """Between which two samples the percentile lies: how many of n samples lie below it is a
    binomial number, whatever the times are like.

    A bound on top of the 95th percentile needs 72 samples, for 0.95^72 is 0.025.
    """
    ordered, count = sorted(values), len(values)
    below = low = 0.0
    first: int | None = None
    last: int | None = None
    for number in range(count + 1):
        below, low = below + _exactly(number, count, part), below
        if below <= TAIL:
            first = number  # at most so many samples lie below, in 1 of 40 cases
        if last is None and low >= 1 - TAIL and number:
            last = number - 1
    return Range(
        ordered[first] if first is not None else None,
        ordered[last] if last is not None else None,
    )


def _exactly(number: int, of: int, part: float) -> float:
    """The chance that so many of so many samples lie below the percentile, by logarithms: the
    number of ways alone is too large for a float from a thousand samples on.
    """
    ways = lgamma(of + 1) - lgamma(number + 1) - lgamma(of - number + 1)
    return exp(ways + number * log(part) + (of - number) * log(1 - part))
