"""Whom a gate looks at: nodes of one pool that moved, and since when each of them counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from devices.models import NodePool
from devices.routing.routes import Path
from migrationplan.models.plan import Wave, WaveNode
from migrationplan.phases import Stand
from migrationplan.steps import Direction

#: The paths by which Pods get a node's devices, by which way the node went.
NEW_PATHS: Mapping[Direction, frozenset[str]] = {
    Direction.TO_DRA: frozenset({Path.CLAIM.value, Path.EXTENDED.value}),
    Direction.TO_PLUGIN: frozenset({Path.PLUGIN.value}),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """Nodes of a pool that moved, each with the moment from which it counts as moved; what happened
    from `since` on is compared. `wave` is a public id, or empty.
    """

    pool: NodePool
    moved: Mapping[str, datetime]
    since: datetime
    direction: Direction = Direction.TO_DRA
    wave: str = ""

    @property
    def new_paths(self) -> frozenset[str]:
        """By which paths Pods of moved nodes get devices."""
        return NEW_PATHS[self.direction]

    @property
    def nodes(self) -> list[str]:
        """Names of the moved nodes, sorted."""
        return sorted(self.moved)

    def moved_as_json(self) -> list[list[Any]]:
        return [[node, self.moved[node].isoformat()] for node in self.nodes]


def of_wave(wave: Wave) -> tuple[Subject, ...]:
    """What a wave moved, one subject for each of its pools that has a moved node; two queries."""
    rows = WaveNode.objects.filter(wave=wave, stand=Stand.CONVERTED.value).exclude(
        move__ended_at=None
    )
    moved: dict[NodePool, dict[str, datetime]] = {}
    for row in rows.select_related("pool", "move"):
        if row.move is not None and row.move.ended_at is not None:
            moved.setdefault(row.pool, {})[row.node] = row.move.ended_at
    direction = Direction(wave.plan.direction)
    return tuple(
        Subject(pool, nodes, wave.started_at or min(nodes.values()), direction, wave.public_id)
        for pool, nodes in sorted(moved.items(), key=lambda item: item[0].slug)
    )
