"""The mirror: what the cluster has, in our own tables, with an age; `store` writes it."""

from __future__ import annotations

from devices.mirror.read import (
    Freshness,
    find,
    freshness,
    raw_objects,
    snapshot_objects,
    taken,
)

__all__ = ["Freshness", "find", "freshness", "raw_objects", "snapshot_objects", "taken"]
