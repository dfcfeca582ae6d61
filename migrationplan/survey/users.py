"""Who uses a node pool's devices, and by which path. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from devices.dra.holders import claims_of
from devices.dra.meta import Meta
from devices.dra.pluginpath import requested
from devices.dra.podends import expected_end, retryable
from devices.dra.pods import Pod
from devices.dra.snapshot import Snapshot
from devices.dra.wording import some_of

#: Names that a sentence lists.
NAMED: Final = 4


class By(StrEnum):
    """How a workload's Pods get devices of the pool."""

    PLUGIN = "plugin"
    CLAIM = "claim"
    EXTENDED = "extended"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class PoolFacts:
    """What a node pool is, as far as the survey asks."""

    name: str
    selector: Mapping[str, str]
    resource: str
    driver: str
    device_class: str
    plugin_label: str
    driver_label: str
    sets: frozenset[str] = frozenset()
    devices_per_node: int | None = None

    def selects(self, labels: Mapping[str, str]) -> bool:
        return all(labels.get(key) == value for key, value in self.selector.items())


@dataclass(frozen=True, slots=True)
class User:
    """One Pod that holds, or waits for, devices of the pool."""

    pod: Pod
    by: By
    devices: int
    node: str
    retryable: bool
    ends: datetime | None


@dataclass(frozen=True, slots=True)
class Workload:
    """Pods of one owner: ``kind`` and ``name`` are of their controller, or of the Pod itself.

    ``retryable`` is how many of them say so; ``ends`` is when the last of them ends, None where one
    of them has not said so. ``waiting`` are those that have no node yet.
    """

    namespace: str
    kind: str
    name: str
    by: By
    pods: int
    devices: int
    nodes: tuple[str, ...]
    retryable: int
    waiting: int
    ends: datetime | None

    @property
    def key(self) -> tuple[str, str, str]:
        return (self.namespace, self.kind, self.name)


def users_of(pool: PoolFacts, snapshot: Snapshot, nodes: frozenset[str]) -> list[User]:
    """Pods on the pool's nodes with its devices, and those that wait for its class or resource."""
    found = []
    for pod in snapshot.pods.values():
        if pod.finished or (pod.node_name and pod.node_name not in nodes):
            continue
        named = requested(pod, {pool.resource}).get(pool.resource, 0)
        by_claims = _by_claims(pool, pod, snapshot)
        if pod.extended_claim:
            by, devices = By.EXTENDED, named or by_claims
        elif named and by_claims:
            by, devices = By.BOTH, named + by_claims
        elif named:
            by, devices = By.PLUGIN, named
        elif by_claims:
            by, devices = By.CLAIM, by_claims
        else:
            continue
        found.append(User(pod, by, devices, pod.node_name, retryable(pod), expected_end(pod)))
    return found


def _by_claims(pool: PoolFacts, pod: Pod, snapshot: Snapshot) -> int:
    """Devices of the pool's driver that a Pod's claims hold, or of its class that they ask for."""
    devices = 0
    for name, claim in claims_of(pod, snapshot).items():
        if claim is None or not name:
            continue
        if claim.allocation is not None:
            results = claim.allocation.results
            devices += sum(1 for one in results if one.driver == pool.driver)
        else:
            asks = [ask for one in claim.spec.requests for ask in one.asks]
            devices += sum(ask.device_class == pool.device_class for ask in asks)
    return devices


def workloads(users: Sequence[User]) -> tuple[Workload, ...]:
    """Grouped by owner and path: those of which nobody knows the end first, then the largest."""
    groups: dict[tuple[str, str, str, By], list[User]] = defaultdict(list)
    for user in users:
        kind, name = owner_of(user.pod.meta)
        groups[user.pod.meta.namespace, kind, name, user.by].append(user)
    found = []
    for (namespace, kind, name, by), members in groups.items():
        ends = [user.ends for user in members]
        known = [end for end in ends if end is not None]
        found.append(
            Workload(
                namespace=namespace,
                kind=kind,
                name=name,
                by=by,
                pods=len(members),
                devices=sum(user.devices for user in members),
                nodes=tuple(sorted({user.node for user in members if user.node})),
                retryable=sum(user.retryable for user in members),
                waiting=sum(not user.node for user in members),
                ends=max(known) if len(known) == len(ends) else None,
            )
        )
    return tuple(sorted(found, key=lambda one: (one.ends is not None, -one.devices, one.key)))


def owner_of(meta: Meta) -> tuple[str, str]:
    """The controller; of a ReplicaSet its name is a Deployment's with a hash behind."""
    owner = next((one for one in meta.owners if one.controller), None)
    return (owner.kind, owner.name) if owner is not None else ("Pod", meta.name)


def title(user: User) -> str:
    """Namespace and owner of a Pod, in sentences."""
    return f"{user.pod.meta.namespace}/{owner_of(user.pod.meta)[1]}"


def named(names: Sequence[str]) -> str:
    """The first few names, and how many more."""
    return some_of(names, NAMED)
