"""How often a gate errs: the rule of `gates` applied to pretended samples of which the truth is
known. Pure, and the same numbers every time.

docs/gates.md shows the table; a test keeps both the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import cos, exp, log, pi, sqrt
from random import Random
from typing import Final

from migrationplan.gates import Outcome, Rule, Sample, Samples, read
from migrationplan.measures import Measure

SIZES: Final = (10, 30, 60, 120, 300)
TIMES: Final = 400
#: How often a gate looks again while samples come in, for the rows that say so.
LOOKS: Final = 12

#: Takes the random source, gives one sample's value.
Draw = Callable[[Random], float]


@dataclass(frozen=True, slots=True)
class Case:
    """What is true of both sides; ``right`` is what a gate should say of it."""

    words: str
    rule: Rule
    moved: Draw
    others: Draw
    right: Outcome
    looks: int = 1


def bad_in(part: float) -> Draw:
    """Bad with this chance."""
    return lambda random: float(random.random() < part)


def lasting(middle: float, spread: float = 0.5, tail: float = 0.0, times: float = 5) -> Draw:
    """Seconds around a middle with a long right end; a part of ``tail`` lasts ``times`` longer."""

    def draw(random: Random) -> float:
        bell = sqrt(-2 * log(1 - random.random())) * cos(2 * pi * random.random())
        value = middle * exp(spread * bell)
        return value * (times if random.random() < tail else 1)

    return draw


SHARES: Final = Rule(Measure.ALLOCATION)
DURATIONS: Final = Rule(Measure.PREPARED)
STRICT: Final = Rule(Measure.PREPARED, margin=0.05)
USUAL: Final = lasting(6)
PASS, FAIL = Outcome.PASS, Outcome.FAIL

CASES: Final = (
    Case("shares: 2 in 100 are bad on both sides", SHARES, bad_in(0.02), bad_in(0.02), PASS),
    Case("the same, looked at 12 times", SHARES, bad_in(0.02), bad_in(0.02), PASS, LOOKS),
    Case("shares: 10 in 100 on both sides", SHARES, bad_in(0.1), bad_in(0.1), PASS),
    Case("shares: 13 against 2, a little too many", SHARES, bad_in(0.13), bad_in(0.02), FAIL),
    Case("shares: 22 against 2", SHARES, bad_in(0.22), bad_in(0.02), FAIL),
    Case("shares: 52 against 2", SHARES, bad_in(0.52), bad_in(0.02), FAIL),
    Case("times: the same on both sides", DURATIONS, USUAL, USUAL, PASS),
    Case("the same, looked at 12 times", DURATIONS, USUAL, USUAL, PASS, LOOKS),
    Case("times: a tenth longer", DURATIONS, lasting(6.6), USUAL, PASS),
    Case("times: half as long again, margin 5", STRICT, lasting(9), USUAL, FAIL),
    Case("times: twice as long", DURATIONS, lasting(12), USUAL, FAIL),
    Case("times: one in five lasts five times", DURATIONS, lasting(6, tail=0.2), USUAL, FAIL),
)


def counted(case: Case, size: int, times: int = TIMES) -> Counter[Outcome]:
    """How often each verdict was given on ``size`` samples of each side.

    Looked at several times, as samples come in, a gate that failed once has failed; else its last
    verdict counts.
    """
    random = Random(f"{case.words} {size}")
    found: Counter[Outcome] = Counter()
    for _ in range(times):
        moved = tuple(Sample("", "", case.moved(random)) for _ in range(size))
        others = tuple(Sample("", "", case.others(random)) for _ in range(size))
        verdict = Outcome.NONE
        for look in range(1, case.looks + 1):
            part = size * look // case.looks
            verdict = read(case.rule, Samples(moved[:part], others[:part])).verdict
            if verdict is Outcome.FAIL:
                break
        found[verdict] += 1
    return found


def table(times: int = TIMES) -> Iterator[str]:
    """The table of all cases and sizes as Markdown, a line at a time: pass / fail in 100."""
    yield "| what is true | should be | " + " | ".join(f"{size} of each" for size in SIZES) + " |"
    yield "|---|---|" + "---:|" * len(SIZES)
    for case in CASES:
        cells = []
        for size in SIZES:
            found = counted(case, size, times)
            passed, failed = (100 * found[one] / times for one in (Outcome.PASS, Outcome.FAIL))
            cells.append(f"{passed:.1f} / {failed:.1f}")
        yield f"| {case.words} | {case.right} | " + " | ".join(cells) + " |"
