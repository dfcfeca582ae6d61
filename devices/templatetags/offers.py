"""Template tags about what classes offer (counted in devices/catalogue/offers.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import template

from devices.dra.codes import CODES
from devices.dra.hardwarewords import REASONS

register = template.Library()


@register.filter
def merged(groups: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Groups that read the same as one, with their figures added; the largest first.

    Groups may differ in attributes that their words leave out; unknown figures stay unknown.
    """
    kinds: dict[str, dict[str, Any]] = {}
    for group in groups:
        kind = kinds.setdefault(group["words"], {"words": group["words"], "free": 0, "total": 0})
        for figure in ("free", "total"):
            known = kind[figure] is not None and group[figure] is not None
            kind[figure] = kind[figure] + group[figure] if known else None
    return sorted(kinds.values(), key=lambda kind: -(kind["total"] or 0))


@register.filter
def because(code: str) -> str:
    """A code's words in mid-sentence: 'other partitions of the same hardware are in use'."""
    if code in REASONS:
        return REASONS[code]
    known = CODES.get(code)
    if known is None:
        return code
    words = known.words.rstrip(".")
    return words[0].lower() + words[1:]


@register.filter
def plugin_only(counts: Mapping[str, Any]) -> bool:
    """Whether the class has devices by the device plugin and none by DRA."""
    plugin = counts.get("plugin") or {}
    return not counts.get("total") and bool(plugin.get("allocatable"))


@register.filter
def left(plugin: Mapping[str, Any]) -> int | None:
    """What of a plugin's allocatable nobody requests; None where either is unknown."""
    allocatable, requested = plugin.get("allocatable"), plugin.get("requested")
    return None if allocatable is None or requested is None else allocatable - requested
