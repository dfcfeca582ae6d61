"""What dry runs and proofs share: what the API server's errors say, and waiting for a worker."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeVar

from devices.cluster.gateway import ClusterError, Forbidden, NotServed, Rejected


class Asked(Protocol):
    """A row that a worker answers."""

    answered_at: datetime | None

    def refresh_from_db(self) -> None: ...


Row = TypeVar("Row", bound=Asked)


def refusal(error: ClusterError) -> tuple[bool | None, str]:
    """False and a code where the object is refused; None where there was no answer at all."""
    match error:
        case Forbidden():
            return None, "RIGHTS_MISSING"
        case NotServed():
            return False, "NOT_SERVED"
        case Rejected():
            return False, "REFUSED_BY_SERVER"
    return None, "CLUSTER_UNREACHABLE"


def await_answer(row: Row, seconds: float, pause: Callable[[float], None] = time.sleep) -> Row:
    """The row once it is answered, or as it stands after so many seconds.

    Call it outside of any transaction: what a worker commits must become visible.
    """
    end, wait = time.monotonic() + seconds, 0.05
    while row.answered_at is None and time.monotonic() < end:
        pause(wait)
        wait = min(wait * 1.5, 0.5)
        row.refresh_from_db()
    return row
