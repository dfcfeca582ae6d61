"""What became of the time that devices were held: useful, lost or unknown, in device seconds.

Folds what training platforms told (`signals`) over the times of the stages (`history`). What nobody
told of stays unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.db import connection

from devices.asks.history import KEPT
from devices.dra.objects import Shape
from devices.dra.training import Account, Hold, Kind, Signal, Sums, Why, account, sums
from devices.models import Claim, StageTimes, TrainingSignal
from devices.routing.routes import Path

#: A platform's clock may differ from the cluster's by so much.
SLACK: Final = timedelta(minutes=1)
_EVER: Final = (datetime(2000, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class PodAccount:
    """What became of the devices of one Pod (of all Pods together, where they share a claim).

    ``timed`` is False where nobody knows when it got its devices.
    """

    pod: str
    hold: Hold
    account: Account
    sums: Sums
    path: str
    ended: str = ""
    unhealthy_at: datetime | None = None

    @property
    def timed(self) -> bool:
        return self.hold.start is not None


@dataclass(frozen=True, slots=True)
class ClaimAccount:
    """What became of the time of one ask: by Pod, newest first, and together in seconds.

    ``retries`` are those that the platform told of, ``job_retries`` the failed Pods that their Job
    made anew, as the cluster shows them.
    """

    pods: tuple[PodAccount, ...] = ()
    sums: Sums = field(default_factory=Sums)
    devices: Mapping[str, int] = field(default_factory=dict)
    signals: int = 0
    retries: int = 0
    job_retries: int = 0
    overstated: bool = False


def claim_account(claim: Claim, now: datetime) -> ClaimAccount:
    """The account of one ask; two queries."""
    rows = list(StageTimes.objects.filter(claim=claim).order_by("created_at", "pk"))
    signals = list(TrainingSignal.objects.filter(claim=claim).order_by("at", "pk"))
    pods = [
        PodAccount(
            rows[0].pod if len(rows) == 1 else f"{len(rows)} Pods together",
            hold,
            made,
            sums(made.stretches, *_EVER),
            rows[0].path,
            hold.ended,
            min((row.unhealthy_at for row in rows if row.unhealthy_at), default=None),
        )
        for rows, hold, made in _accounts(claim.shape, rows, signals, now)
    ]
    whole = Sums()
    for one in pods:
        whole = whole.plus(one.sums)
    return ClaimAccount(
        tuple(reversed(pods)),
        whole,
        rows[-1].devices if rows else {},
        len(signals),
        sum(one.kind == Kind.RETRY for one in signals),
        job_retries(rows),
        any(one.account.overstated for one in pods),
    )


def job_retries(rows: Iterable[StageTimes]) -> int:
    """Pods that failed and after which their Job made another one."""
    newest: dict[str, datetime] = {}
    rows = [row for row in rows if row.job]
    for row in rows:
        newest[row.job] = max(newest.get(row.job, row.created_at), row.created_at)
    return sum(row.ended == "failed" and row.created_at < newest[row.job] for row in rows)


def hold_of(row: StageTimes) -> Hold | None:
    """What one Pod held: from its allocation, or from binding where a device plugin gave it.

    None where it never had devices; without a start where nobody knows when it got them.
    """
    got = row.allocated_at
    if got is None and row.path == Path.PLUGIN:
        got = row.bound_at
    if got is None and row.bound_at is None:
        return None
    return Hold(got, row.released_at, row.ended)


def _accounts(
    shape: str, rows: Sequence[StageTimes], signals: Sequence[TrainingSignal], now: datetime
) -> list[tuple[list[StageTimes], Hold, Account]]:
    """An account for each Pod with devices; one for all together where they share a claim."""
    held = [(row, hold) for row in rows if (hold := hold_of(row)) is not None]
    if not held:
        return []
    if shape == Shape.CLAIM and len(held) > 1:
        together = _together([hold for _, hold in held])
        made = account(together, map(_signal, signals), now)
        return [([row for row, _ in held], together, made)]
    alone = len(held) == 1
    found = []
    for row, hold in held:
        own = [_signal(one) for one in signals if alone or _is_about(one, row, hold, now)]
        found.append(([row], hold, account(hold, own, now)))
    return found


def _together(holds: Sequence[Hold]) -> Hold:
    starts = [hold.start for hold in holds if hold.start is not None]
    ends = [hold.end for hold in holds]
    over = None if None in ends else max(end for end in ends if end is not None)
    ways = {hold.ended for hold in holds}
    ended = "failed" if "failed" in ways else "succeeded" if ways == {"succeeded"} else ""
    return Hold(min(starts, default=None), over, ended)


def _is_about(one: TrainingSignal, row: StageTimes, hold: Hold, now: datetime) -> bool:
    """By name where it names a Pod, else every Pod that held devices then."""
    if one.pod and one.pod != row.pod:
        return False
    start = hold.start or row.created_at
    return start - SLACK <= one.at <= (hold.end or now) + 5 * SLACK


def _signal(row: TrainingSignal) -> Signal:
    return Signal(Kind(row.kind), row.at, row.event_id, row.seconds, row.ok)


@dataclass(frozen=True, slots=True)
class UsefulTime:
    """Device seconds of one class by one path: useful, lost, unknown.

    ``pods`` held devices in the span; of ``told`` of them a platform said anything. ``untimed`` are
    left out of the sums, for nobody knows when they got their devices or how many. ``retries`` were
    told, ``job_retries`` were seen, ``unhealthy`` Pods had a device that the kubelet called so.
    """

    device_class: str
    path: str
    sums: Sums = field(default_factory=Sums)
    pods: int = 0
    told: int = 0
    untimed: int = 0
    retries: int = 0
    job_retries: int = 0
    unhealthy: int = 0

    def plus(self, other: UsefulTime) -> UsefulTime:
        """Both together, under this one's names."""
        return UsefulTime(
            self.device_class,
            self.path,
            self.sums.plus(other.sums),
            self.pods + other.pods,
            self.told + other.told,
            self.untimed + other.untimed,
            self.retries + other.retries,
            self.job_retries + other.job_retries,
            self.unhealthy + other.unhealthy,
        )


def useful_time(
    *,
    since: datetime,
    until: datetime,
    now: datetime,
    device_class: str = "",
    path: str = "",
    pool: str = "",
    tenant: str = "",
) -> list[UsefulTime]:
    """By class and path, most device time first, over what lies between two moments.

    ``pool`` is the slug of a node pool, ``tenant`` that of a tenant; empty texts narrow nothing.
    Three queries. Gates compare `sums.share` of a canary with its baseline's: None is inconclusive.
    """
    where, values = _overlapping(since, until, device_class, path, pool, tenant)
    found: dict[tuple[str, str], UsefulTime] = {}

    def add(one: UsefulTime) -> None:
        if device_class in {"", one.device_class}:
            key = (one.device_class, one.path)
            found[key] = found[key].plus(one) if key in found else one

    with connection.cursor() as cursor:
        cursor.execute(_SILENT.format(where=where), [*values, since - KEPT, now, until, since])
        for name, way, seconds, pods, untimed, unhealthy, redone in cursor.fetchall():
            length = float(seconds or 0)
            silent = Sums(unknown=length, unknown_by={Why.NO_SIGNALS: length})
            add(
                UsefulTime(
                    name,
                    way,
                    silent,
                    pods=int(pods),
                    untimed=int(untimed or 0),
                    job_retries=int(redone),
                    unhealthy=int(unhealthy),
                )
            )
    spoken = StageTimes.objects.extra(
        where=[f"EXISTS ({_TOLD})", where.replace("times.", "devices_stagetimes.")],
        params=[since - KEPT, *values],
    )
    rows: dict[int, list[StageTimes]] = {}
    for row in spoken.select_related("claim").order_by("created_at", "pk"):
        rows.setdefault(row.claim_id, []).append(row)
    signals: dict[int, list[TrainingSignal]] = {}
    for one in TrainingSignal.objects.filter(claim_id__in=rows).order_by("at", "pk"):
        signals.setdefault(one.claim_id, []).append(one)
    for claim_id, of_claim in rows.items():
        for each in _told(of_claim, signals.get(claim_id, []), since, until, now):
            add(each)
    return sorted(found.values(), key=lambda one: (-one.sums.held, one.device_class, one.path))


def _told(
    rows: Sequence[StageTimes],
    signals: Sequence[TrainingSignal],
    since: datetime,
    until: datetime,
    now: datetime,
) -> Iterable[UsefulTime]:
    """What one ask adds, of which a platform told."""
    retries = sum(since <= one.at < until and one.kind == Kind.RETRY for one in signals)
    redone = job_retries(rows)
    for pods, hold, made in _accounts(rows[0].claim.shape, rows, signals, now):
        seconds = sums(made.stretches, since, until)
        counts = pods[0].devices
        timed = hold.start is not None and bool(counts)
        for name in pods[0].classes:
            yield UsefulTime(
                name,
                pods[0].path,
                Sums().plus(seconds, counts.get(name, 0)) if timed else Sums(),
                pods=len(pods),
                told=len(pods) if _was_told(made) else 0,
                untimed=0 if timed else len(pods),
                retries=retries,
                job_retries=redone,
                unhealthy=sum(row.unhealthy_at is not None for row in pods),
            )
        retries = redone = 0  # they are the ask's, and counted with its first Pod


def _was_told(made: Account) -> bool:
    return any(one.why is not Why.NO_SIGNALS for one in made.stretches)


def _overlapping(
    since: datetime, until: datetime, device_class: str, path: str, pool: str, tenant: str
) -> tuple[str, list[Any]]:
    where = [
        "times.created_at < %s",
        "times.created_at >= %s",
        "(times.released_at IS NULL OR times.released_at > %s)",
    ]
    values: list[Any] = [until, since - KEPT, since]
    narrowed = {
        "times.path = %s": path,
        "times.node_pool = %s": pool,
        "times.classes @> ARRAY[%s]::varchar[]": device_class,
        "times.tenant_id = (SELECT id FROM tenants_tenant WHERE slug = %s)": tenant,
    }
    for condition, value in narrowed.items():
        if value:
            where.append(condition)
            values.append(value)
    return " AND ".join(where), values


_TOLD: Final = (
    "SELECT FROM devices_trainingsignal AS told"
    " WHERE told.claim_id = devices_stagetimes.claim_id AND told.at >= %s"
)
#: Pods of which nobody said anything. Those of a shared claim hold its devices once: from the first
#: that got them to the last that let go.
_SILENT: Final = """
WITH held AS (
    SELECT times.*, ask.shape,
        coalesce(
            times.allocated_at, CASE WHEN times.path = 'plugin' THEN times.bound_at END
        ) AS got,
        times.ended = 'failed' AND times.job <> '' AND lead(times.id)
            OVER (PARTITION BY times.job ORDER BY times.created_at) IS NOT NULL AS redone
    FROM devices_stagetimes AS times JOIN devices_claim AS ask ON ask.id = times.claim_id
    WHERE {where} AND NOT EXISTS (
        SELECT FROM devices_trainingsignal AS told
        WHERE told.claim_id = times.claim_id AND told.at >= %s
    )
), spans AS (
    SELECT classes, path, devices, count(*) AS pods, min(got) AS got,
        max(coalesce(released_at, %s)) AS let_go, count(unhealthy_at) AS unhealthy,
        count(*) FILTER (WHERE redone) AS redone
    FROM held WHERE coalesce(allocated_at, bound_at) IS NOT NULL
    GROUP BY claim_id, classes, path, devices, CASE WHEN shape = 'claim' THEN '' ELSE pod_uid END
)
SELECT class, path,
    sum(
        (devices ->> class)::float
        * greatest(extract(epoch FROM least(let_go, %s) - greatest(got, %s)), 0)
    ),
    sum(pods), sum(pods) FILTER (WHERE got IS NULL OR devices = '{{}}'), sum(unhealthy), sum(redone)
FROM spans, unnest(classes) AS class GROUP BY class, path
"""
