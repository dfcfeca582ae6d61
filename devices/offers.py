"""Counting what each class has to offer: mirror → rules → one row a class, which pages read.

A worker counts, at most about once a second while the cluster changes; a page costs one query
whatever the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from devices import mirror
from devices.dra.offers import ClassCount, Group, Tally, catalogue_counts
from devices.dra.pluginpath import PluginCount, plugin_counts
from devices.dra.snapshot import KINDS, Snapshot, read_json
from devices.models import Offer
from portal import news

GROUPS_SHOWN = 24
NAMING = ("productName", "model", "product", "profile", "type")
"""Attributes that say what a device is, the most telling first; by their last part."""


def snapshot() -> Snapshot:
    """Everything the rules read, as the mirror has it now."""
    return read_json(mirror.raw_objects(*KINDS), taken=mirror.taken(*KINDS))


def count(now: datetime) -> int:
    """Counts every class anew and tells open pages when a figure changed; returns how many did.

    Counts nothing until each kind was listed once: half a mirror would show false figures.
    """
    seen = snapshot()
    if seen.taken is None:
        return 0
    plugin = plugin_counts(seen)
    fresh = {
        name: counts_json(found, plugin.get(name)) for name, found in catalogue_counts(seen).items()
    }
    changed = store(fresh, now=now, seen_at=seen.taken)
    if changed:
        news.publish(["offers"])
    return changed


@transaction.atomic
def store(fresh: Mapping[str, dict[str, Any]], *, now: datetime, seen_at: datetime) -> int:
    """Writes the counts; classes that are gone go. Returns how many rows say something new."""
    before = dict(Offer.objects.values_list("device_class", "counts"))
    Offer.objects.bulk_create(
        [
            Offer(device_class=name, counts=counts, counted_at=now, seen_at=seen_at)
            for name, counts in fresh.items()
        ],
        update_conflicts=True,
        unique_fields=["device_class"],
        update_fields=["counts", "counted_at", "seen_at"],
    )
    gone = set(before) - set(fresh)
    Offer.objects.filter(device_class__in=gone).delete()
    return len(gone) + sum(before.get(name) != counts for name, counts in fresh.items())


def counts_json(found: ClassCount, plugin: PluginCount | None) -> dict[str, Any]:
    """A class's figures as JSON: numbers, reasons, groups of equal devices, and its paths."""
    paths = ["dra"] if found.tally.total else []
    if plugin and plugin.allocatable:
        paths.append("plugin")
    return {
        **_tally(found.tally),
        "problem": found.problem,
        "path": paths,
        "plugin": {
            "resource": plugin.resource,
            "allocatable": plugin.allocatable,
            "requested": plugin.requested,
        }
        if plugin
        else None,
        "groups": [_group(group) for group in found.groups[:GROUPS_SHOWN]],
    }


def _tally(tally: Tally) -> dict[str, Any]:
    return {
        "total": tally.total,
        "free": tally.free,
        "allocated": tally.allocated,
        "shared": tally.shared,
        "unavailable": sum(tally.unavailable.values()),
        "unavailable_reasons": dict(tally.unavailable),
        "unknown": sum(tally.unknown.values()),
        "unknown_reasons": dict(tally.unknown),
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        **_tally(group.tally),
        "words": group_words(group),
        "driver": group.driver,
        "attributes": dict(group.attributes),
        "capacity": dict(group.capacity),
        "nodes": group.nodes,
        "partition": group.partition,
        "shareable": group.shareable,
    }


def group_words(group: Group) -> str:
    """What a device of the group is, in a few words: "H100 80GB HBM3, memory 81559Mi"."""
    by_last = {name.rpartition("/")[2]: value for name, value in group.attributes.items()}
    name = next((by_last[key] for key in NAMING if key in by_last), group.driver)
    profile = by_last.get("profile")
    words = [f"{name} {profile}" if profile and profile not in name else name]
    words += [f"{key.rpartition('/')[2]} {value}" for key, value in group.capacity.items()][:1]
    return ", ".join(words)
