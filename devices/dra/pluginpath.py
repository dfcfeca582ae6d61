"""The other path to a class's devices: extended resources of device plugins (KEP-5004).

The plugin's devices have no identity in the API: nodes say how many there are, Pods say how many
they ask for. Counted per node, for the scheduler never mixes the two paths on one node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from devices.dra.pods import Pod
from devices.dra.quantity import Quantity
from devices.dra.snapshot import Snapshot

NANOS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PluginCount:
    """What device plugins offer of one extended resource, in devices.

    ``requested`` is what Pods that are bound and not ended ask for on nodes that offer it.
    """

    resource: str
    allocatable: int
    requested: int
    nodes: int


def plugin_counts(snapshot: Snapshot) -> Mapping[str, PluginCount]:
    """By name of the DeviceClass, for those that name an extended resource."""
    asked: Counter[tuple[str, str]] = Counter()
    names = {found.extended_resource for found in snapshot.classes.values()} - {""}
    for pod in snapshot.pods.values():
        if pod.node_name and not pod.finished:
            for resource, amount in requested(pod, names).items():
                asked[pod.node_name, resource] += amount
    counts = {}
    for name, found in snapshot.classes.items():
        resource = found.extended_resource
        if not resource:
            continue
        offered = {
            node.name: whole(node.allocatable[resource])
            for node in snapshot.nodes.values()
            if resource in node.allocatable and node.allocatable[resource].nanos > 0
        }
        counts[name] = PluginCount(
            resource=resource,
            allocatable=sum(offered.values()),
            requested=sum(asked[node, resource] for node in offered),
            nodes=len(offered),
        )
    return counts


def requested(pod: Pod, names: set[str]) -> Mapping[str, int]:
    """How many devices of each extended resource a Pod holds.

    The larger of what its containers and sidecars ask for together, and of what its greediest init
    container asks for beside the sidecars that were started before it (KEP-753).
    """
    ordinary: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    starting: Counter[str] = Counter()
    for container in pod.containers:
        for resource in names & container.requests.keys():
            amount = whole(container.requests[resource])
            if container.sidecar:
                sidecars[resource] += amount
            elif container.init:
                starting[resource] = max(starting[resource], sidecars[resource] + amount)
            else:
                ordinary[resource] += amount
    asked = {*ordinary, *sidecars, *starting}
    return {name: max(ordinary[name] + sidecars[name], starting[name]) for name in asked}


def whole(amount: Quantity) -> int:
    """Devices are counted in whole numbers; the API server refuses parts of one."""
    return amount.nanos // NANOS
