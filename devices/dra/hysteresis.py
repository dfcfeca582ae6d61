"""When a finding is believed, and when it is over: slices dip, and a dip is neither. Pure.

A kubelet deletes a driver's slices 30 seconds after it lost the driver's socket, and whoever
restarts a kubelet or a driver sees them all vanish and come back within two or three minutes. So a
finding counts once it has lasted as long as its code has patience, and one that counts is over
only once it was not found for `CALM`: what comes and goes every few seconds is one finding, not
hundreds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

#: So long a finding that counts has to be away before it is over.
CALM: Final = timedelta(minutes=1)


class Step(StrEnum):
    """What becomes of a finding at one look."""

    WATCHED = "watched"
    """It is there, and too young to count."""
    OPENED = "opened"
    """It counts from now on."""
    STANDS = "stands"
    """It counts, as before; also while it is away for a moment."""
    PASSED = "passed"
    """It went before it counted: a dip."""
    ENDED = "ended"
    """It counted, and has been away long enough."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What is remembered of a finding between two looks."""

    first_seen: datetime
    seen: datetime
    believed: bool = False


def step(memory: Memory, found: bool, patience: timedelta | None, now: datetime) -> Step:
    """One look at one finding; `found` says whether this look shows it."""
    if found:
        if memory.believed:
            return Step.STANDS
        lasted = now - memory.first_seen
        return Step.OPENED if lasted >= (patience or timedelta(0)) else Step.WATCHED
    if not memory.believed:
        return Step.PASSED
    return Step.ENDED if now - memory.seen >= CALM else Step.STANDS
