"""What floor 2 forgets with time: rows that explain something which is long over.

Asks themselves, budget lines, ownership and freezes are never forgotten here: they are the record.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet

from devices.dra.lifecycle import ENDED
from devices.models import ClaimEvent, DryRun, LeakRow, Proof

#: Rows that go in one transaction: nobody else waits for longer.
BATCH = 2000


def forget(now: datetime, *, rehearse: bool = False) -> dict[str, int]:
    """Deletes what is older than the settings say; with `rehearse` only counts. By its name."""
    history = now - timedelta(days=settings.KEEP_HISTORY_DAYS)
    leaks = now - timedelta(days=settings.KEEP_LEAKS_DAYS)
    day = now - timedelta(days=1)
    old: dict[str, QuerySet[Any]] = {
        "events of asks that are over": ClaimEvent.objects.filter(
            claim__state__in=ENDED, claim__since__lt=history, at__lt=history
        ),
        "leaks that are gone": LeakRow.objects.filter(gone_at__lt=leaks),
        "dry runs": DryRun.objects.filter(asked_at__lt=day),
        "proofs of translations": Proof.objects.filter(asked_at__lt=day),
    }
    return {name: rows.count() if rehearse else in_batches(rows) for name, rows in old.items()}


def in_batches(rows: QuerySet[Any]) -> int:
    """Deletes all of `rows`, a batch a transaction; returns how many there were."""
    gone = 0
    while batch := list(rows.order_by("pk").values_list("pk", flat=True)[:BATCH]):
        rows.model._base_manager.filter(pk__in=batch).delete()
        gone += len(batch)
    return gone
