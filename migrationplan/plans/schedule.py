"""When a plan would be through: its waves by the very rules that run them, on a clock of its own.

Pure. Nodes take as long as they are said to take; nothing fails, no approval is late, and what
holds devices when a node's turn comes is as usual. So it is a forecast and says so; the real plan
begins by its own rules.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from migrationplan.phases import Leave, Observation, Phase, Rules, Seen, Stand, Wave
from migrationplan.wave import decide
from migrationplan.windows import Frozen, may_start

#: Beyond so many steps a plan never ends by these rules.
MOST_STEPS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Course:
    """How one wave would go. `longest` is the longest pause between two starts of nodes."""

    name: str
    nodes: int
    began: datetime
    through: datetime
    done: datetime
    longest: timedelta


class NeverEnds(Exception):
    """By these rules no node of a wave ever starts."""


def schedule(
    waves: Sequence[tuple[str, Rules, int]],
    *,
    now: datetime,
    calendar: Sequence[Frozen] = (),
    takes: Callable[[int], timedelta],
) -> list[Course]:
    """Each wave's course, one after the other: name, rules and number of nodes of each.

    `takes` says how long the n-th node of the plan is on its way. Raises `NeverEnds`.
    """
    found, number = [], 0
    for name, rules, count in waves:
        course = _course(name, rules, count, now, tuple(calendar), partial(_later, takes, number))
        found.append(course)
        number += count
        now = course.done
    return found


def _later(takes: Callable[[int], timedelta], before: int, number: int) -> timedelta:
    return takes(before + number)


def _course(
    name: str,
    rules: Rules,
    count: int,
    now: datetime,
    calendar: tuple[Frozen, ...],
    takes: Callable[[int], timedelta],
) -> Course:
    """The rules see counts alone here: one waiting node stands for all that wait."""
    rules = replace(rules, rehearsed_within=timedelta(0))  # by then somebody has
    wave = Wave(rules=rules, phase=Phase.APPROVED, since=now, leave=Leave.GIVEN)
    moving: list[datetime] = []
    started, began, last, longest = 0, now, None, timedelta(0)
    through = now
    for _ in range(MOST_STEPS):
        while moving and moving[0] <= now:
            through = heapq.heappop(moving)
        seen = _seen(count, started, len(moving), calendar)
        decision = decide(wave, seen, now)
        if decision.move is Phase.DONE:
            return Course(name, count, began, through, now, longest)
        if decision.move is not None:
            began = now if decision.move is Phase.RUNNING else began
            wave = replace(wave, phase=decision.move, since=now)
        elif decision.start is not None:
            heapq.heappush(moving, now + takes(started))
            longest = max(longest, now - last) if last is not None else longest
            started, last = started + 1, now
        else:
            now = _next(wave, rules, calendar, moving, started < count, now)
    raise NeverEnds(f"{name}: no end in {MOST_STEPS} steps")


def _seen(count: int, started: int, moving: int, calendar: tuple[Frozen, ...]) -> Observation:
    nodes = [Seen(f"node {n}", Stand.MOVING) for n in range(moving)]
    if started < count:
        nodes.append(Seen(f"node {started}", Stand.WAITING, source=True))
    if not nodes:
        nodes.append(Seen("all of them", Stand.CONVERTED))
    return Observation(nodes=tuple(nodes), expected=len(nodes), calendar=calendar)


def _next(
    wave: Wave,
    rules: Rules,
    calendar: tuple[Frozen, ...],
    moving: Sequence[datetime],
    more: bool,
    now: datetime,
) -> datetime:
    """The next moment at which anything can be otherwise."""
    moments = [moving[0]] if moving else []
    if wave.phase is Phase.SOAKING:
        moments.append(wave.since + rules.soak)
    elif more and len(moving) < rules.concurrency:
        opens = may_start(rules.windows, calendar, now)
        if opens is not None and opens > now:
            moments.append(opens)
    if not moments:
        raise NeverEnds("no window ever opens for it")
    return min(moments)
