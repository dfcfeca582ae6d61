"""Pods that may sit on the same hardware, where a node's devices have two owners. Pure.

A plugin's devices have no identity in the API, so nobody can say which of its Pods meets which
claim: all of them on that node are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from devices.dra.ownership import DeviceType, Owner, Ownership, device_types, ownership
from devices.dra.pluginpath import requested
from devices.dra.published import node_of
from devices.dra.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class AtRisk:
    """Pods that ask by extended resource on the node, and claims that hold devices of its drivers
    there; each as namespace/name.
    """

    pods: tuple[str, ...]
    claims: tuple[str, ...]


def at_risk(
    snapshot: Snapshot, owned: Iterable[Ownership] | None = None
) -> Mapping[tuple[str, str], AtRisk]:
    """By node and type, for every conflict among `owned`, or in the whole cluster."""
    types = {each.name: each for each in device_types(snapshot)}
    conflicts = [
        one
        for one in (ownership(snapshot) if owned is None else owned)
        if one.owner is Owner.CONFLICT
    ]
    return {(one.node, one.type): _who(snapshot, one, types[one.type]) for one in conflicts}


def _who(snapshot: Snapshot, where: Ownership, device_type: DeviceType) -> AtRisk:
    pods = []
    for pod in snapshot.pods.values():
        if pod.node_name != where.node or pod.finished:
            continue
        asked = {
            name for one in pod.containers for name in one.requests if device_type.offers(name)
        }
        if any(requested(pod, asked).values()):
            pods.append(str(pod))
    claims = [
        str(claim)
        for claim in snapshot.claims.values()
        if claim.allocation is not None
        and node_of(claim, snapshot) == where.node
        and any(result.driver in device_type.drivers for result in claim.allocation.results)
    ]
    return AtRisk(tuple(sorted(pods)), tuple(sorted(claims)))
