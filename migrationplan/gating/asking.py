"""Reading the gates of a node pool because a person asks: of every node that has moved by now."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from devices.dra.ownership import Owner
from devices.fleet.ownershipbook import as_of
from devices.models import NodePool
from migrationplan.gating.judging import read_now
from migrationplan.gating.subjects import Subject
from migrationplan.models import Gate, Move
from migrationplan.steps import Direction, Step
from portal.audit.record import record
from portal.errors import Refused
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

TASK: Final = "migrationplan.tasks.read_gates_of_pool"
#: As far back as stage times are compared where no wave says since when.
LOOK_BACK: Final = timedelta(days=7)


class NothingMoved(Refused):
    """No node of the pool has moved, so there is nothing to compare."""

    code = "NOTHING_MOVED"


def of_pool(pool: NodePool, now: datetime) -> Subject:
    """Every node of a pool whose devices are DRA's after a move; two queries."""
    moves = Move.objects.filter(
        pool=pool, direction=Direction.TO_DRA.value, step=Step.DONE.value, cancelled=False
    ).exclude(ended_at=None)
    ended = {node: at for node, at in moves.order_by("pk").values_list("node", "ended_at") if at}
    lines = as_of().filter(node__in=ended, owner=Owner.DRA.value)
    kept = set(lines.filter(type__in=(pool.resource, pool.driver)).values_list("node", flat=True))
    moved = {node: at for node, at in ended.items() if node in kept}
    since = max(min(moved.values(), default=now), now - LOOK_BACK)
    return Subject(pool, moved, since)


def ask(pool: NodePool, *, access: PlatformAccess, request_id: str, now: datetime) -> None:
    """A worker reads every gate of the pool. Raises `NothingMoved`."""
    access.require(PlatformAct.CONVERT)
    if not of_pool(pool, now).moved:
        raise NothingMoved("No node of this pool has moved to DRA: there is nothing to compare.")
    record(
        action="gates.read",
        subject=f"node pool {pool.slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
    )
    outbox.hint(TASK, pool.slug)


def read_pool(slug: str, now: datetime) -> int:
    """Reads every gate of a pool now; returns how many."""
    pool = NodePool.objects.filter(slug=slug).first()
    if pool is None:
        return 0
    gates = list(Gate.objects.filter(retired_at=None))
    return len(read_now(of_pool(pool, now), gates, now, every=timedelta(0)))
