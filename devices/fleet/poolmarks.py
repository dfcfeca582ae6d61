"""Remembers how far each slice pool was, so that one whose generation goes back is noticed."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from devices.dra.doubt import Mark, advance
from devices.dra.pools import pools
from devices.dra.snapshot import Snapshot
from devices.models import PoolMark


def scan(snapshot: Snapshot, now: datetime) -> int:
    """Writes what changed; returns how many pools are back. Pools that are gone are forgotten:
    their next life counts from anywhere.
    """
    with transaction.atomic():
        rows = {
            (row.driver, row.pool): row
            for row in PoolMark.objects.select_for_update().order_by("pk")
        }
        fresh, changed, back = [], [], 0
        for key, pool in pools(snapshot).items():
            row = rows.pop(key, None)
            before = None
            if row is not None:
                before = Mark(row.generation, frozenset(row.slices), row.back_at is not None)
            after = advance(before, pool)
            back += after.back
            if row is None:
                row = PoolMark(driver=key[0], pool=key[1])
                fresh.append(row)
            elif before != after:
                changed.append(row)
            row.generation, row.slices, row.seen_at = after.generation, sorted(after.slices), now
            row.back_at = (row.back_at or now) if after.back else None
        PoolMark.objects.bulk_create(fresh, ignore_conflicts=True, batch_size=1000)
        fields = ["generation", "slices", "back_at", "seen_at"]
        PoolMark.objects.bulk_update(changed, fields, batch_size=1000)
        PoolMark.objects.filter(pk__in=[row.pk for row in rows.values()]).delete()
    return back
