"""The states of an ask and the moves between them; stages are derived, states are stored. Pure."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where an ask stands (design: a request)."""

    REQUESTED = "requested"
    HELD = "held"
    APPLIED = "applied"
    PENDING = "pending"
    ALLOCATED = "allocated"
    IN_USE = "in use"
    RELEASING = "releasing"
    RELEASED = "released"
    FAILED = "failed"


LIVE = frozenset({State.APPLIED, State.PENDING, State.ALLOCATED, State.IN_USE})
"""States in which objects of the ask are in the cluster. Between them everything may happen: a
Pod that ends gives its devices back, and a turn may look after several changes at once."""

ENDED = frozenset({State.RELEASED})

MOVES: dict[State, frozenset[State]] = {
    State.REQUESTED: frozenset(
        {State.HELD, State.RELEASING, State.RELEASED, State.FAILED, *LIVE},
    ),
    State.HELD: frozenset(
        {State.REQUESTED, State.RELEASING, State.RELEASED, State.FAILED, *LIVE},
    ),
    **{
        state: frozenset({*(LIVE - {state}), State.RELEASING, State.RELEASED, State.FAILED})
        for state in LIVE
    },
    State.RELEASING: frozenset({State.RELEASED}),
    State.RELEASED: frozenset(),
    # A failed ask can be released; what is left of it in the cluster goes first.
    State.FAILED: frozenset({State.RELEASING, State.RELEASED}),
}


def moves() -> list[tuple[State, State]]:
    """Every allowed move, for the database's own check."""
    return sorted((before, after) for before, afters in MOVES.items() for after in afters)
