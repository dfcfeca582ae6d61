"""Nodes whose drivers may publish something old: what a slice itself never says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from devices.dra.podstatus import read_pod_status
from devices.dra.snapshot import Snapshot
from devices.models import NodePool

#: A driver's Pod may be away for so long: drivers restart when they are updated.
AWAY: Final = timedelta(seconds=60)


def stale_nodes(snapshot: Snapshot, now: datetime) -> Mapping[str, str]:
    """By node, why what is published for it may be out of date: the node does not report, or the
    Pod of a driver has not been ready for a minute. Slices carry no heartbeat of their own.
    """
    publishing: dict[str, set[str]] = defaultdict(set)
    for piece in snapshot.slices:
        if piece.reach.node_name and any(device.node_shares for device in piece.devices):
            publishing[piece.reach.node_name].add(piece.driver)
    found = {
        name: "the node does not report"
        for name in publishing
        if name in snapshot.nodes and snapshot.nodes[name].ready is False
    }
    sets = _driver_sets()
    for pod in snapshot.pods.values():
        drivers = publishing.get(pod.node_name)
        if not drivers or pod.node_name in found or pod.finished:
            continue
        mine = {
            driver
            for owner in pod.meta.owners
            if owner.controller and owner.kind == "DaemonSet"
            for driver in sets.get(f"{pod.meta.namespace}/{owner.name}", ())
        }
        if mine & drivers and _away(pod.raw, now):
            found[pod.node_name] = f"driver {min(mine & drivers)} is not ready"
    return found


def _driver_sets() -> Mapping[str, set[str]]:
    """Drivers by the DaemonSets (namespace/name) that node pools name for them."""
    found: dict[str, set[str]] = defaultdict(set)
    for driver, names in NodePool.objects.values_list("driver", "driver_sets"):
        for name in names:
            found[name].add(driver)
    return found


def _away(raw: Mapping[str, object], now: datetime) -> bool:
    ready = read_pod_status(raw).conditions.get("Ready")
    if ready is None or ready.true:
        return False
    return ready.at is not None and now - ready.at >= AWAY
