"""What a move needs to see of its node: the node, its Pods and slices live, claims from the mirror.

The mirror keeps no conditions of Pods without devices, and Berth's own trial is one; what decides
whether a switch may be flipped is read from the API server itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from devices.cluster.gateway import Gateway, Ref
from devices.dra.conversion import Look
from devices.dra.names import SYSTEM_NAMESPACE
from devices.dra.snapshot import CLAIM, NODE, POD, SLICE, read_kinds
from devices.fleet.nodepools import heard
from devices.forecasts.warm import fresh
from devices.models import NodePool

Pair = tuple[str, dict[str, Any]]


def look_at(node: str, pool: NodePool, gateway: Gateway, now: datetime) -> Look:
    """The node as it is now. Raises `ClusterError`."""
    pairs = [*_live(node, pool, gateway)]
    seen, ages = fresh(), heard()
    live = dict.fromkeys((NODE, POD, SLICE), now)
    snapshot = read_kinds(pairs)
    if seen is None:
        return Look(snapshot, live)
    # Claims may lie in any namespace; those of a canary come a moment later, and are waited for.
    snapshot = replace(
        snapshot, claims=seen.now.claims, classes=seen.now.classes, gates=seen.now.gates
    )
    ages_of_claims = {CLAIM: ages[CLAIM]} if CLAIM in ages else {}
    return Look(snapshot, {**ages_of_claims, **live})


def _live(node: str, pool: NodePool, gateway: Gateway) -> Iterable[Pair]:
    if (found := gateway.get(Ref("Node", node))) is not None:
        yield NODE, found
    for one in gateway.list("Pod", fields=f"spec.nodeName={node}").items:
        yield POD, one
    for one in gateway.list("Pod", namespace=SYSTEM_NAMESPACE).items:
        yield POD, one
    for one in gateway.list("ResourceSlice", fields=f"spec.driver={pool.driver}").items:
        yield SLICE, one
