"""Useful and lost time out of a run's signals: cases, and what always holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.training import Hold, Kind, Signal, Stretch, Sums, Why, account, sums

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
HOUR = 60.0


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def said(kind: Kind, minutes: float, **more: object) -> Signal:
    return Signal(kind, at(minutes), f"{kind}-{minutes}", **more)  # type: ignore[arg-type]


def minutes(signals: list[Signal], ended: str = "", end: float | None = HOUR) -> dict[str, float]:
    """Minutes by what became of them, of an hour that was held."""
    hold = Hold(NOON, None if end is None else at(end), ended)
    found = sums(account(hold, signals, at(HOUR)).stretches, NOON, at(HOUR))
    parts = {"useful": found.useful, **found.lost_by, **found.unknown_by}
    return {str(name): round(value / 60, 2) for name, value in parts.items() if value}


STARTED, SAVED, RESTORED = Kind.STARTED, Kind.CHECKPOINT, Kind.RESTORED
RETRY, FINISHED, USEFUL = Kind.RETRY, Kind.FINISHED, Kind.USEFUL


@pytest.mark.parametrize(
    ("signals", "ended", "result"),
    [
        pytest.param([], "", {Why.NO_SIGNALS: 60}, id="nothing told is unknown"),
        pytest.param([], "failed", {Why.NO_SIGNALS: 60}, id="a failed Pod may have saved its work"),
        pytest.param(
            [
                said(STARTED, 5),
                said(SAVED, 35),
                said(RETRY, 45),
                said(RESTORED, 50),
                said(FINISHED, 60),
            ],
            "",
            {Why.SETUP: 5, "useful": 40, Why.REWORK: 10, Why.DOWN: 5},
            id="the example of the module",
        ),
        pytest.param(
            [said(STARTED, 10), said(SAVED, 30)],
            "",
            {Why.SETUP: 10, "useful": 20, Why.SINCE_CHECKPOINT: 30},
            id="what is not saved yet is unknown while it runs",
        ),
        pytest.param(
            [said(STARTED, 10), said(SAVED, 30)],
            "failed",
            {Why.SETUP: 10, "useful": 20, Why.REWORK: 30},
            id="a Pod that failed lost what was not saved",
        ),
        pytest.param(
            [said(STARTED, 10)],
            "succeeded",
            {Why.SETUP: 10, "useful": 50},
            id="a Pod that succeeded needed no word of its end",
        ),
        pytest.param(
            [said(STARTED, 0), said(FINISHED, 20, ok=False)],
            "",
            {Why.REWORK: 20, Why.AFTER: 40},
            id="finished badly, and held on to",
        ),
        pytest.param(
            [said(SAVED, 30), said(FINISHED, 60)],
            "",
            {Why.START_UNTOLD: 30, "useful": 30},
            id="nobody said when it began",
        ),
        pytest.param(
            [said(STARTED, 0), said(STARTED, 20), said(FINISHED, 60)],
            "",
            {Why.REWORK: 20, "useful": 40},
            id="begun anew without a word in between",
        ),
        pytest.param(
            [said(STARTED, 0), said(USEFUL, 20, seconds=600.0), said(USEFUL, 40, seconds=900.0)],
            "",
            {"useful": 25, Why.NOT_USEFUL: 15, Why.SINCE_CHECKPOINT: 20},
            id="reports count up to the last of them",
        ),
        pytest.param(
            [said(STARTED, -30), said(FINISHED, 90)], "", {"useful": 60}, id="clocks that differ"
        ),
        pytest.param(
            [said(STARTED, 0), said(FINISHED, 20), said(STARTED, 30), said(FINISHED, 60)],
            "",
            {"useful": 50, Why.AFTER: 10},
            id="two runs after each other",
        ),
    ],
)
def test_what_became_of_an_hour(
    signals: list[Signal], ended: str, result: dict[str, float]
) -> None:
    assert minutes(signals, ended) == {str(name): float(part) for name, part in result.items()}


def test_what_nobody_timed_has_no_account() -> None:
    assert account(Hold(None), [said(STARTED, 0)], at(1)).stretches == ()


def test_more_useful_seconds_than_there_were_are_said_to_be_too_many() -> None:
    found = account(Hold(NOON, at(60)), [said(USEFUL, 10, seconds=1200.0)], at(60))
    assert found.overstated
    assert found.stretches[0] == Stretch(NOON, at(10), 1.0, Why.NOT_USEFUL)


def test_a_share_is_of_what_is_known_and_none_where_nothing_is() -> None:
    assert Sums(useful=30, lost=10, unknown=100).share == 0.75
    assert Sums(unknown=100).share is None
    both = Sums(30, 10, 0, {Why.SETUP: 10}).plus(Sums(5, 5, 1, {Why.SETUP: 5}), times=4)
    assert (both.useful, both.lost, both.unknown, both.lost_by) == (50, 30, 4, {Why.SETUP: 30})


SIGNALS = st.lists(
    st.builds(
        lambda kind, when, seconds, ok: Signal(
            kind, at(when), f"{kind}-{when}-{seconds}-{ok}", seconds if kind is USEFUL else None, ok
        ),
        st.sampled_from(list(Kind)),
        st.integers(-20, 90),
        st.floats(0, 7200),
        st.booleans(),
    ),
    max_size=12,
)
HOLDS = st.builds(
    lambda length, ended: Hold(NOON, None if length is None else at(length), ended),
    st.none() | st.integers(0, 80),
    st.sampled_from(["", "succeeded", "failed"]),
)


@given(HOLDS, SIGNALS, st.randoms())
def test_every_second_counts_once_in_whatever_order_the_signals_come(
    hold: Hold, signals: list[Signal], random: object
) -> None:
    found = account(hold, signals, at(60))
    shuffled = [*signals, *signals[:3]]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert account(hold, shuffled, at(60)) == found, "doubled and out of order"
    moments = [moment for one in found.stretches for moment in (one.start, one.end)]
    assert moments == sorted(moments)
    assert all(a.end == b.start for a, b in zip(found.stretches, found.stretches[1:], strict=False))
    whole = sums(found.stretches, at(-100), at(100))
    length = ((hold.end or at(60)) - NOON).total_seconds()
    assert whole.held == pytest.approx(length)
    halves = sums(found.stretches, at(-100), at(17)).plus(sums(found.stretches, at(17), at(100)))
    assert halves.useful == pytest.approx(whole.useful)
    assert halves.lost == pytest.approx(whole.lost)
