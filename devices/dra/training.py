"""What a training run's own signals say about the time that its devices were held. Pure.

Kubernetes knows when devices are held, and nothing of whether the work came forward. A training
platform says when a run started, saved, restored, tried again or finished, or how many seconds were
useful. From both follow stretches of useful and of lost time. What nobody said stays unknown: it is
neither useful nor lost.

Worked example: held 12:00 to 13:00, started 12:05, checkpoint 12:35, retry 12:45, restored 12:50,
finished well at 13:00. Lost: 5 min of setting up, 10 min of work that was done again, 5 min between
tries; useful: 30 + 10 min.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What a platform can say about a run."""

    STARTED = "started"
    CHECKPOINT = "checkpoint"
    RESTORED = "restored"
    RETRY = "retry"
    FINISHED = "finished"
    USEFUL = "useful"


class Why(StrEnum):
    """Why a stretch of time was lost, or why nobody knows."""

    SETUP = "set-up"
    REWORK = "work done again"
    DOWN = "between tries"
    AFTER = "after the end"
    NOT_USEFUL = "reported as not useful"
    NO_SIGNALS = "nothing was told"
    START_UNTOLD = "nobody told when it started"
    SINCE_CHECKPOINT = "not saved yet"


#: Of several signals at one moment, what ends something comes before what begins something.
_ORDER: Final = (
    Kind.USEFUL,
    Kind.CHECKPOINT,
    Kind.RETRY,
    Kind.FINISHED,
    Kind.STARTED,
    Kind.RESTORED,
)


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that was said. ``seconds`` belong to *useful* (since the last such report), ``ok``
    to *finished*.
    """

    kind: Kind
    at: datetime
    id: str = ""
    seconds: float | None = None
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Hold:
    """Devices that one Pod held: from its allocation (None: nobody knows when) to its release
    (None: it holds them still). ``ended`` is how the Pod ended: succeeded, failed, or empty.
    """

    start: datetime | None
    end: datetime | None = None
    ended: str = ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the time: ``useful`` is which part of it was, 0 to 1; None where nobody knows."""

    start: datetime
    end: datetime
    useful: float | None
    why: Why | None = None

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()


@dataclass(frozen=True, slots=True)
class Account:
    """All of a hold's time in order without gaps, and what was said during it.

    ``overstated`` says that more useful seconds were reported than there were.
    """

    stretches: tuple[Stretch, ...] = ()
    checkpoints: int = 0
    restores: int = 0
    retries: int = 0
    finished: bool | None = None
    overstated: bool = False


@dataclass(frozen=True, slots=True)
class Sums:
    """Seconds; ``held`` is the sum of the three others, ``lost_by`` and ``unknown_by`` say why."""

    useful: float = 0.0
    lost: float = 0.0
    unknown: float = 0.0
    lost_by: Mapping[Why, float] = field(default_factory=dict)
    unknown_by: Mapping[Why, float] = field(default_factory=dict)

    @property
    def held(self) -> float:
        return self.useful + self.lost + self.unknown

    @property
    def share(self) -> float | None:
        """Useful out of what is known, 0 to 1; None where nothing is."""
        known = self.useful + self.lost
        return self.useful / known if known > 0 else None

    def plus(self, other: Sums, times: float = 1.0) -> Sums:
        """Both together; ``times`` is how many devices the other's seconds count for."""
        return Sums(
            self.useful + other.useful * times,
            self.lost + other.lost * times,
            self.unknown + other.unknown * times,
            _added(self.lost_by, other.lost_by, times),
            _added(self.unknown_by, other.unknown_by, times),
        )


class _Phase(StrEnum):
    SETUP = "setup"
    RUNNING = "running"
    DOWN = "down"
    DONE = "done"


def account(hold: Hold, signals: Iterable[Signal], now: datetime) -> Account:
    """What the signals make of a hold, whatever their order; the same id counts once.

    A signal from before or after the hold counts as given at its edge: clocks differ.
    """
    if hold.start is None:
        return Account()
    end = max(hold.end or now, hold.start)
    said = sorted(
        {(one.id or str(n)): one for n, one in enumerate(signals)}.values(),
        key=lambda one: (one.at, _ORDER.index(one.kind), one.id),
    )
    walk = _Walk(hold.start, end)
    for one in said:
        walk.take(one, min(max(one.at, hold.start), end))
    walk.close(hold, bool(said))
    counts = {kind: sum(one.kind is kind for one in said) for kind in Kind}
    finished = [one.ok for one in said if one.kind is Kind.FINISHED]
    reported = [one for one in said if one.kind is Kind.USEFUL]
    stretches, overstated = _as_reported(walk.stretches, reported, hold.start, end)
    return Account(
        stretches,
        counts[Kind.CHECKPOINT],
        counts[Kind.RESTORED],
        counts[Kind.RETRY],
        finished[-1] if finished else None,
        overstated,
    )


def sums(stretches: Iterable[Stretch], since: datetime, until: datetime) -> Sums:
    """The seconds of what lies between two moments."""
    useful = lost = unknown = 0.0
    lost_by: dict[Why, float] = {}
    unknown_by: dict[Why, float] = {}
    for one in stretches:
        seconds = (min(one.end, until) - max(one.start, since)).total_seconds()
        if seconds <= 0:
            continue
        if one.useful is None:
            unknown += seconds
            if one.why is not None:
                unknown_by[one.why] = unknown_by.get(one.why, 0.0) + seconds
            continue
        useful += seconds * one.useful
        gone = seconds * (1 - one.useful)
        lost += gone
        if one.why is not None and gone:
            lost_by[one.why] = lost_by.get(one.why, 0.0) + gone
    return Sums(useful, lost, unknown, lost_by, unknown_by)


class _Walk:
    """Goes through the signals in order; ``mark`` is how far the time is told of."""

    def __init__(self, start: datetime, end: datetime) -> None:
        self.mark, self.end = start, end
        self.phase = _Phase.SETUP
        self.stretches: list[Stretch] = []

    def take(self, signal: Signal, at: datetime) -> None:
        running = self.phase is _Phase.RUNNING
        match signal.kind:
            case Kind.STARTED | Kind.RESTORED:
                # Beginning anew without a word in between: what was not saved is done again.
                self._until(at, 0.0, Why.REWORK if running else self._idle())
                self.phase = _Phase.RUNNING
            case Kind.CHECKPOINT:
                if running:
                    self._until(at, 1.0)
                elif self.phase is _Phase.SETUP:
                    self._until(at, None, Why.START_UNTOLD)
                else:
                    self._until(at, 0.0, self._idle())
                self.phase = _Phase.RUNNING
            case Kind.RETRY:
                self._until(at, 0.0, Why.REWORK if running else self._idle())
                self.phase = _Phase.DOWN
            case Kind.FINISHED:
                if running:
                    self._until(at, 1.0 if signal.ok else 0.0, None if signal.ok else Why.REWORK)
                elif self.phase is _Phase.SETUP:
                    self._until(at, None, Why.START_UNTOLD)
                else:
                    self._until(at, 0.0, self._idle())
                self.phase = _Phase.DONE
            case Kind.USEFUL:
                pass  # counted over the whole time, see _as_reported

    def close(self, hold: Hold, told: bool) -> None:
        """What comes after the last signal: the Pod's own end may say it."""
        if self.phase is not _Phase.RUNNING:
            silent = self.phase is _Phase.SETUP
            useful = None if silent else 0.0
            self._until(self.end, useful, Why.START_UNTOLD if silent and told else self._rest())
        elif hold.ended == "succeeded":
            self._until(self.end, 1.0)
        elif hold.ended == "failed":
            self._until(self.end, 0.0, Why.REWORK)
        else:
            self._until(self.end, None, Why.SINCE_CHECKPOINT)

    def _idle(self) -> Why:
        return {_Phase.SETUP: Why.SETUP, _Phase.DONE: Why.AFTER}.get(self.phase, Why.DOWN)

    def _rest(self) -> Why:
        return Why.NO_SIGNALS if self.phase is _Phase.SETUP else self._idle()

    def _until(self, at: datetime, useful: float | None, why: Why | None = None) -> None:
        if at > self.mark:
            self.stretches.append(Stretch(self.mark, at, useful, why))
            self.mark = at


def _as_reported(
    stretches: Sequence[Stretch], reports: Sequence[Signal], start: datetime, end: datetime
) -> tuple[tuple[Stretch, ...], bool]:
    """Reported seconds beat what follows from the other signals, up to the last report."""
    if not reports:
        return tuple(stretches), False
    last = min(max(reports[-1].at, start), end)
    whole = (last - start).total_seconds()
    useful = sum(one.seconds or 0.0 for one in reports)
    if whole <= 0:
        return tuple(stretches), useful > 0
    said = Stretch(start, last, min(useful / whole, 1.0), Why.NOT_USEFUL)
    after = [
        Stretch(max(one.start, last), one.end, one.useful, one.why)
        for one in stretches
        if one.end > last
    ]
    # A second of slack: reports are rounded.
    return (said, *after), useful > whole + timedelta(seconds=1).total_seconds()


def _added(
    ours: Mapping[Why, float], others: Mapping[Why, float], times: float
) -> dict[Why, float]:
    return {why: ours.get(why, 0.0) + others.get(why, 0.0) * times for why in {*ours, *others}}
