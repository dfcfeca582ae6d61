"""Counting what each class has to offer: mirror → rules → one row a class, which pages read.

A worker counts, at most about once a second while the cluster changes; a page costs one query
whatever the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from devices import mirror
from devices.dra.offers import ClassCount, Group, Tally, catalogue_counts
from devices.dra.pluginpath import PluginCount, plugin_counts
from devices.dra.quantity import read as read_quantity
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
        "groups": alike(found.groups)[:GROUPS_SHOWN],
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


def alike(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """Groups as people tell them apart: those that read the same are one, most devices first.

    The rules keep apart what a selector could keep apart (a fabric's number, a port); a catalogue
    that listed these would hide what is offered.
    """
    merged: dict[tuple[str, str], list[Group]] = {}
    for group in groups:
        merged.setdefault((group.driver, group_words(group)), []).append(group)
    rows = [
        {
            **_sum([_tally(group.tally) for group in same]),
            "words": words,
            "driver": driver,
            "kinds": len(same),
            "capacity": dict(same[0].capacity),
            "partition": same[0].partition,
            "shareable": same[0].shareable,
        }
        for (driver, words), same in merged.items()
    ]
    return sorted(rows, key=lambda row: (-row["total"], row["words"]))


def _sum(tallies: list[dict[str, Any]]) -> dict[str, int]:
    figures = ("total", "free", "allocated", "shared", "unavailable", "unknown")
    return {name: sum(tally[name] for tally in tallies) for name in figures}


def group_words(group: Group) -> str:
    """What a device of the group is, in a few words: "H100 80GB HBM3, memory 79.6 GiB"."""
    by_last = {name.rpartition("/")[2]: value for name, value in group.attributes.items()}
    name = next((by_last[key] for key in NAMING if key in by_last), group.driver)
    profile = by_last.get("profile")
    words = [f"{name} {profile}" if profile and profile not in name else name]
    for key, value in list(group.capacity.items())[:1]:
        words.append(f"{key.rpartition('/')[2]} {in_binary_units(value)}")
    return ", ".join(words)


def in_binary_units(text: str) -> str:
    """A binary quantity as people read it: "81559Mi" → "79.6 GiB"; other texts as they are."""
    if not text.endswith("i"):
        return text
    amount = read_quantity(text).nanos / 10**9
    for suffix in ("B", "KiB", "MiB", "GiB", "TiB"):
        if amount < 1024 or suffix == "TiB":
            break
        amount /= 1024
    return f"{amount:.1f}".removesuffix(".0") + f" {suffix}"
