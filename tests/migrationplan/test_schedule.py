"""When a plan would be through: by the rules that run it, on a clock of its own."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from migrationplan.phases import Rules
from migrationplan.plans.reading import windows
from migrationplan.plans.schedule import NeverEnds, schedule
from migrationplan.windows import Frozen, is_open

#: A Monday.
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
NIGHTS = windows("Mon-Thu 22:00-04:00 Europe/Berlin")
QUICK = Rules(soak=HOUR)


def test_one_after_the_other_then_the_soak() -> None:
    (course,) = schedule([("All", QUICK, 4)], now=NOW, takes=lambda n: HOUR)
    assert (course.began, course.through) == (NOW, NOW + 4 * HOUR)
    assert course.done == NOW + 5 * HOUR and course.longest == HOUR


def test_two_at_once_are_twice_as_fast() -> None:
    (course,) = schedule([("All", replace(QUICK, concurrency=2), 4)], now=NOW, takes=lambda n: HOUR)
    assert course.through == NOW + 2 * HOUR


def test_a_wave_begins_when_the_one_before_is_done_and_its_window_is_open() -> None:
    waves = [("Canary", QUICK, 1), ("Rest", replace(QUICK, windows=NIGHTS), 20)]
    canary, rest = schedule(waves, now=NOW, takes=lambda n: HOUR)
    assert canary.done == NOW + 2 * HOUR
    assert rest.began == datetime(2026, 11, 30, 21, 0, tzinfo=UTC)
    assert rest.longest > 15 * HOUR, "it waits through the days"


def test_the_calendar_is_waited_for() -> None:
    fair = Frozen(NOW, NOW + timedelta(days=3), "Fair")
    (course,) = schedule([("All", QUICK, 1)], now=NOW, calendar=[fair], takes=lambda n: HOUR)
    assert course.began == fair.ends


def test_what_never_ends_says_so() -> None:
    never = replace(QUICK, windows=(replace(NIGHTS[0], days=frozenset()),))
    with pytest.raises(NeverEnds):
        schedule([("All", never, 1)], now=NOW, takes=lambda n: HOUR)


def test_five_thousand_nodes_are_through_and_started_in_their_windows() -> None:
    rules = Rules(windows=NIGHTS, concurrency=40, soak=timedelta(hours=24))
    waves = [
        ("Canary", replace(rules, concurrency=2), 20),
        ("Retryable", rules, 1500),
        ("Throughput", rules, 2500),
        ("Long-running", replace(rules, concurrency=10), 980),
    ]
    fair = Frozen(NOW + timedelta(days=20), NOW + timedelta(days=35), "Year's end")
    found = schedule(
        waves, now=NOW, calendar=[fair], takes=lambda n: timedelta(minutes=10 + (n * 37) % 240)
    )
    assert [one.nodes for one in found] == [20, 1500, 2500, 980]
    for one, after in pairwise(found):
        assert one.began < one.through <= one.done <= after.began
        assert is_open(NIGHTS, after.began)
    assert found[-1].done - NOW < timedelta(days=180)
