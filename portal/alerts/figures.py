"""What rings, and what could not be told yet, for the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count

from portal import metrics
from portal.alerts.models import Alert, Delivery


def read(now: datetime) -> Iterator[metrics.Reading]:
    """Two queries."""
    rows = Alert.objects.filter(over_at=None).values("code", "severity").annotate(n=Count("pk"))
    for row in rows.order_by("code", "severity"):
        yield metrics.ALERTS.at(row["n"], row["code"], row["severity"])
    waiting = Delivery.objects.filter(arrived_at=None, due_at__lte=now).count()
    yield metrics.DELIVERIES.at(waiting)
