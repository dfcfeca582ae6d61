"""Which slice pools cannot be believed now, and whether an ask has to wait for that. Pure.

Slices carry no heartbeat, so a slice's own age says nothing. A pool is doubted while the watch is
older than its window, while it is incomplete, while its newest generation is lower than it was in
the same life, while its node is no longer heard by the cluster (the node controller says so by the
condition Ready, once the node's lease expired), or once a Pod of its driver there was not ready for
a minute.

A life of a pool ends when none of its slices is left that was there before: a driver that starts
anew may begin to count from one, and a kubelet's restart does just that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from devices.dra.matching import all_match
from devices.dra.pods import Pod
from devices.dra.podstatus import read_pod_status
from devices.dra.pools import Pool, PoolKey, pools
from devices.dra.snapshot import Snapshot

STALE: Final = "STALE_INVENTORY"
INCOMPLETE: Final = "POOL_INCOMPLETE"
WENT_BACK: Final = "GENERATION_WENT_BACK"
UNSAFE: Final = "LEDGER_UNSAFE"
#: A driver's Pod may be away so long, as in a restart.
PATIENCE: Final = timedelta(seconds=60)
#: Of several doubts the gravest is told.
_GRAVEST: Final = (WENT_BACK, UNSAFE, STALE, INCOMPLETE)
#: Namespace and name of a DaemonSet.
Set = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a pool is not believed: a code and a sentence."""

    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a pool was: its highest generation in this life, and its slices by name."""

    generation: int
    slices: frozenset[str]
    back: bool = False


def advance(mark: Mark | None, pool: Pool) -> Mark:
    """The mark after a look at a pool."""
    names = frozenset({piece.name for piece in pool.slices} | set(pool.outdated))
    if mark is None or not names & mark.slices or pool.generation >= mark.generation:
        return Mark(pool.generation, names)
    return Mark(mark.generation, names, back=True)


def doubts(
    snapshot: Snapshot,
    now: datetime,
    *,
    sets: Mapping[str, Collection[Set]] | None = None,
    back: Collection[PoolKey] = (),
) -> Mapping[PoolKey, Doubt]:
    """Pools that are not believed, by driver and name. ``sets`` are the DaemonSets of each driver
    as far as node pools name them, ``back`` pools whose generation went back.
    """
    away = _away(snapshot, now, sets or {})
    found: dict[PoolKey, Doubt] = {}
    for key, pool in pools(snapshot).items():
        nodes = sorted({piece.reach.node_name for piece in pool.slices} - {""})
        silent = [n for n in nodes if n in snapshot.nodes and snapshot.nodes[n].ready is False]
        without = [n for n in nodes if (pool.driver, n) in away]
        if key in back:
            found[key] = Doubt(WENT_BACK, f"{pool} counts from a lower generation than before.")
        elif silent:
            found[key] = Doubt(STALE, f"Node {silent[0]} is not heard, so {pool} may be over.")
        elif without:
            why = f"The driver's Pod on {without[0]} is not ready, so {pool} may be over."
            found[key] = Doubt(STALE, why)
        elif pool.incomplete:
            why = f"{pool}: {len(pool.slices)} of {pool.expected} slices are there."
            found[key] = Doubt(INCOMPLETE, why)
    return found


def unsafe_pools(snapshot: Snapshot, nodes: Mapping[str, str]) -> Mapping[PoolKey, Doubt]:
    """Pools whose devices cost something of a node whose ledger cannot be relied on; ``nodes`` are
    those, with the code of the gravest reason.
    """
    found: dict[PoolKey, Doubt] = {}
    for piece in snapshot.slices if nodes else ():
        node = piece.reach.node_name
        if node in nodes and any(device.node_shares for device in piece.devices):
            why = f"What is charged to node {node} cannot be relied on ({nodes[node]})."
            found[piece.driver, piece.pool] = Doubt(UNSAFE, why)
    return found


def keeps_back(
    snapshot: Snapshot,
    requests: Sequence[Collection[str]],
    doubted: Mapping[PoolKey, Doubt],
) -> Doubt | None:
    """Why an ask waits; None where it may go. ``requests`` are, for each request, the classes of
    its alternatives.

    It waits where some request could be served out of doubted pools only. A request for which no
    pool has any device waits for nothing here: the scheduler says what it lacks.
    """
    if not doubted:
        return None
    for classes in requests:
        reached = [key for name in classes for key in _pools_of(snapshot, name)]
        if reached and all(key in doubted for key in reached):
            why = min((doubted[key] for key in reached), key=lambda d: _GRAVEST.index(d.code))
            return why
    return None


def _pools_of(snapshot: Snapshot, name: str) -> Sequence[PoolKey]:
    """Pools with a device of a class."""
    device_class = snapshot.classes.get(name)
    if device_class is None:
        return ()
    return snapshot.once(
        ("pools of class", name),
        lambda s: tuple(
            key
            for key, pool in pools(s).items()
            if any(
                answer is True
                for piece in pool.slices
                for answer in all_match(s, device_class.selectors, piece)
            )
        ),
    )


def _away(
    snapshot: Snapshot, now: datetime, sets: Mapping[str, Collection[Set]]
) -> set[tuple[str, str]]:
    """Drivers and nodes where a Pod of the driver has not been ready for a minute."""
    drivers = {one: driver for driver, those in sets.items() for one in those}
    if not drivers:
        return set()
    return {
        (drivers[owner], pod.node_name)
        for pod in snapshot.pods.values()
        if pod.node_name and not pod.finished
        for owner in _owners(pod)
        if owner in drivers and _unready(pod, now)
    }


def _owners(pod: Pod) -> Iterable[Set]:
    return (
        (pod.meta.namespace, owner.name) for owner in pod.meta.owners if owner.kind == "DaemonSet"
    )


def _unready(pod: Pod, now: datetime) -> bool:
    said = read_pod_status(pod.raw).conditions.get("Ready")
    return said is not None and not said.true and said.at is not None and now - said.at >= PATIENCE
