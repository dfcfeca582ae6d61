"""Samples from what became of Pods: did they get devices, how long took each stage, what failed.

A Pod that was bound belongs to its node's side. One that still waits has no node yet: it belongs to
the side whose path its ask takes, and to neither where both could serve it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from devices.dra.codes import CODES, Class, Who
from devices.models import ClaimEvent, StageTimes
from devices.routing.routes import Path
from migrationplan.gates import Sample, Samples
from migrationplan.gating.subjects import Subject
from migrationplan.measures import Measure

#: So many Pods of each side count, the newest ones: a reading keeps them all.
MOST: Final = 2000
#: And so many are looked through for them.
MOST_READ: Final = 20_000
#: Stamps of the cluster are whole seconds, so that what follows at once may seem to come before.
SLACK: Final = timedelta(seconds=1)
FAILURES: Final[Mapping[Measure, Class]] = {
    Measure.NOT_RETRYABLE: Class.NOT_RETRYABLE,
    Measure.NEEDS_CLEANUP: Class.NEEDS_CLEANUP,
}
#: What the samples of these measures are made of.
FROM_WAYS: Final = frozenset(
    {
        Measure.ALLOCATION, Measure.WAIT, Measure.PREPARED, Measure.STARTED, Measure.READY,
        Measure.RETRIES, *FAILURES,
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Way:
    """One Pod's way, as far as gates ask of it. ``given`` is when it had its devices: for a claim
    its allocation, with a device plugin the binding.
    """

    pod: str
    ask: int
    node: str
    path: str
    created: datetime
    given: datetime | None = None
    bound: datetime | None = None
    prepared: datetime | None = None
    running: datetime | None = None
    ready: datetime | None = None
    left: datetime | None = None
    retries: int = 0


@dataclass(slots=True)
class Ways:
    """Both sides' Pods, newest first, and the classes of failure that each ask met."""

    moved: list[Way] = field(default_factory=list)
    others: list[Way] = field(default_factory=list)
    met: Mapping[int, frozenset[Class]] = field(default_factory=dict)


def ways_of(subject: Subject, now: datetime) -> Ways:
    """The Pods of the subject's pool and class since it began; two queries.

    Only Pods that asked for this one class: who asks for several waits for several.
    """
    found = Ways()
    for way in _rows(subject, now):
        side = _side(way, subject)
        if side is not None and len(part := getattr(found, side)) < MOST:
            part.append(way)
    found.met = _met({way.ask for way in (*found.moved, *found.others)}, subject.since, now)
    return found


def samples_of(measure: Measure, ways: Ways, *, patience: timedelta, now: datetime) -> Samples:
    """One measure's samples of both sides; a Pod that has not come so far is none."""
    return Samples(
        tuple(_samples(measure, ways.moved, ways.met, patience, now)),
        tuple(_samples(measure, ways.others, ways.met, patience, now)),
    )


def _rows(subject: Subject, now: datetime) -> Iterable[Way]:
    pool = subject.pool
    rows = StageTimes.objects.filter(
        classes__contains=[pool.device_class],
        classes__len=1,
        created_at__gte=subject.since,
        created_at__lte=now,
        node_pool__in=[pool.slug, ""],
    )
    for row in rows.order_by("-created_at", "-pk")[:MOST_READ].iterator():
        if row.node and not row.node_pool:
            continue  # on a node of no pool
        yield Way(
            pod=row.pod_uid,
            ask=row.claim_id,
            node=row.node,
            path=row.path,
            created=row.created_at,
            given=row.bound_at if row.path == Path.PLUGIN else row.allocated_at,
            bound=row.bound_at,
            prepared=row.prepared_at,
            running=row.running_at,
            ready=row.ready_at,
            left=row.released_at,
            retries=row.retries,
        )


def _side(way: Way, subject: Subject) -> str | None:
    if way.path == Path.EXTENDED and not way.node:
        return None
    new = way.path in subject.new_paths
    if not way.node:
        return "moved" if new else "others"
    since = subject.moved.get(way.node)
    if since is None:
        return None if new else "others"
    return "moved" if new and way.created >= since else None


def _met(asks: set[int], since: datetime, now: datetime) -> dict[int, frozenset[Class]]:
    """By ask, the classes of failures that are nobody's mistake but the platform's."""
    met: dict[int, set[Class]] = defaultdict(set)
    rows = ClaimEvent.objects.filter(claim__in=asks, at__gte=since, at__lte=now).exclude(code="")
    for ask, name in rows.values_list("claim", "code"):
        known = CODES.get(name)
        if known is not None and known.who is not Who.TENANT:
            met[ask].add(known.class_)
    return {ask: frozenset(classes) for ask, classes in met.items()}


def _samples(
    measure: Measure,
    ways: Iterable[Way],
    met: Mapping[int, frozenset[Class]],
    patience: timedelta,
    now: datetime,
) -> Iterable[Sample]:
    for way in ways:
        value = _value(measure, way, met, patience, now)
        if value is not None:
            yield Sample(way.pod, way.node, value)


def _value(
    measure: Measure,
    way: Way,
    met: Mapping[int, frozenset[Class]],
    patience: timedelta,
    now: datetime,
) -> float | None:
    match measure:
        case Measure.ALLOCATION:
            return _allocated(way, patience, now)
        case Measure.WAIT:
            return _took(way.created, way.given)
        case Measure.PREPARED:
            return _took(way.bound, way.prepared)
        case Measure.STARTED:
            return _took(way.prepared, way.running)
        case Measure.READY:
            return _took(way.created, way.ready)
        case Measure.RETRIES:
            return float(way.retries > 0) if way.node else None
        case Measure.NOT_RETRYABLE | Measure.NEEDS_CLEANUP:
            return float(FAILURES[measure] in met.get(way.ask, frozenset()))
        case _:
            raise ValueError(f"{measure} is not measured by Pods")


def _allocated(way: Way, patience: timedelta, now: datetime) -> float | None:
    """1 where it got none in time; None where it may still, or gave up before."""
    if way.given is not None:
        return float(way.given - way.created > patience)
    return 1.0 if (way.left or now) - way.created > patience else None


def _took(start: datetime | None, end: datetime | None) -> float | None:
    if start is None or end is None or end - start < -SLACK:
        return None
    return max((end - start).total_seconds(), 0.0)
