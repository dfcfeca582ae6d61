"""What dry runs and proofs share: what the API server's errors say, and waiting for a worker."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Protocol, TypeVar

from django.conf import settings

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


def await_answer(row: Row, *, seconds: float | None = None) -> Row:
    """The row once it is answered, or as it stands after so many seconds (a setting).

    Call it outside of any transaction: what a worker commits must become visible.
    """
    patience = settings.DRY_RUN_PATIENCE if seconds is None else seconds
    end, wait = time.monotonic() + patience, 0.05
    while row.answered_at is None and time.monotonic() < end:
        time.sleep(wait)
        wait = min(wait * 1.5, 0.5)
        row.refresh_from_db()
    return row
