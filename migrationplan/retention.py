"""What floor 3 forgets with time: readings of gates that decide nothing any more.

Plans, waves, moves, drills and evidence are never forgotten here: they are the record. What a
bundle shows is kept with the bundle.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pgtrigger
from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet

from devices.retention import in_batches
from migrationplan.models import Reading, Wave
from migrationplan.phases import Phase

_OVER = (Phase.DONE.value, Phase.ROLLED_BACK.value)


def forget(now: datetime, *, rehearse: bool = False) -> dict[str, int]:
    """Deletes what is older than the settings say; with `rehearse` only counts. By its name."""
    rows = old_readings(now - timedelta(days=settings.KEEP_READINGS_DAYS))
    if rehearse:
        return {"readings of gates": rows.count()}
    with pgtrigger.ignore("migrationplan.Reading:reading_kept"):
        return {"readings of gates": in_batches(rows)}


def old_readings(before: datetime) -> QuerySet[Reading]:
    """Readings from before, of waves that are over or of none; the newest of each gate stays."""
    under_way = Wave.objects.exclude(phase__in=_OVER).values("public_id")
    newer = Reading.objects.filter(
        pool=OuterRef("pool"),
        wave=OuterRef("wave"),
        direction=OuterRef("direction"),
        gate=OuterRef("gate"),
        pk__gt=OuterRef("pk"),
    )
    return Reading.objects.filter(Exists(newer), at__lt=before).exclude(wave__in=under_way)
