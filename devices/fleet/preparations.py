"""Writes down which Pods' devices were got ready where, and which were not, as the mirror shows it.

Each Pod has a row for each driver of its devices: Pods come and go, and what failed half an hour
ago must still count (`dra.isolation`). Only devices of pools that lie on one node are kept; of
those that reach many nodes no node can be accused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from devices.dra.claims import DeviceKey
from devices.dra.events import PREPARE_FAILED, Event, read_event
from devices.dra.holders import used_claims
from devices.dra.messages import Speaker, meaning
from devices.dra.names import SYSTEM_NAMESPACE
from devices.dra.pods import Pod
from devices.dra.podstatus import PodStatus, read_pod_status
from devices.dra.pools import PoolKey, pools
from devices.dra.snapshot import Snapshot
from devices.models import Observed, Preparation

#: So long a row is kept after its Pod was last seen.
KEPT: Final = timedelta(days=1)
#: Pods that became ready longer ago are not written down any more.
NEWS: Final = timedelta(hours=1)
READY: Final = "PodReadyToStartContainers"


def note(snapshot: Snapshot, now: datetime) -> None:
    """Brings the rows to what the mirror shows; a few statements, however many Pods there are."""
    where = _node_pools(snapshot)
    waiting: list[Pod] = []
    rows: list[Preparation] = []
    for pod in snapshot.pods.values():
        if not pod.node_name or pod.meta.namespace == SYSTEM_NAMESPACE:
            continue
        if not (pod.claims or pod.extended_claim):
            continue
        status = read_pod_status(pod.raw)
        ready = _ready_at(status, now)
        if ready is not None and now - ready > NEWS:
            continue
        if ready is None:
            if pod.finished:
                continue
            waiting.append(pod)
        rows += _rows(pod, ready, snapshot, where, now)
    for row, event in _accused(rows, _failures(waiting)):
        row.failed_at = event.first or now
        row.code, row.text = meaning(event.message, Speaker.KUBELET).code, event.message[:500]
    Preparation.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["pod", "driver"],
        update_fields=["seen_at", "failed_at", "ready_at", "code", "text", "node", "devices"],
        batch_size=1000,
    )
    Preparation.objects.filter(seen_at__lt=now - KEPT).delete()


def _rows(
    pod: Pod,
    ready: datetime | None,
    snapshot: Snapshot,
    where: dict[PoolKey, str],
    now: datetime,
) -> Iterator[Preparation]:
    held: dict[str, list[tuple[DeviceKey, str]]] = defaultdict(list)
    namespace = pod.meta.namespace
    for claim in used_claims(pod, lambda name: snapshot.claims.get((namespace, name))).values():
        for result in claim.allocation.results if claim and claim.allocation else ():
            if where.get((result.driver, result.pool)) == pod.node_name:
                asked = claim.spec.class_of(result.request) if claim else ""
                held[result.driver].append((result.key, asked))
    for driver, devices in held.items():
        yield Preparation(
            pod=pod.meta.uid,
            name=str(pod),
            node=pod.node_name,
            driver=driver,
            device_class=devices[0][1],
            devices=[list(key) for key, _ in devices],
            seen_at=now,
            ready_at=ready,
        )


def _node_pools(snapshot: Snapshot) -> dict[PoolKey, str]:
    """Pools that lie on one node, and on which."""
    found = {}
    for key, pool in pools(snapshot).items():
        names = {piece.reach.node_name for piece in pool.slices}
        if len(names) == 1 and (name := names.pop()):
            found[key] = name
    return found


def _ready_at(status: PodStatus, now: datetime) -> datetime | None:
    """When its devices were ready; None where they are not."""
    told = status.conditions.get(READY)
    if told is not None and told.true:
        return told.at or now
    started = [each.started for each in status.containers if each.started is not None]
    return min(started, default=None)


def _failures(waiting: Iterable[Pod]) -> dict[str, Event]:
    """The newest failed preparation that the mirror has of each of these Pods, by uid."""
    uids = [pod.meta.uid for pod in waiting]
    rows = Observed.objects.filter(kind="Event", phase=PREPARE_FAILED, owner_uid__in=uids)
    found: dict[str, Event] = {}
    for event in (read_event(row.obj) for row in rows):
        before = found.get(event.uid)
        if before is None or (event.last and before.last and event.last > before.last):
            found[event.uid] = event
    return found


def _accused(
    rows: Iterable[Preparation], failures: Mapping[str, Event]
) -> Iterator[tuple[Preparation, Event]]:
    """The rows that failures are about: those of the driver that the node names, else all of the
    Pod's.
    """
    of_pod: dict[str, list[Preparation]] = defaultdict(list)
    for row in rows:
        if row.pod in failures:
            of_pod[row.pod].append(row)
    for pod, all_of_it in of_pod.items():
        event = failures[pod]
        named = [row for row in all_of_it if row.driver in event.message]
        yield from ((row, event) for row in named or all_of_it)
