"""What the report "did it pay?" is made of: stage times of a pool's Pods, useful time as training
platforms told it, and how free devices lie now.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from devices.asks.training import UsefulTime, useful_time
from devices.forecasts.picture import Picture
from devices.models import NodePool, StageTimes
from migrationplan.gating import standing
from migrationplan.gating.definitions import PATIENCE
from migrationplan.gating.subjects import Subject
from migrationplan.gating.ways import Ways
from migrationplan.measures import Measure
from migrationplan.payoff import Path, Similar, Work, report

#: The spans that a page offers, in days.
DAYS: Final = (7, 30, 90)
#: So many Pods are looked at, the newest ones.
MOST_READ: Final = 20_000


@dataclass(frozen=True, slots=True)
class Apart:
    """How free devices lie on one path's nodes now: of `free` so many are `apart`, on nodes or
    cards that are partly in use, and of no use to whoever wants a whole one. None: not known.
    """

    path: str
    free: int | None = None
    apart: int | None = None


@dataclass(frozen=True, slots=True)
class Payoff:
    """The report. `left_out` Pods have no known size, or wait without a node while another pool
    has their class too; `cut` says that older ones were not looked at.
    """

    since: datetime
    similar: tuple[Similar, ...]
    useful: tuple[UsefulTime, ...]
    apart: tuple[Apart, ...]
    left_out: int = 0
    cut: bool = False


def payoff_of(pool: NodePool, picture: Picture | None, days: int, now: datetime) -> Payoff:
    """The report of a pool over so many days; a constant number of queries."""
    since = now - timedelta(days=days)
    alone = not NodePool.objects.filter(device_class=pool.device_class).exclude(pk=pool.pk).exists()
    rows = StageTimes.objects.filter(
        classes__contains=[pool.device_class],
        classes__len=1,
        created_at__gte=since,
        node_pool__in=[pool.slug, ""],
    ).order_by("-created_at", "-pk")[: MOST_READ + 1]
    work: list[Work] = []
    left_out = seen = 0
    for row in rows:
        seen += 1
        if row.node and not row.node_pool:
            continue
        size = row.devices.get(pool.device_class)
        if not size or (not row.node and not alone):
            left_out += 1
            continue
        work.append(_work(row, int(size)))
    useful = useful_time(
        since=since, until=now, now=now, device_class=pool.device_class, pool=pool.slug
    )
    return Payoff(
        since=since,
        similar=report(work[:MOST_READ], patience=PATIENCE, now=now),
        useful=tuple(useful),
        apart=tuple(_apart(pool, picture, now)),
        left_out=left_out,
        cut=seen > MOST_READ,
    )


def _work(row: StageTimes, size: int) -> Work:
    path = Path(row.path)
    return Work(
        pod=row.pod_uid,
        path=path,
        devices=size,
        created=row.created_at,
        given=row.bound_at if path is Path.PLUGIN else row.allocated_at,
        ready=row.ready_at,
        left=row.released_at,
        retries=row.retries,
    )


def _apart(pool: NodePool, picture: Picture | None, now: datetime) -> Iterable[Apart]:
    """By path, from the book and the picture: nodes of DRA against those of the plugin."""
    subject = Subject(pool, {}, now)
    ground = standing.ground_of(subject, picture)
    by_dra = {line.node: line.since for line in ground.lines if line.owner == "dra"}
    subject = Subject(pool, by_dra, now)
    samples = standing.samples_of(Measure.FRAGMENTATION, subject, ground, Ways(), 0.0, now)
    for path, side in (("plugin", samples.others), ("dra", samples.moved)):
        if samples.unknown:
            yield Apart(path)
        else:
            yield Apart(path, len(side), sum(1 for one in side if one.value))
