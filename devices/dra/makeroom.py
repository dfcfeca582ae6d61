"""Whose end would make room for a request of higher priority: the cheapest first.

Kubernetes never frees devices for a Pod that is more important (through 1.37), so a person has to
choose. This only names the choices; it ends nothing and reserves nothing, and rivals may be faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from devices.dra.allocate import forecast
from devices.dra.claims import DeviceKey
from devices.dra.holders import Presence, holders
from devices.dra.podends import grace, retryable, started
from devices.dra.pods import Pod
from devices.dra.released import claim_key
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot
from devices.dra.waits import blocking, fewest, frees

#: How many choices are given, and how many nodes are looked at for them.
MOST_CHOICES: Final = 5
MOST_NODES: Final = 64

#: Pods ended, of those the ones that may not be ended lightly, the highest priority, seconds lost.
Cost = tuple[int, int, int, float]


@dataclass(frozen=True, slots=True)
class Room:
    """One choice: ending these Pods releases these claims, and then the request fits on ``node``.

    ``devices`` is what that frees; ``takes`` is the longest that Pods may take to end and, where it
    is known, that the driver takes to let go. ``spared`` is False where a Pod may not be retried.
    """

    node: str
    claims: tuple[str, ...]
    pods: tuple[str, ...]
    devices: tuple[DeviceKey, ...]
    takes: timedelta
    cost: Cost

    @property
    def spared(self) -> bool:
        """Whether every Pod that is ended may be started again."""
        return self.cost[1] == 0


def make_room(
    snapshot: Snapshot,
    wishes: Sequence[Wish],
    priority: int,
    *,
    now: datetime | None = None,
    letting_go: timedelta = timedelta(0),
) -> tuple[Room, ...]:
    """The cheapest choices for a request of a Pod with this priority, cheapest first; empty where
    it fits already, or where no holder of lower priority is in its way.

    A claim can be chosen only where every consumer is a Pod that is there and less important.
    ``now`` tells how much work is lost, ``letting_go`` how long drivers usually take to unprepare.
    """
    if forecast(snapshot, wishes).fitting:
        return ()
    candidates = []
    for node in snapshot.node_names:
        costs = {
            name: cost
            for name in blocking(snapshot, wishes, node)
            if (cost := _cost(snapshot, (name,), priority, now)) is not None
        }
        if costs:
            candidates.append((min(costs.values()), node, costs))
    found: list[Room] = []
    for _, name, costs in sorted(candidates, key=lambda each: each[:2])[:MOST_NODES]:
        chosen = _on_node(snapshot, wishes, name, costs)
        if chosen:
            found.append(_room(snapshot, name, chosen, priority, now, letting_go))
    return tuple(sorted(found, key=lambda room: (room.cost, room.node))[:MOST_CHOICES])


def _on_node(
    snapshot: Snapshot, wishes: Sequence[Wish], node: str, costs: dict[str, Cost]
) -> tuple[str, ...]:
    """The cheapest single claim that suffices, else the smallest set of claims."""
    for name in sorted(costs, key=lambda n: (costs[n], n)):
        if frees(snapshot, wishes, node, {name}):
            return (name,)
    if not frees(snapshot, wishes, node, set(costs)):
        return ()
    return fewest(snapshot, wishes, node, sorted(costs), lambda name: (costs[name], name))


def _room(
    snapshot: Snapshot,
    node: str,
    chosen: tuple[str, ...],
    priority: int,
    now: datetime | None,
    letting_go: timedelta,
) -> Room:
    pods = _pods(snapshot, chosen) or ()
    devices = {
        result.key
        for name in chosen
        if (allocation := snapshot.claims[claim_key(name)].allocation) is not None
        for result in allocation.results
        if not result.admin
    }
    takes = max((grace(pod) for pod in pods), default=timedelta(0)) + letting_go
    cost = _cost(snapshot, chosen, priority, now) or (0, 0, 0, 0.0)
    return Room(node, chosen, tuple(map(str, pods)), tuple(sorted(devices)), takes, cost)


def _cost(
    snapshot: Snapshot, names: Sequence[str], priority: int, now: datetime | None
) -> Cost | None:
    """What ending the Pods of these claims costs; None where one of them must not be ended."""
    pods = _pods(snapshot, names)
    if pods is None or any(pod.priority >= priority for pod in pods):
        return None
    lost = 0.0
    for pod in pods:
        since = started(pod)
        if now is not None and since is not None:
            lost += (now - since).total_seconds()
    guarded = sum(not retryable(pod) for pod in pods)
    return (len(pods), guarded, max((pod.priority for pod in pods), default=0), lost)


def _pods(snapshot: Snapshot, names: Sequence[str]) -> tuple[Pod, ...] | None:
    """The Pods that use these claims; None where a consumer is no Pod that is there."""
    found: dict[str, Pod] = {}
    for name in names:
        for holder in holders(snapshot.claims[claim_key(name)], snapshot):
            if holder.pod is None:
                return None
            if holder.presence is Presence.PRESENT:
                found[str(holder.pod)] = holder.pod
    return tuple(found.values())
