"""What past asks teach: stage times of every Pod, and how long each class usually takes.

Recorded by the turns, read by pages. Too few samples say nothing, and are said to be too few.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from devices.asks.passages import COLUMNS, Passage, left, passage, progress_of
from devices.dra.claims import read_claim
from devices.dra.events import PREPARE_FAILED, read_event
from devices.dra.pods import Pod, read_pod
from devices.dra.podstatus import read_pod_status
from devices.models import Claim, NodePool, Observed, StageTimes
from devices.routing.routes import Path

Obj = Mapping[str, Any]

#: Fewer samples than these give no usual time.
ENOUGH: Final = 5
#: How far back "usually" looks, and how long times are kept.
LOOK_BACK: Final = timedelta(days=30)
KEPT: Final = timedelta(days=90)

#: Word → from which column to which: what pages compare.
SPANS: Final[Mapping[str, tuple[str, str]]] = {
    "wait": ("created_at", "allocated_at"),
    "claim generated": ("created_at", "generated_at"),
    "allocated": ("generated_at", "allocated_at"),
    "bound": ("allocated_at", "bound_at"),
    "prepared": ("bound_at", "prepared_at"),
    "running": ("prepared_at", "running_at"),
}

#: Columns that say where and how a Pod runs, beside its times.
FACTS: Final = ("path", "node", "node_pool", "job", "ended", "retries", "unhealthy_at")


@dataclass(frozen=True, slots=True)
class Usual:
    """Half took at most ``p50`` seconds, 95 of 100 at most ``p95``; None where too few say."""

    samples: int = 0
    p50: float | None = None
    p95: float | None = None

    @property
    def enough(self) -> bool:
        return self.p50 is not None


def record(
    claim: Claim,
    *,
    claims: Sequence[Obj],
    pods: Sequence[Obj],
    events: Sequence[Obj] = (),
    now: datetime,
) -> None:
    """Stores how far each Pod of an ask has come; Pods that are gone have released.

    ``claims``, ``pods`` and ``events`` are raw objects: the ask's claims as the API server has them
    (their managed fields say when the scheduler wrote), its Pods and what was said about them as
    the mirror has them.
    """
    read = {one.meta.name: one for one in (read_claim(obj)[0] for obj in claims)}
    rows = {row.pod_uid: row for row in StageTimes.objects.filter(claim=claim)}
    fresh: list[StageTimes] = []
    changed: list[StageTimes] = []
    present: set[str] = set()
    failed = _failed_preparations(events)
    for obj in pods:
        pod = read_pod(obj)
        present.add(pod.meta.uid)
        row = rows.get(pod.meta.uid)
        before = _passage(row) if row else None
        after = passage(progress_of(pod, read), before, now)
        if row is None:
            row = StageTimes(
                claim=claim,
                tenant_id=claim.tenant_id,
                pod_uid=pod.meta.uid,
                pod=pod.meta.name,
                classes=classes_of(claim),
                path=claim.path,
                devices=devices_of(claim),
            )
            fresh.append(row)
            _put_facts(row, claim, pod, failed, now)
        elif _put_facts(row, claim, pod, failed, now) or after != before:
            changed.append(row)
        _put(row, after)
    for uid, row in rows.items():
        if uid not in present and row.released_at is None:
            _put(row, left(_passage(row), now))
            changed.append(row)
    StageTimes.objects.bulk_create(fresh, ignore_conflicts=True)
    StageTimes.objects.bulk_update(
        changed, ["created_at", *COLUMNS.values(), "ready_at", "observed", *FACTS]
    )


def classes_of(claim: Claim) -> list[str]:
    """The device classes of an ask, sorted."""
    asks = (ask for device in claim.devices for ask in device.get("alternatives") or [device])
    return sorted({ask["device_class"] for ask in asks})


def devices_of(claim: Claim) -> dict[str, int]:
    """How many devices of each class one Pod of an ask has; empty where alternatives leave it open.

    The Pods of a shared claim have them together.
    """
    counts: dict[str, int] = {}
    for device in claim.devices:
        if device.get("alternatives"):
            return {}
        name = device["device_class"]
        counts[name] = counts.get(name, 0) + device.get("count", 1)
    return counts


def forget(now: datetime) -> int:
    """Drops times that are too old to teach anything; returns how many."""
    return StageTimes.objects.filter(created_at__lt=now - KEPT).delete()[0]


def usual_waits(now: datetime) -> dict[str, Usual]:
    """By class, from a Pod's creation to its allocation, whatever else was asked for; one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT class, {_figures('wait')} FROM devices_stagetimes, unnest(classes) AS class"
            " WHERE created_at > %s GROUP BY class",
            [now - LOOK_BACK],
        )
        return {row[0]: _usual(row[1:]) for row in cursor.fetchall()}


def usual_times(classes: Iterable[str], now: datetime) -> dict[str, Usual]:
    """By word of `SPANS`, for Pods that asked for exactly these classes; one query."""
    columns = ", ".join(_figures(word) for word in SPANS)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {columns} FROM devices_stagetimes"
            " WHERE classes @> %s::varchar[] AND classes = %s::varchar[] AND created_at > %s",
            [sorted(classes), sorted(classes), now - LOOK_BACK],
        )
        row = cursor.fetchone()
    return {word: _usual(row[2 * i : 2 * i + 2]) for i, word in enumerate(SPANS)}


def _figures(word: str) -> str:
    """How many and both percentiles, in SQL.

    A second of slack: stamps of the cluster are whole seconds, so that what follows at once may
    seem to come before. A Pod that joins an allocated claim waits for nothing, and does not count.
    """
    start, end = SPANS[word]
    span = f"extract(epoch FROM {end} - {start})"
    return (
        f"count(*) FILTER (WHERE {span} >= -1),"
        f" percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY greatest({span}, 0)::float8)"
        f" FILTER (WHERE {span} >= -1)"
    )


def _usual(row: Sequence[Any]) -> Usual:
    samples, figures = row
    if samples < ENOUGH or figures is None:
        return Usual(samples)
    return Usual(samples, float(figures[0]), float(figures[1]))


def path_of(claim: Claim, pod: Pod) -> str:
    """By which path a Pod has its devices: an extended resource is told by where it came from.

    The scheduler decides per node between the plugin's devices and a claim of its own; until the
    Pod is bound, the ask's path is all that is known.
    """
    if claim.path == Path.CLAIM or not pod.node_name:
        return claim.path
    return Path.EXTENDED if pod.extended_claim else Path.PLUGIN


def pool_of(node: str, classes: Collection[str]) -> str:
    """Slug of the node pool that a node is in for one of these classes; empty where it is in none.

    Two queries; asked once a Pod, for a Pod never moves.
    """
    row = Observed.objects.filter(kind="Node", name=node).first()
    if row is None:
        return ""
    labels = row.obj["metadata"].get("labels") or {}
    for pool in NodePool.objects.filter(device_class__in=classes).order_by("slug"):
        if all(labels.get(key) == value for key, value in pool.selector.items()):
            return pool.slug
    return ""


def _put_facts(
    row: StageTimes, claim: Claim, pod: Pod, failed: Mapping[str, int], now: datetime
) -> bool:
    """Where and how it runs, beside when; returns whether anything changed."""
    before = [getattr(row, name) for name in FACTS]
    row.path = path_of(claim, pod)
    if pod.node_name and pod.node_name != row.node:
        row.node, row.node_pool = pod.node_name, pool_of(pod.node_name, row.classes)
    row.job = next((one.uid for one in pod.meta.owners if one.kind == "Job"), row.job)
    row.ended = pod.phase.lower() if pod.finished else ""
    # Events are forgotten; what was counted once stays counted.
    row.retries = max(row.retries, failed.get(pod.meta.uid, 0))
    health = read_pod_status(pod.raw).health
    if row.unhealthy_at is None and any(one.health == "Unhealthy" for one in health):
        row.unhealthy_at = now
    return before != [getattr(row, name) for name in FACTS]


def _failed_preparations(events: Iterable[Obj]) -> dict[str, int]:
    """By uid of the Pod, how many preparations failed that the kubelet told of."""
    counts: dict[str, int] = {}
    for one in map(read_event, events):
        if one.reason == PREPARE_FAILED:
            counts[one.uid] = counts.get(one.uid, 0) + one.count
    return counts


def _passage(row: StageTimes) -> Passage:
    times = {column: at for column in COLUMNS.values() if (at := getattr(row, column))}
    return Passage(row.created_at, times, row.ready_at, frozenset(row.observed))


def _put(row: StageTimes, found: Passage) -> None:
    row.created_at, row.ready_at = found.created, found.ready
    row.observed = sorted(found.observed)
    for column in COLUMNS.values():
        setattr(row, column, found.times.get(column))
