"""Tenants by state, for the metrics. None is named."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count

from portal import metrics
from tenants.models import Tenant


def read(now: datetime) -> Iterator[metrics.Reading]:
    """One query."""
    for row in Tenant.objects.values("state").annotate(n=Count("pk")).order_by("state"):
        yield metrics.TENANTS.at(row["n"], row["state"])
