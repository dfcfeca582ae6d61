"""Who wrote what a line rests on: the field managers that the mirror keeps of slices and Pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from devices.cluster.decoding import loads
from devices.dra.ledgerentries import POD_STATUS, Entry
from devices.models import Observed


def writers_of(entries: Iterable[Entry]) -> Mapping[tuple[str, str], str]:
    """By source (and Pod uid, for its status): the field manager; two queries at most."""
    slices, pods = set(), set()
    for entry in entries:
        if entry.source == POD_STATUS:
            pods.add(entry.pod_uid)
        elif entry.source.startswith("slice "):
            slices.add(entry.source.removeprefix("slice "))
    found: dict[tuple[str, str], str] = {}
    if slices:
        rows = Observed.objects.filter(kind="ResourceSlice", name__in=slices)
        for name, raw in rows.values_list("name", "raw"):
            found[f"slice {name}", ""] = _manager(loads(bytes(raw)), "")
    if pods:
        rows = Observed.objects.filter(kind="Pod", uid__in=pods)
        for uid, raw in rows.values_list("uid", "raw"):
            found[POD_STATUS, uid] = _manager(loads(bytes(raw)), "status")
    return found


def _manager(raw: Mapping[str, Any], subresource: str) -> str:
    """The manager that wrote last; empty where the mirror kept none."""
    entries: list[Mapping[str, Any]] = [
        entry
        for entry in (raw.get("metadata") or {}).get("managedFields") or ()
        if (entry.get("subresource") or "") == subresource
    ]
    newest = max(entries, key=lambda entry: entry.get("time") or "", default=None)
    return str(newest.get("manager") or "") if newest else ""
