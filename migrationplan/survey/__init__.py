"""Before a node pool moves: who uses its devices by which path, what would break, and which nodes
should go first. Made from a snapshot; pure.

The order of nodes is the order of risk: a node that holds nothing, then nodes whose Pods have said
that they may be ended and started again, then those that end by themselves, last those of which
nobody knows when they end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from devices.dra.ownership import DeviceType, ownership
from devices.dra.snapshot import Snapshot
from migrationplan.survey.breaks import Break, breaks
from migrationplan.survey.order import Wave, owner, waves
from migrationplan.survey.risks import risks
from migrationplan.survey.users import PoolFacts, Workload, users_of, workloads


@dataclass(frozen=True, slots=True)
class Survey:
    """All of it. ``owners`` counts nodes, ``left_out`` are nodes in no wave, with the reason."""

    nodes: int = 0
    owners: Mapping[str, int] = field(default_factory=dict)
    workloads: tuple[Workload, ...] = ()
    breaks: tuple[Break, ...] = ()
    waves: tuple[Wave, ...] = ()
    risks: tuple[str, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def survey(
    pool: PoolFacts,
    snapshot: Snapshot,
    *,
    quotas: Iterable[Mapping[str, Any]] = (),
    sets: Iterable[Mapping[str, Any]] = (),
) -> Survey:
    """The survey of a pool that is to move to DRA. ``quotas`` and ``sets`` are raw ResourceQuotas
    and DaemonSets, all there are.
    """
    nodes = {n.name: n for n in snapshot.nodes.values() if pool.selects(n.labels)}
    kind = DeviceType(pool.resource, (pool.resource,), (pool.driver,))
    owned = {one.node: one for one in ownership(snapshot, (kind,)) if one.node in nodes}
    users = users_of(pool, snapshot, frozenset(nodes))
    order, left_out = waves(nodes, owned, users)
    return Survey(
        nodes=len(nodes),
        owners=dict(Counter(str(owner(owned.get(name))) for name in sorted(nodes))),
        workloads=workloads(users),
        breaks=tuple(breaks(pool, snapshot, users, list(quotas), list(sets))),
        waves=order,
        risks=tuple(risks(pool, snapshot, owned, users, sorted(nodes))),
        left_out=left_out,
    )
