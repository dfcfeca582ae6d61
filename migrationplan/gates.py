"""What a gate says of nodes that moved: samples in, a reading with its verdict out. Pure.

Moved nodes are compared with the others of the same pool and class, over the same time. One rule
serves shares and times alike (`_share`), so that whoever reads a verdict has one thing to learn;
docs/gates.md says it in words and shows how often it errs (`gateodds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from devices.dra.wording import many, some_of
from migrationplan.intervals import Range, difference, percentile, percentile_range
from migrationplan.measures import ABOUT, Kind, Measure

#: The part of the baseline that may be slower than what counts as slow, before any tolerance.
P95: Final = 0.95
#: Fewer bad samples never fail: one or two may be chance, whatever a range says of so few.
FEWEST_BAD: Final = 3


class Outcome(StrEnum):
    """`INCONCLUSIVE`: measured, and too little to say; a person decides. `NONE`: no reading."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """One gate's newest verdict. `sentence` says what was measured against what, in words that
    stand alone; a `trial` gate is measured and does not vote.
    """

    name: str
    verdict: Outcome
    sentence: str
    trial: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """What one gate allows.

    ``margin`` is how much more often moved nodes may be bad than the others (0.1: 10 in 100).
    Slow is what takes longer than the baseline's 95th percentile times ``tolerance``, and at least
    ``slack`` seconds longer. Fewer samples than ``least`` on either side never pass. ``limit`` are
    seconds, for what has no baseline.
    """

    measure: Measure
    margin: float = 0.10
    tolerance: float = 1.25
    slack: float = 2.0
    least: int = 20
    limit: float = 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One observation: of which Pod, node or claim, and its value.

    Seconds for times, per cent for lost time; for shares 1 where it is bad and 0 where it is not;
    for what must not be, how often it was.
    """

    of: str
    node: str
    value: float


@dataclass(frozen=True, slots=True)
class Samples:
    """What was seen on moved nodes and on the others. ``unknown`` says why it cannot be known, and
    then no number counts.
    """

    moved: tuple[Sample, ...] = ()
    others: tuple[Sample, ...] = ()
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Side:
    """One side in numbers; the percentiles are of times (`p95_range` says how sure the last is)."""

    samples: int = 0
    bad: int | None = None
    p50: float | None = None
    p95: float | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """A verdict with the numbers that it stands on.

    ``apart`` is the share of bad ones on moved nodes less that of the others, with its range of 95
    in 100; ``slow_from`` are the seconds beyond which a time counts as slow.
    """

    verdict: Outcome
    sentence: str
    moved: Side = field(default_factory=Side)
    others: Side = field(default_factory=Side)
    apart: float | None = None
    low: float | None = None
    high: float | None = None
    slow_from: float | None = None


def p95_range(samples: Sequence[Sample]) -> Range:
    """Between which times the 95th percentile lies; without a bound where too few say."""
    return percentile_range([one.value for one in samples], P95)


def read(rule: Rule, samples: Samples) -> Reading:
    """The verdict on samples. Never a pass where something is unknown or too few were seen."""
    if samples.unknown:
        return Reading(Outcome.INCONCLUSIVE, f"Not known: {samples.unknown}.")
    match ABOUT[rule.measure].kind:
        case Kind.SHARE:
            return _share(rule, samples.moved, samples.others, None)
        case Kind.SLOW:
            return _slow(rule, samples)
        case Kind.NONE_ALLOWED:
            return _none_allowed(rule, samples)
        case Kind.WITHIN:
            return _within(rule, samples)
        case Kind.OUTSIDE:
            return Reading(Outcome.INCONCLUSIVE, "Nobody has answered.")


def _slow(rule: Rule, samples: Samples) -> Reading:
    """Times are judged by how many are slow, and what is slow the baseline says.

    Worked: the others' 95th percentile is 6 s, tolerance 1.25, slack 2 s: slow is beyond 8 s.
    """
    if len(samples.others) < max(rule.least, 1):
        return _too_few(rule, samples, None)  # what is slow would be a guess
    usual = percentile([one.value for one in samples.others], P95)
    slow_from = max(usual * rule.tolerance, usual + rule.slack)
    return _share(rule, samples.moved, samples.others, slow_from)


def _share(
    rule: Rule, moved: Sequence[Sample], others: Sequence[Sample], slow_from: float | None
) -> Reading:
    """The one rule. *Pass*: even the largest difference that the samples allow is within the
    margin. *Fail*: the difference is beyond the margin, the samples do not allow that there is
    none, and three are bad at least. Anything else, and too few, is *inconclusive*.
    """
    both = Samples(tuple(moved), tuple(others))
    if not moved or not others:
        return _too_few(rule, both, slow_from)
    one, base = _side(moved, slow_from), _side(others, slow_from)
    assert one.bad is not None and base.bad is not None
    apart, low, high = difference(one.bad, one.samples, base.bad, base.samples)
    if apart > rule.margin and low > 0 and one.bad >= FEWEST_BAD:
        verdict = Outcome.FAIL
    elif min(one.samples, base.samples) < rule.least:
        return _too_few(rule, both, slow_from)
    elif high <= rule.margin:
        verdict = Outcome.PASS
    else:
        verdict = Outcome.INCONCLUSIVE
    sentence = (
        f"{_counted(rule, one, slow_from)} on moved nodes, {base.bad} of {base.samples} on the "
        f"others: {_points(apart)} ({_points(low)} to {_points(high)}) points, "
        f"{rule.margin * 100:g} are allowed."
    )
    return Reading(verdict, sentence, one, base, apart, low, high, slow_from)


def _none_allowed(rule: Rule, samples: Samples) -> Reading:
    about = ABOUT[rule.measure]
    one, base = _side(samples.moved, None), _side(samples.others, None)
    found = [sample for sample in samples.moved if sample.value]
    if found:
        named = some_of(sorted({sample.of for sample in found}), 3)
        sentence = f"{len(found)} of {many(one.samples, about.noun)} {about.bad}: {named}."
        return Reading(Outcome.FAIL, sentence, one, base)
    if not samples.moved:
        return Reading(Outcome.INCONCLUSIVE, f"No {about.noun} was seen.", one, base)
    sentence = f"None of {many(one.samples, about.noun)} {about.bad}."
    return Reading(Outcome.PASS, sentence, one, base)


def _within(rule: Rule, samples: Samples) -> Reading:
    """Without a baseline the limit is absolute; one sample beyond it is enough to fail."""
    about = ABOUT[rule.measure]
    one = _side(samples.moved, rule.limit)
    late = [sample for sample in samples.moved if sample.value > rule.limit]
    if late:
        longest = max(late, key=lambda sample: sample.value)
        sentence = (
            f"{len(late)} of {many(one.samples, about.noun)} {about.bad} than {_s(rule.limit)}: "
            f"{_s(longest.value)} on {longest.node}."
        )
        return Reading(Outcome.FAIL, sentence, one, slow_from=rule.limit)
    if one.samples < max(rule.least, 1):
        return _too_few(rule, Samples(samples.moved), rule.limit)
    slowest = max(sample.value for sample in samples.moved)
    sentence = (
        f"All {many(one.samples, about.noun)} within {_s(rule.limit)}, the slowest {_s(slowest)}."
    )
    return Reading(Outcome.PASS, sentence, one, slow_from=rule.limit)


def _too_few(rule: Rule, samples: Samples, slow_from: float | None) -> Reading:
    about = ABOUT[rule.measure]
    seen = f"{many(len(samples.moved), about.noun)} on moved nodes"
    if about.kind is Kind.WITHIN:
        sentence = f"Too few: {many(len(samples.moved), about.noun)}, {rule.least} are needed."
    elif samples.moved and not samples.others:
        sentence = f"Nothing to compare with: {seen}, none on the others over the same time."
    else:
        others = f"{len(samples.others)} on the others"
        sentence = f"Too few: {seen}, {others}; {rule.least} of each are needed."
    return Reading(
        Outcome.INCONCLUSIVE,
        sentence,
        _side(samples.moved, slow_from),
        _side(samples.others, slow_from),
        slow_from=slow_from,
    )


def _side(samples: Sequence[Sample], slow_from: float | None) -> Side:
    values = [one.value for one in samples]
    if not values:
        return Side()
    if slow_from is None:
        return Side(len(values), sum(1 for value in values if value > 0))
    return Side(
        samples=len(values),
        bad=sum(1 for value in values if value > slow_from),
        p50=percentile(values, 0.5),
        p95=percentile(values, P95),
    )


def _counted(rule: Rule, side: Side, slow_from: float | None) -> str:
    about = ABOUT[rule.measure]
    said = about.bad if slow_from is None else about.bad.format(limit=_s(slow_from, about.unit))
    return f"{side.bad} of {many(side.samples, about.noun)} {said}"


def _points(part: float) -> str:
    return f"{part * 100:+.1f}"


def _s(amount: float, unit: str = "s") -> str:
    return f"{amount:.3g} {unit}" if amount < 100 else f"{amount:.0f} {unit}"
