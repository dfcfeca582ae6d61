"""Did it pay? The same work on both paths of one node pool, side by side. Pure.

Similar work asks for the same number of devices of the pool's class, and nothing else. Only the
time is compared in which both paths ran it: another week has other queues. What has too few
samples, or never ran on both paths at once, is not comparable, and is said to be so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from migrationplan.gates import P95, Sample, Samples, p95_range
from migrationplan.intervals import Range, difference, percentile, share

#: Fewer on either path say nothing.
ENOUGH: Final = 20


class Path(StrEnum):
    """A way to the devices, as it is compared."""

    PLUGIN = "plugin"
    CLAIM = "claim"
    EXTENDED = "extended"


class Aspect(StrEnum):
    """What is compared."""

    ALLOCATION = "allocation"
    WAIT = "wait"
    READY = "ready"
    RETRIES = "retries"


class Finding(StrEnum):
    """What a comparison says of the other path than the plugin."""

    BETTER = "better"
    WORSE = "worse"
    ALIKE = "alike"
    """The samples allow that there is no difference."""
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class Work:
    """One Pod's way with devices of the pool; times None where they were not reached or seen."""

    pod: str
    path: Path
    devices: int
    created: datetime
    given: datetime | None = None
    ready: datetime | None = None
    left: datetime | None = None
    retries: int = 0


@dataclass(frozen=True, slots=True)
class Side:
    """One aspect on one path. Of shares ``bad`` and its range; of times the percentiles, and
    between which two times the 95th lies.
    """

    samples: int = 0
    bad: int | None = None
    bad_range: tuple[float, float] | None = None
    p50: float | None = None
    p95: float | None = None
    p95_range: Range | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One aspect against the plugin's: ``apart`` is how much more of 1 is bad (or slow), with its
    range; ``why`` says why it is not comparable.
    """

    finding: Finding
    why: str = ""
    apart: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One aspect of similar work on every path, and each path compared with the plugin."""

    aspect: Aspect
    sides: Mapping[Path, Side]
    against: Mapping[Path, Comparison]


@dataclass(frozen=True, slots=True)
class Similar:
    """Work that asks for so many devices, over the time in which both paths ran it.

    ``pods`` counts all that was seen of each path, ``since`` and ``until`` are None where no two
    paths overlap.
    """

    devices: int
    pods: Mapping[Path, int]
    since: datetime | None
    until: datetime | None
    rows: tuple[Row, ...]


def report(work: Iterable[Work], *, patience: timedelta, now: datetime) -> tuple[Similar, ...]:
    """Similar work, the most Pods first."""
    by_size: dict[int, list[Work]] = defaultdict(list)
    for one in work:
        by_size[one.devices].append(one)
    found = [_similar(size, members, patience, now) for size, members in by_size.items()]
    return tuple(sorted(found, key=lambda one: (-sum(one.pods.values()), one.devices)))


def _similar(size: int, work: Sequence[Work], patience: timedelta, now: datetime) -> Similar:
    by_path: dict[Path, list[Work]] = defaultdict(list)
    for one in work:
        by_path[one.path].append(one)
    since, until = _together(by_path)
    kept = {
        path: [one for one in members if since and until and since <= one.created <= until]
        if since
        else members
        for path, members in by_path.items()
    }
    rows = tuple(_row(aspect, kept, since is not None, patience, now) for aspect in Aspect)
    pods = {path: len(by_path[path]) for path in Path if by_path.get(path)}
    return Similar(size, pods, since, until, rows)


def _together(
    by_path: Mapping[Path, Sequence[Work]],
) -> tuple[datetime | None, datetime | None]:
    """The time in which the plugin and another path both ran such work."""
    spans = {
        path: (min(one.created for one in members), max(one.created for one in members))
        for path, members in by_path.items()
        if members
    }
    plugin = spans.pop(Path.PLUGIN, None)
    if plugin is None or not spans:
        return None, None
    since = max(plugin[0], min(start for start, _ in spans.values()))
    until = min(plugin[1], max(end for _, end in spans.values()))
    return (since, until) if since < until else (None, None)


def _row(
    aspect: Aspect,
    work: Mapping[Path, Sequence[Work]],
    together: bool,
    patience: timedelta,
    now: datetime,
) -> Row:
    samples = {
        path: tuple(
            Sample(one.pod, "", value)
            for one in members
            if (value := _value(aspect, one, patience, now)) is not None
        )
        for path, members in work.items()
    }
    sides = {path: _side(aspect, found) for path, found in samples.items()}
    base = samples.get(Path.PLUGIN, ())
    against: dict[Path, Comparison] = {
        path: _compared(aspect, Samples(found, base), together)
        for path, found in samples.items()
        if path is not Path.PLUGIN
    }
    return Row(aspect, sides, against)


def _compared(aspect: Aspect, samples: Samples, together: bool) -> Comparison:
    """Shares by Newcombe's range; times by how many are slower than the plugin's 95th percentile.

    One side, one number, one range: the same arithmetic as gates, without a margin.
    """
    if not together:
        why = "both paths never ran it at the same time"
        return Comparison(Finding.NOT_COMPARABLE, why)
    fewest = min(len(samples.moved), len(samples.others))
    if fewest < ENOUGH:
        counts = f"{len(samples.moved)} and {len(samples.others)} samples"
        return Comparison(Finding.NOT_COMPARABLE, f"too few: {counts}, {ENOUGH} are needed")
    if aspect in (Aspect.WAIT, Aspect.READY):
        slow_from = percentile([one.value for one in samples.others], P95)
    else:
        slow_from = 0.0
    bad = [
        sum(1 for one in side if one.value > slow_from) for side in (samples.moved, samples.others)
    ]
    apart, low, high = difference(bad[0], len(samples.moved), bad[1], len(samples.others))
    finding = Finding.WORSE if low > 0 else Finding.BETTER if high < 0 else Finding.ALIKE
    return Comparison(finding, "", apart, low, high)


def _side(aspect: Aspect, samples: Sequence[Sample]) -> Side:
    if not samples:
        return Side()
    values = [one.value for one in samples]
    if aspect in (Aspect.WAIT, Aspect.READY):
        return Side(
            samples=len(values),
            p50=percentile(values, 0.5),
            p95=percentile(values, P95),
            p95_range=p95_range(samples),
        )
    bad = sum(1 for value in values if value)
    return Side(samples=len(values), bad=bad, bad_range=share(bad, len(values)))


def _value(aspect: Aspect, one: Work, patience: timedelta, now: datetime) -> float | None:
    match aspect:
        case Aspect.ALLOCATION:
            if one.given is not None:
                return float(one.given - one.created > patience)
            return 1.0 if (one.left or now) - one.created > patience else None
        case Aspect.WAIT:
            return _seconds(one.created, one.given)
        case Aspect.READY:
            return _seconds(one.created, one.ready)
        case Aspect.RETRIES:
            return float(one.retries > 0) if one.given is not None else None


def _seconds(start: datetime, end: datetime | None) -> float | None:
    """Stamps are whole seconds: what follows at once may seem to come a second before."""
    if end is None or end - start < timedelta(seconds=-1):
        return None
    return max((end - start).total_seconds(), 0.0)
