"""When a node may start: windows over both changes of the clocks, and the freeze calendar."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from migrationplan.windows import (
    Frozen,
    Window,
    about,
    frozen_by,
    is_open,
    may_start,
    open_until,
    opens_next,
    said,
)

BERLIN = "Europe/Berlin"
NIGHTS = Window(frozenset({0, 1, 2, 3}), time(22), time(4), BERLIN)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def window(begins: str, ends: str, *days: int, zone: str = BERLIN) -> Window:
    days = days or tuple(range(7))
    return Window(frozenset(days), time.fromisoformat(begins), time.fromisoformat(ends), zone)


@pytest.mark.parametrize(
    ("one", "now", "closes", "opens"),
    [
        pytest.param(NIGHTS, "2026-11-30T20:59", None, "2026-11-30T21:00", id="a minute before"),
        pytest.param(NIGHTS, "2026-11-30T21:00", "2026-12-01T03:00", "2026-12-01T21:00", id="open"),
        pytest.param(NIGHTS, "2026-12-01T02:59", "2026-12-01T03:00", "2026-12-01T21:00", id="in"),
        pytest.param(NIGHTS, "2026-12-01T03:00", None, "2026-12-01T21:00", id="its end is outside"),
        pytest.param(NIGHTS, "2026-12-04T01:00", "2026-12-04T03:00", "2026-12-07T21:00", id="Thu"),
        pytest.param(NIGHTS, "2026-12-04T22:00", None, "2026-12-07T21:00", id="not on Friday"),
        # 29 March 2026: 02:00 CET becomes 03:00 CEST at 01:00 UTC.
        pytest.param(
            window("02:30", "04:00", 6), "2026-03-29T00:59", None, "2026-03-29T01:00",
            id="begins in the hour that does not exist",
        ),
        pytest.param(
            window("00:00", "02:30", 6), "2026-03-29T00:30", "2026-03-29T01:00", "2026-04-04T22:00",
            id="ends in the hour that does not exist",
        ),
        pytest.param(
            window("02:10", "02:50", 6), "2026-03-28T12:00", None, "2026-04-05T00:10",
            id="lies in it whole, and falls out",
        ),
        pytest.param(
            window("22:00", "04:00", 5), "2026-03-28T21:30", "2026-03-29T02:00", "2026-04-04T20:00",
            id="is an hour shorter",
        ),
        # 25 October 2026: 03:00 CEST becomes 02:00 CET at 01:00 UTC.
        pytest.param(
            window("02:30", "04:00", 6), "2026-10-25T00:00", None, "2026-10-25T00:30",
            id="begins in the hour that comes twice: the first time",
        ),
        pytest.param(
            window("01:00", "02:30", 6), "2026-10-25T00:45", "2026-10-25T01:30", "2026-11-01T00:00",
            id="ends in the hour that comes twice: the second time",
        ),
        pytest.param(
            window("22:00", "04:00", 5), "2026-10-24T20:30", "2026-10-25T03:00", "2026-10-31T21:00",
            id="is an hour longer",
        ),
        pytest.param(
            window("00:00", "00:00"), "2026-11-30T10:00", "2026-12-09T23:00", "2026-11-30T23:00",
            id="day after day is one",
        ),
    ],
)  # fmt: skip
def test_a_window_is_open_by_the_clocks_of_its_zone(
    one: Window, now: str, closes: str | None, opens: str
) -> None:
    found = open_until([one], at(now))
    if closes == "2026-12-09T23:00":
        assert found is not None and found - at(now) > timedelta(days=7)
    else:
        assert found == (at(closes) if closes else None)
    assert opens_next([one], at(now)) == at(opens)


def test_without_windows_a_node_may_always_start() -> None:
    assert is_open((), at("2026-11-30T10:00")) and opens_next((), at("2026-11-30T10:00")) is None
    assert may_start((), (), at("2026-11-30T10:00")) == at("2026-11-30T10:00")


def test_the_calendar_goes_before_the_window() -> None:
    holidays = Frozen(at("2026-12-18T00:00"), at("2027-01-04T12:00"), "Year's end")
    now = at("2026-12-21T22:00")
    assert is_open([NIGHTS], now) and frozen_by([holidays], now) == holidays
    assert may_start([NIGHTS], [holidays], now) == at("2027-01-04T21:00")
    assert may_start((), [holidays], now) == holidays.ends


def test_a_window_that_no_clock_ever_opens_has_no_moment() -> None:
    never = Window(frozenset(), time(1), time(2), BERLIN)
    assert may_start([never], (), at("2026-11-30T10:00")) is None


@pytest.mark.parametrize(
    ("moment", "zone", "words"),
    [
        ("2026-12-07T08:00", BERLIN, "Mon 7 Dec 09:00 CET"),
        ("2026-12-01T21:00", BERLIN, "Tue 22:00 CET"),
        ("2026-12-01T21:00", "UTC", "Tue 21:00 UTC"),
    ],
)
def test_a_moment_in_words(moment: str, zone: str, words: str) -> None:
    assert said(at(moment), at("2026-11-30T10:00"), zone) == words


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(-5, "about 1 min"), (12, "about 12 min"), (130, "about 2 h"), (60 * 50, "about 2 days")],
)
def test_a_length_in_words(minutes: int, words: str) -> None:
    assert about(timedelta(minutes=minutes)) == words


MOMENTS = some.datetimes(
    datetime(2026, 1, 1), datetime(2027, 12, 31), timezones=some.just(UTC)
).map(lambda moment: moment.replace(second=0, microsecond=0))
CLOCKS = some.times().map(lambda clock: clock.replace(second=0, microsecond=0))
WINDOWS = some.builds(
    Window,
    days=some.frozensets(some.integers(0, 6), min_size=1),
    begins=CLOCKS,
    ends=CLOCKS,
    zone=some.sampled_from([BERLIN, "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"]),
)


@given(windows=some.lists(WINDOWS, min_size=1, max_size=3), now=MOMENTS)
def test_what_opens_next_is_open_and_nothing_is_before_it(
    windows: list[Window], now: datetime
) -> None:
    opens = opens_next(windows, now)
    if opens is None:  # the only ones lie in the hour that does not exist
        return
    assert opens > now and open_until(windows, opens) is not None
    start = may_start(windows, (), now)
    assert start is not None and is_open(windows, start) and now <= start <= opens
    if not is_open(windows, now):
        middle = now + (opens - now) / 2
        assert not is_open(windows, middle) or middle == opens
