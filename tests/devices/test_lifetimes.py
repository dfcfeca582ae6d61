"""How long asks may last, and when their end is announced."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.asks.lifetimes import (
    MOST_DAYS,
    WARNINGS,
    bound,
    days_given,
    end_of,
    ends_soon,
    warned_from_the_start,
    warning_due,
    wrong_days,
)
from tests.factories import NOON

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("days", "longest", "said"),
    [
        pytest.param(None, None, "", id="no end where none is needed"),
        pytest.param(None, 14, "It must end", id="no end where one is needed"),
        pytest.param(14, 14, "", id="the maximum itself"),
        pytest.param(15, 14, "from 1 to 14. Extend it later", id="more than the maximum"),
        pytest.param(0, None, f"from 1 to {MOST_DAYS}.", id="no time at all"),
        pytest.param(-3, 14, "from 1 to 14", id="time that is over"),
        pytest.param(MOST_DAYS, None, "", id="as far as anybody plans"),
        pytest.param(MOST_DAYS + 1, None, f"from 1 to {MOST_DAYS}.", id="further than that"),
    ],
)
def test_days_that_cannot_be_taken_are_answered_with_those_that_can(
    days: int | None, longest: int | None, said: str
) -> None:
    assert said in wrong_days(days, longest)
    assert bool(wrong_days(days, longest)) == bool(said)


def test_the_strictest_maximum_counts_and_is_what_nothing_said_means() -> None:
    assert bound(None, None) is None
    assert bound(30, None) == bound(None, 30) == bound(30, 90) == 30
    assert days_given(None, 30) == 30
    assert days_given(None, None) is None
    assert days_given(3, 30) == 3


@pytest.mark.parametrize(
    ("asked", "warnings"),
    [
        pytest.param(30, [7, 1], id="a month: a week and a day before"),
        pytest.param(8, [7, 1], id="eight days: both"),
        pytest.param(7, [1], id="a week: a day before, for the week is known"),
        pytest.param(3, [1], id="three days: a day before"),
        pytest.param(1, [], id="one day: no warning at all"),
    ],
)
def test_a_sweep_an_hour_gives_each_warning_once_and_in_order(
    asked: int, warnings: list[int]
) -> None:
    expires_at = end_of(asked, NOON)
    assert expires_at is not None
    warned, given_at = warned_from_the_start(expires_at, NOON), []
    now = NOON
    while now < expires_at:
        if (due := warning_due(expires_at, warned, now)) is not None:
            warned = due
            given_at.append(due)
            assert expires_at - now <= timedelta(days=due)
        now += timedelta(hours=1)
    assert given_at == warnings


def test_a_sweep_that_comes_late_gives_only_the_last_warning() -> None:
    expires_at = NOON + timedelta(hours=5)
    assert warning_due(expires_at, None, NOON) == 1
    assert warning_due(expires_at, 7, NOON) == 1
    assert warning_due(expires_at, 1, NOON) is None
    assert warning_due(None, None, NOON) is None


@given(
    asked=st.integers(1, 400),
    sweeps=st.lists(st.floats(0, 400), max_size=30),
)
def test_whenever_sweeps_come_no_warning_comes_twice_or_after_a_later_one(
    asked: int, sweeps: list[float]
) -> None:
    expires_at = NOON + asked * DAY
    warned, given_at = warned_from_the_start(expires_at, NOON), []
    for moment in sorted(sweeps):
        now: datetime = NOON + moment * DAY
        if now < expires_at and (due := warning_due(expires_at, warned, now)) is not None:
            warned = due
            given_at.append(due)
    assert given_at == sorted(set(given_at), reverse=True)
    assert set(given_at) <= set(WARNINGS)


def test_an_end_is_near_a_week_before_it() -> None:
    assert not ends_soon(None, NOON)
    assert not ends_soon(NOON + 7 * DAY + timedelta(seconds=1), NOON)
    assert ends_soon(NOON + 7 * DAY, NOON)
