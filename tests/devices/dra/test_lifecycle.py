"""The states of an ask: what may follow what."""

from __future__ import annotations

import pytest

from devices.dra.lifecycle import LIVE, MOVES, State


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_row(state: State) -> None:
    assert state in MOVES


def test_nothing_leaves_released() -> None:
    assert MOVES[State.RELEASED] == frozenset()


def test_nothing_comes_back_from_releasing() -> None:
    assert MOVES[State.RELEASING] == {State.RELEASED}


@pytest.mark.parametrize("state", [state for state in State if state is not State.RELEASED])
def test_every_ask_can_end(state: State) -> None:
    reached, todo = {state}, [state]
    while todo:
        for after in MOVES[todo.pop()] - reached:
            reached.add(after)
            todo.append(after)
    assert State.RELEASED in reached


@pytest.mark.parametrize("state", sorted(LIVE))
def test_a_turn_that_looks_late_may_skip_states(state: State) -> None:
    assert LIVE - {state} <= MOVES[state]
