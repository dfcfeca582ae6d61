"""Where an ask stands, as stages: derived from its state and the moments it went through."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from devices.asks.stages import STAGES, stages
from devices.dra.lifecycle import State

NOON = datetime(2026, 11, 24, 12, 0, 0, tzinfo=UTC)


def at(**seconds: float) -> dict[str, datetime]:
    """at(applied=2) → that state was first reached two seconds after noon."""
    return {
        name.replace("_", " "): NOON + timedelta(seconds=after) for name, after in seconds.items()
    }


def signs(state: str, reached: dict[str, datetime]) -> str:
    """One letter a stage: d(one), h(ere), t(o come)."""
    drawn = stages(state, NOON, reached, NOON + timedelta(minutes=26))
    return "".join(stage.state[0] for stage in drawn)


@pytest.mark.parametrize(
    ("state", "reached", "drawn"),
    [
        pytest.param("requested", at(requested=0), "dhttt", id="just asked"),
        pytest.param("held", at(requested=0, held=1), "dhttt", id="held before it is sent"),
        pytest.param("applied", at(requested=0, applied=1), "ddhtt", id="waits for a Pod"),
        pytest.param("pending", at(requested=0, applied=1, pending=2), "ddhtt", id="pending"),
        pytest.param("pending", at(requested=0, pending=2), "ddhtt", id="a state was skipped"),
        pytest.param("allocated", at(requested=0, allocated=2), "dddht", id="being prepared"),
        pytest.param("in use", at(requested=0, in_use=9), "ddddt", id="running"),
        pytest.param(
            "applied", at(requested=0, applied=1, in_use=9), "ddhtt", id="its Pod ended, it waits"
        ),
        pytest.param("failed", at(requested=0), "dhttt", id="failed before it was sent"),
        pytest.param("failed", at(requested=0, applied=1), "ddhtt", id="failed later"),
        pytest.param(
            "releasing", at(requested=0, in_use=9, releasing=20), "ddddh", id="being released"
        ),
        pytest.param(
            "released", at(requested=0, applied=1, released=20), "ddddd", id="over is over"
        ),
    ],
)
def test_stages(state: str, reached: dict[str, datetime], drawn: str) -> None:
    assert signs(state, reached) == drawn


def test_notes_say_when_how_long_after_and_how_long_so_far() -> None:
    reached = at(requested=0, applied=0.6, pending=3)
    drawn = stages("pending", NOON, reached, NOON + timedelta(minutes=26))
    assert [stage.note for stage in drawn] == ["12:00:00", "+0.6 s", "26 min so far", "", ""]
    assert drawn[2].tone == "wait"


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_place(state: State) -> None:
    assert len(stages(state, NOON, at(requested=0), NOON)) == len(STAGES)


def test_what_is_held_is_not_said_to_be_sent() -> None:
    drawn = stages("held", NOON, at(requested=0, held=1), NOON + timedelta(minutes=3))
    assert [stage.word for stage in drawn[:3]] == ["Asked", "Held", "Allocated"]
    assert (drawn[1].note, drawn[1].tone) == ("3 min so far", "hold")
