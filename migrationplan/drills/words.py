"""The words of drills: kinds, results, and what a person reads of each. Pure."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    """What is drilled; the values are stored."""

    DRIVER_RESTART = "driver restart"
    NODE_LOSS = "node loss"
    DUPLICATE_ALLOCATION = "duplicate allocation"
    LEAKED_CLAIM = "leaked claim"
    CROSS_NAMESPACE = "cross-namespace attempt"
    STALE_SLICE = "stale slice"
    GENERATION_REGRESSION = "generation regression"
    ROLLBACK = "rollback rehearsal"


class Result(StrEnum):
    """How a drill ended; the values are stored."""

    PASSED = "passed"
    FAILED = "failed"
    GIVEN_UP = "given up"


class Act(StrEnum):
    """What Berth does itself in a drill, because it is safe on any cluster."""

    TRY_ACROSS = "a Pod that names somebody else's claim"
    TIDY = "Berth's own Pod away"
    COLLECT = "the evidence collected"
