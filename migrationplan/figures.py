"""Nodes on their way from one path to the other, for the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count

from migrationplan.models import Move
from portal import metrics


def read(now: datetime) -> Iterator[metrics.Reading]:
    """Two queries."""
    under_way = Move.objects.filter(ended_at=None)
    for one in under_way.values("step").annotate(n=Count("pk")).order_by("step"):
        yield metrics.MOVES.at(one["n"], one["step"])
    stuck = under_way.exclude(called="").values("called").annotate(n=Count("pk"))
    for row in stuck.order_by("called"):
        yield metrics.MOVES_STUCK.at(row["n"], row["called"])
