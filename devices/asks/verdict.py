"""What a program that waits for a claim is told: it is ready, wait on, or give up. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from devices.dra.codes import CODES, Class, Who
from devices.dra.lifecycle import LIVE, State


class Verdict(StrEnum):
    """READY: what was waited for is so. RETRYABLE: not yet. PERMANENT: not without a person."""

    READY = "ready"
    RETRYABLE = "retryable"
    PERMANENT = "permanent"


#: What one can wait for, and in which states that is so.
GOALS: Final[Mapping[str, frozenset[State]]] = {
    "usable": LIVE,
    "allocated": frozenset({State.ALLOCATED, State.IN_USE}),
    "running": frozenset({State.IN_USE}),
    "released": frozenset({State.RELEASED}),
}
LEAVING: Final = frozenset({State.RELEASING, State.RELEASED})


@dataclass(frozen=True, slots=True)
class Waited:
    """A verdict with who acts next; `retry_after` in seconds, None where asking again is vain."""

    verdict: Verdict
    who: str
    retry_after: int | None


def waited(state: State, code: str, goal: str) -> Waited:
    """How a claim in this state, for this reason, stands to `goal` (a key of GOALS)."""
    known = CODES.get(code)
    who = str(known.who if known else Who.NOBODY)
    if state in GOALS[goal]:
        return Waited(Verdict.READY, who, None)
    if goal == "released":
        return Waited(Verdict.RETRYABLE, who, 5)
    if state in LEAVING or state == State.FAILED:
        return Waited(Verdict.PERMANENT, who, None)
    if state == State.PENDING and known is not None and known.class_ is Class.NOT_RETRYABLE:
        return Waited(Verdict.PERMANENT, who, None)
    return Waited(Verdict.RETRYABLE, who, 30 if state == State.HELD else 5)
