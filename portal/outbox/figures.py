"""How much is promised and not yet kept, for the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Min

from portal import metrics
from portal.outbox.models import OutboxLine


def read(now: datetime) -> Iterator[metrics.Reading]:
    """One query."""
    lines = OutboxLine.objects.values("task").annotate(n=Count("pk"), oldest=Min("created_at"))
    for row in lines.order_by("task"):
        yield metrics.OUTBOX_LINES.at(row["n"], row["task"])
        yield metrics.OUTBOX_AGE.at(metrics.age(row["oldest"], now), row["task"])
