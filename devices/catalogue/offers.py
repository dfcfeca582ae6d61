"""Counting what each class has to offer: mirror → rules → one row a class, which pages read.

A worker counts, at most about once a second while the cluster changes; a page costs one query
whatever the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from devices.dra.describe import make, title, told, traits
from devices.dra.driverhealth import DriverHealth, driver_health, worst
from devices.dra.largest import Largest, largest
from devices.dra.offers import ClassCount, Group, Tally, catalogue_counts
from devices.dra.pluginpath import PluginCount, plugin_counts
from devices.dra.snapshot import Snapshot
from devices.forecasts.warm import fresh
from devices.models import Offer
from portal import news

GROUPS_SHOWN = 24


def count(now: datetime) -> int:
    """Counts every class anew and tells open pages when a figure changed; returns how many did.

    Counts nothing until each kind was listed once: half a mirror would show false figures.
    """
    seen = fresh()
    if seen is None:
        return 0
    changed = store(counts_of(seen.prepared()), now=now, seen_at=seen.as_of)
    if changed:
        news.publish(["offers"])
    return changed


def counts_of(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """The figures of every class as JSON, by its name."""
    plugin, health = plugin_counts(snapshot), driver_health(snapshot)
    return {
        name: counts_json(
            found,
            plugin.get(name),
            largest(snapshot, name),
            [health[driver] for driver in found.drivers],
            bool(snapshot.classes[name].raw.get("spec", {}).get("config")),
        )
        for name, found in catalogue_counts(snapshot).items()
    }


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


def counts_json(
    found: ClassCount,
    plugin: PluginCount | None = None,
    most: Largest | None = None,
    drivers: Iterable[DriverHealth] = (),
    configured: bool = False,
) -> dict[str, Any]:
    """A class's figures as JSON: numbers, reasons, groups of equal devices, its paths, how its
    drivers do, and what it relies on. ``configured``: its devices get parameters of their driver's
    own.
    """
    paths = ["dra"] if found.tally.total else []
    if plugin and plugin.allocatable:
        paths.append("plugin")
    doing = list(drivers)
    worst_off = worst(doing)
    backed = {"DRAExtendedResource"} if plugin and paths == ["dra"] else frozenset()
    return {
        **_tally(found.tally),
        "problem": found.problem,
        "path": paths,
        "plugin": {
            "resource": plugin.resource,
            "allocatable": plugin.allocatable,
            "requested": plugin.requested,
            "nodes": plugin.nodes,
        }
        if plugin
        else None,
        "largest": {"count": most.count, "node": most.node, "code": most.code} if most else None,
        "drivers": [
            {"driver": one.driver, "state": one.state.value, "sentence": one.sentence}
            for one in doing
        ],
        "nodes": found.nodes,
        "health": {"state": worst_off.state.value, "sentence": worst_off.sentence}
        if worst_off
        else None,
        "relies": sorted(found.relies | backed),
        "configured": configured,
        "groups": alike(found.groups)[:GROUPS_SHOWN],
    }


def _tally(tally: Tally) -> dict[str, Any]:
    return {
        "total": tally.total,
        "free": tally.free,
        "allocated": tally.allocated,
        "shared": tally.shared,
        "fragmented": tally.fragmented,
        "unavailable": sum(tally.unavailable.values()),
        "unavailable_reasons": dict(tally.unavailable),
        "unknown": sum(tally.unknown.values()),
        "unknown_reasons": dict(tally.unknown),
    }


def alike(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """Groups as people tell them apart: those that read the same are one, most devices first.

    The rules keep apart what a selector could keep apart (a fabric's number, a port); a catalogue
    that listed these would hide what is offered. What they differ in is left out of a merged one.
    """
    merged: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        merged.setdefault((group.driver, group_words(group)), []).append(group)
    rows = [_alike_row(driver, words, same) for (driver, words), same in merged.items()]
    return sorted(rows, key=lambda row: (-row["total"], row["words"]))


def _alike_row(driver: str, words: str, same: list[Group]) -> dict[str, Any]:
    first = same[0]
    where = [group.where for group in same]
    return {
        **_sum([_tally(group.tally) for group in same]),
        "words": words,
        "title": title(driver, first.attributes),
        "driver": driver,
        "kinds": len(same),
        "attributes": {
            name: value
            for name, value in first.attributes.items()
            if all(group.attributes.get(name) == value for group in same)
        },
        "capacity": dict(first.capacity),
        "make": make(driver, first.attributes),
        "partition": first.partition,
        "shareable": first.shareable,
        "nodes": None if None in where else len(frozenset().union(*filter(None, where))),
        "example": first.example,
    }


def _sum(tallies: list[dict[str, Any]]) -> dict[str, int]:
    figures = (
        "total", "free", "allocated", "shared", "fragmented", "unavailable", "unknown",
    )  # fmt: skip
    return {name: sum(tally[name] for tally in tallies) for name in figures}


def group_words(group: Group) -> str:
    """What a device of the group is, in a few words: "H100 80GB · memory 79.6 GiB · NVLink"."""
    name = title(group.driver, group.attributes)
    more = told(traits(group.attributes, group.capacity), besides=name)
    return " · ".join(filter(None, (name, more)))
