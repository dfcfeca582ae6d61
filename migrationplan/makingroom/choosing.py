"""Whose end would make room for a request that waits, and whether it may be proposed at all. Pure.

Kubernetes does not preempt for devices (through 1.37). So nothing here is done by the cluster, and
nothing is reserved for who waits: a rival may be faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from devices.dra.makeroom import Room, make_room
from devices.dra.podends import grace
from devices.dra.pods import Pod
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot

UTILISATION: Final = "utilisation"


@dataclass(frozen=True, slots=True)
class Ending:
    """A Pod that would end, with whose it is ("" for nobody's) and how long it may take."""

    pod: Pod
    tenant: str
    grace: timedelta


@dataclass(frozen=True, slots=True)
class Choice:
    """One way: these Pods end, `room.devices` go free. `own` where all are the asking tenant's."""

    room: Room
    endings: tuple[Ending, ...]
    own: bool

    @property
    def number(self) -> str:
        """How a form names it: it is another choice once other Pods would end."""
        return f"{self.room.node}:{','.join(sorted(one.pod.meta.uid for one in self.endings))}"


@dataclass(frozen=True, slots=True)
class Found:
    """What can be proposed; `why_not` says why nothing can. `guarded` are ways left out because a
    Pod in them is not marked as retryable.
    """

    choices: tuple[Choice, ...] = ()
    why_not: str = ""
    priority: int | None = None
    waiting: tuple[Pod, ...] = ()
    guarded: int = 0


def choose(
    snapshot: Snapshot,
    wishes: Sequence[Wish],
    waiting: Sequence[Pod],
    *,
    policy: str,
    tenant: str,
    tenants: Mapping[str, str],
    now: datetime,
    letting_go: timedelta = timedelta(0),
) -> Found:
    """The ways to make room for the Pods in `waiting`.

    `policy` is the priority policy of the asking tenant, `tenants` says whose a namespace is.
    Only Pods whose owners marked them as retryable are ever proposed.
    """
    if policy != UTILISATION:
        return Found(
            why_not=f"The tenant's priority policy is {policy}: nothing is proposed for eviction.",
            waiting=tuple(waiting),
        )
    if not waiting:
        return Found(why_not="No Pod waits with it, so nobody knows how important it is.")
    priority = max(pod.priority for pod in waiting)
    rooms = make_room(snapshot, wishes, priority, now=now, letting_go=letting_go)
    spared = [room for room in rooms if room.spared]
    found = Found(
        tuple(_choice(room, snapshot, tenant, tenants) for room in spared),
        priority=priority,
        waiting=tuple(waiting),
        guarded=len(rooms) - len(spared),
    )
    if found.choices:
        return found
    return Found(
        why_not=_nothing(found),
        priority=priority,
        waiting=found.waiting,
        guarded=found.guarded,
    )


def _nothing(found: Found) -> str:
    if found.guarded:
        return (
            "Less important Pods are in its way, but their owners did not mark them as retryable"
            " (label berth.dev/retryable)."
        )
    return "It fits already, or no less important Pod is in its way."


def _choice(room: Room, snapshot: Snapshot, tenant: str, tenants: Mapping[str, str]) -> Choice:
    endings = []
    for name in room.pods:
        namespace, _, pod_name = name.partition("/")
        pod = snapshot.pods[namespace, pod_name]
        endings.append(Ending(pod, tenants.get(namespace, ""), grace(pod)))
    return Choice(room, tuple(endings), all(one.tenant == tenant for one in endings))


def percentile(sorted_values: Sequence[timedelta], share: float) -> timedelta | None:
    """The value that so many of a hundred do not exceed (nearest rank); None of nothing."""
    if not sorted_values:
        return None
    rank = max(1, -(-int(share * 100) * len(sorted_values) // 100))
    return sorted_values[min(rank, len(sorted_values)) - 1]
