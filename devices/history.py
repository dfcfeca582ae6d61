"""What past asks teach: stage times of every Pod, and how long each class usually takes.

Recorded by the turns, read by pages. Too few samples say nothing, and are said to be too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from devices.dra.claims import read_claim
from devices.dra.pods import read_pod
from devices.models import Claim, StageTimes
from devices.passages import COLUMNS, Passage, left, passage, progress_of

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


@dataclass(frozen=True, slots=True)
class Usual:
    """Half took at most ``p50`` seconds, 95 of 100 at most ``p95``; None where too few say."""

    samples: int = 0
    p50: float | None = None
    p95: float | None = None

    @property
    def enough(self) -> bool:
        return self.p50 is not None


def record(claim: Claim, *, claims: Sequence[Obj], pods: Sequence[Obj], now: datetime) -> None:
    """Stores how far each Pod of an ask has come; Pods that are gone have released.

    ``claims`` and ``pods`` are raw objects: the ask's claims as the API server has them (their
    managed fields say when the scheduler wrote), its Pods as the mirror has them.
    """
    read = {one.meta.name: one for one in (read_claim(obj)[0] for obj in claims)}
    rows = {row.pod_uid: row for row in StageTimes.objects.filter(claim=claim)}
    fresh: list[StageTimes] = []
    changed: list[StageTimes] = []
    present: set[str] = set()
    for obj in pods:
        pod = read_pod(obj)
        present.add(pod.meta.uid)
        row = rows.get(pod.meta.uid)
        before = _passage(row) if row else None
        after = passage(progress_of(pod, read), before, now)
        if row is None:
            row = StageTimes(
                claim=claim, pod_uid=pod.meta.uid, pod=pod.meta.name, classes=classes_of(claim)
            )
            fresh.append(row)
        elif after != before:
            changed.append(row)
        _put(row, after)
    for uid, row in rows.items():
        if uid not in present and row.released_at is None:
            _put(row, left(_passage(row), now))
            changed.append(row)
    StageTimes.objects.bulk_create(fresh, ignore_conflicts=True)
    StageTimes.objects.bulk_update(
        changed, ["created_at", *COLUMNS.values(), "ready_at", "observed"]
    )


def classes_of(claim: Claim) -> list[str]:
    """The device classes of an ask, sorted."""
    return sorted({device["device_class"] for device in claim.devices})


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


def _passage(row: StageTimes) -> Passage:
    times = {column: at for column in COLUMNS.values() if (at := getattr(row, column))}
    return Passage(row.created_at, times, row.ready_at, frozenset(row.observed))


def _put(row: StageTimes, found: Passage) -> None:
    row.created_at, row.ready_at = found.created, found.ready
    row.observed = sorted(found.observed)
    for column in COLUMNS.values():
        setattr(row, column, found.times.get(column))
