"""How making room stands. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The values are stored."""

    ASKED = "asked"
    """Somebody has to say yes."""
    EVICTING = "evicting"
    DONE = "done"
    """The Pods are gone and the devices free; who gets them is the scheduler's."""
    REFUSED = "refused"
    """Nobody said yes, or it is not as it was chosen any more."""
    FAILED = "failed"


ENDED: Final = frozenset({State.DONE, State.REFUSED, State.FAILED})
