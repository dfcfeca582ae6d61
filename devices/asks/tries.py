"""How often something was tried again, by whom, and when next.

What Kubernetes tries again by itself (scheduling, preparing) is only watched; Berth tries again
what it promised in the outbox, with growing pauses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Max, Min

from devices.asks.reconcile import RECONCILE
from devices.models import Claim, StageTimes
from portal.outbox.models import OutboxLine


@dataclass(frozen=True, slots=True)
class Tries:
    """``attempts`` of Berth's that did not settle it, the next one at ``next_at`` (None: none is
    due). ``preparations`` are tries of the kubelet's that failed and that it repeats by itself.
    """

    attempts: int = 0
    next_at: datetime | None = None
    preparations: int = 0

    def __bool__(self) -> bool:
        return bool(self.attempts or self.preparations)


def tries_of(claim: Claim) -> Tries:
    """Two queries. The first sending is no retry: a line that was not sent again says nothing."""
    lines = OutboxLine.objects.filter(task=RECONCILE, key=claim.public_id, attempts__gt=0)
    found = lines.aggregate(attempts=Max("attempts"), next_at=Min("due_at"))
    under_way = StageTimes.objects.filter(claim=claim, released_at=None, running_at=None)
    prepared = under_way.aggregate(most=Max("retries"))["most"]
    return Tries(found["attempts"] or 0, found["next_at"], prepared or 0)
