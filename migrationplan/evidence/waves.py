"""What a wave leaves behind when it was rolled back: a bundle for each of its node pools."""

from __future__ import annotations

from datetime import datetime

from devices.models import NodePool
from migrationplan.evidence.collecting import collect
from migrationplan.models import Evidence, Move, Wave


def collect_wave(wave: Wave, *, why: str, now: datetime) -> list[Evidence]:
    """Everything about its nodes since it first ran; call it in the transaction of its end."""
    if wave.started_at is None or wave.started_at >= now:
        return []
    made = []
    for pool in NodePool.objects.filter(pk__in=wave.nodes.values("pool")).order_by("pk"):
        nodes = wave.nodes.filter(pool=pool).values("node_uid")
        moves = list(
            Move.objects.filter(pool=pool, node_uid__in=nodes, begun_at__gte=wave.started_at)
        )
        if moves:
            made.append(
                collect(
                    pool,
                    moves,
                    wave.started_at,
                    None,
                    why=why,
                    now=now,
                    request_id=wave.plan.request_id,
                )
            )
    return made
