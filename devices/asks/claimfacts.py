"""What a claim's page and its API resource show beside the row: stage times, health, who shares,
and what the cluster said. Reads the mirror and the history; a constant number of queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Min, Q, QuerySet

from devices.asks import consumers
from devices.asks.history import SPANS, Usual, usual_times
from devices.dra.claims import DeviceKey
from devices.dra.events import Event, read_event
from devices.dra.podstatus import read_pod_status
from devices.dra.usage import usage
from devices.forecasts.warm import warm
from devices.models import Claim, Observed, StageTimes

#: How many Pods' times, and how many events, are shown.
MOST_PODS: Final = 5
MOST_EVENTS: Final = 40


@dataclass(frozen=True, slots=True)
class StageTook:
    """One stage of one Pod: when it was reached and what it took, in seconds; None where nobody
    knows. ``observed`` says that Berth timed it, not the cluster.
    """

    word: str
    at: datetime | None
    took: float | None
    observed: bool
    usual: Usual

    @property
    def late(self) -> bool:
        """Longer than 95 of 100 of its kind."""
        p95 = self.usual.p95
        return self.took is not None and p95 is not None and self.took > p95


@dataclass(frozen=True, slots=True)
class PodTimes:
    """One Pod's way through the stages, from its making to its release."""

    pod: str
    created: datetime
    stages: tuple[StageTook, ...]
    released: datetime | None


@dataclass(frozen=True, slots=True)
class Told:
    """An event of the cluster; ``forgotten`` says that the cluster itself no longer has it."""

    event: Event
    forgotten: bool


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """What is known of one device that a claim holds.

    ``health`` is what the kubelet says in the Pod's status, empty where it says nothing. ``yours``
    are other claims of the viewer's that share it, ``others`` how many of other tenants do; None
    where the cluster was never seen.
    """

    health: str
    message: str
    yours: tuple[str, ...]
    others: int | None


def pod_times(claim: Claim, now: datetime) -> tuple[PodTimes, ...]:
    """The newest Pods' ways, each stage against what is usual for these classes; two queries."""
    rows = list(StageTimes.objects.filter(claim=claim).order_by("-created_at", "-pk")[:MOST_PODS])
    usual = usual_times(rows[0].classes, now) if rows else {}
    return tuple(
        PodTimes(row.pod, row.created_at, tuple(_stages(row, usual)), row.released_at)
        for row in rows
    )


def _stages(row: StageTimes, usual: Mapping[str, Usual]) -> list[StageTook]:
    found = []
    for word, (start, end) in SPANS.items():
        if word == "wait":
            continue
        began, ended = getattr(row, start), getattr(row, end)
        took = None
        if began is not None and ended is not None:
            seconds = (ended - began).total_seconds()
            # Stamps of the cluster are whole seconds; one that comes before is no time at all.
            took = max(seconds, 0.0) if seconds >= -1 else None
        found.append(StageTook(word, ended, took, end in row.observed, usual[word]))
    return found


def device_facts(claim: Claim, mine: Collection[str]) -> dict[DeviceKey, DeviceFacts]:
    """By driver, pool and device, for every device that the claim holds."""
    if not claim.placed:
        return {}
    names = sorted({claim.object_name, *(device["claim"] for device in claim.placed)})
    keys = [(device["driver"], device["pool"], device["device"]) for device in claim.placed]
    said: dict[DeviceKey, tuple[str, str]] = {}
    for pod in consumers.pods_of_claim(claim.namespace.name, claim.public_id, names):
        for one in read_pod_status(pod).health:
            if (about := device_named(one.resource, keys)) is not None:
                said[about] = (one.health, one.message)
    seen = warm()
    own = {f"{claim.namespace.name}/{name}" for name in names}
    found = {}
    for key in keys:
        health, message = said.get(key, ("", ""))
        yours: tuple[str, ...] = ()
        others: int | None = None
        if seen is not None:
            sharers = [str(one) for one in usage(seen.now).holders(key) if str(one) not in own]
            yours = tuple(name for name in sharers if name.partition("/")[0] in mine)
            others = len(sharers) - len(yours)
        found[key] = DeviceFacts(health, message, yours, others)
    return found


def device_named(resource: str, keys: Sequence[DeviceKey]) -> DeviceKey | None:
    """Which device a `resourceID` of a Pod's status means; None where it cannot be told.

    The kubelet writes the driver's first CDI id, such as ``vendor/class=<claim uid>-gpu-0``, and
    only without one ``driver/pool/device`` (kubelet/cm/dra/manager.go, buildResourceHealth). CDI
    ids are the driver's own; most of them end with the device's name.
    """
    for key in keys:
        if resource == "/".join(key):
            return key
    end = resource.rpartition("=")[2]
    found = [key for key in keys if end == key[2] or end.endswith(f"-{key[2]}")]
    return max(found, key=lambda key: len(key[2]), default=None)


def cluster_events(claim: Claim) -> tuple[Told, ...]:
    """The newest of what the cluster said, newest first."""
    found = told(said_about(claim).order_by("-seen_at")[:MOST_EVENTS])
    return tuple(sorted(found, key=_moment, reverse=True))


def said_about(claim: Claim) -> QuerySet[Observed]:
    """What the cluster said about the claim, its template and its Pods; three queries.

    Kubernetes forgets events after an hour; the mirror keeps them for a week, of Pods that are gone
    as well.
    """
    about = {claim.object_uid} - {""}
    about |= set(StageTimes.objects.filter(claim=claim).values_list("pod_uid", flat=True)[:200])
    about |= set(
        Observed.objects.filter(
            Q(kind="ResourceClaim") | Q(kind="Pod"), claim=claim.public_id
        ).values_list("uid", flat=True)[:200]
    )
    return Observed.objects.filter(kind="Event", owner_uid__in=about)


def told(rows: Iterable[Observed]) -> tuple[Told, ...]:
    """Rows of events as values, in their order."""
    return tuple(Told(read_event(row.obj), row.gone_at is not None) for row in rows)


def reached(claim: Claim) -> dict[str, datetime]:
    """The first moment of each state that the claim went through; one query, however long ago."""
    first = claim.events.order_by().values_list("state").annotate(at=Min("at"))
    return dict(first)


def _moment(told: Told) -> float:
    return told.event.last.timestamp() if told.event.last else 0.0
