"""What a wave needs to see: its nodes by moves and by the book of owners, and the world around it.

The API server is asked one question, so that a wave does not act on a mirror alone; what starts is
checked once more where it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Q

from devices.cluster.gateway import ClusterError, Gateway, Ref
from devices.cluster_link import stale_after
from devices.dra.ownership import Owner
from devices.dra.pods import Pod
from devices.dra.snapshot import CLAIM, NODE, POD, SLICE, Snapshot
from devices.fleet.driftbook import overview
from devices.fleet.nodepools import heard, place_named
from devices.fleet.ownershipbook import as_of, conflicting
from devices.forecasts.picture import Picture
from devices.models import NodePool, OwnershipLine
from migrationplan.gates import GateVerdict, Outcome
from migrationplan.gating.judging import judge
from migrationplan.gating.subjects import of_wave
from migrationplan.models import CalendarFreeze, Move, Wave, WaveNode
from migrationplan.moving.moves import lacks
from migrationplan.phases import Holder, Observation, Phase, Seen, Stand
from migrationplan.plans.choosing import claim_pods, holder_of, plugin_pods, source_of
from migrationplan.plans.rehearsals import rehearsals_of
from migrationplan.steps import Direction, Step
from migrationplan.windows import Frozen
from tenants.access import PlatformAccess, platform_of
from tenants.models import User
from tenants.policy import PlatformAct

#: Slices dip when a kubelet restarts (30 s), and the book is written every 10 s.
HYSTERESIS: Final = timedelta(seconds=45)
NEEDED: Final = (NODE, POD, SLICE, CLAIM)
Key = tuple[int, str]


def observe(wave: Wave, *, gateway: Gateway, picture: Picture | None, now: datetime) -> Observation:
    """The wave as it is now; a constant number of queries and one request to the API server."""
    snapshot = picture.now if picture is not None else None
    rows = list(wave.nodes.select_related("pool", "move"))
    direction = Direction(wave.plan.direction)
    lines, moves = lines_of(rows), moves_of(wave, rows)
    away = _away(rows, gateway)
    gone = _gone(rows, snapshot)
    booked = {name for one in overview(picture, now, pools_of(rows)).values() for name in one.nodes}
    nodes: list[Seen] = []
    conflicts: list[str] = []
    drift: list[str] = []
    for row in rows:
        line, move = _line(lines, row), moves.get((row.pool_id, row.node_uid))
        stand = stand_of(row, move, line, direction, wave, gone=row.node_uid in gone)
        one = _seen(row, move, line, stand, direction)
        nodes.append(one)
        if line is not None and conflicting(line, now) and stand is not Stand.LOST:
            conflicts.append(row.node)
        elif stand is Stand.CONVERTED and (
            _drifts(row, line, direction, now) or (row.node in booked and _rested(move, now))
        ):
            drift.append(row.node)
    _, operator_gone = runner(wave)
    return Observation(
        nodes=tuple(_with_holders(nodes, rows, direction, snapshot)),
        expected=len(rows),
        away=away,
        away_since=(wave.away_since or now) if away else None,
        stale=_stale(now),
        conflicts=tuple(conflicts),
        drift=tuple(drift),
        gates=verdicts_of(wave, now) if wave.phase in (Phase.RUNNING, Phase.SOAKING) else (),
        calendar=calendar_of({row.pool.slug for row in rows}, now),
        before=tuple(
            f"{one.position} {one.name}"
            for one in wave.plan.waves.filter(position__lt=wave.position).exclude(
                phase=Phase.DONE.value
            )
        ),
        operator_gone=operator_gone,
        rehearsals=rehearsals_of(pools_of(rows)) if wave.rehearsed_days else (),
    )


def stand_of(
    row: WaveNode,
    move: Move | None,
    line: OwnershipLine | None,
    direction: Direction,
    wave: Wave,
    *,
    gone: bool,
) -> Stand:
    """How a node stands, by its newest move since the wave began and by who owns its devices."""
    if move is not None and move.ended_at is None:
        if move.direction == direction and not move.cancelled:
            return Stand.CALLED if move.called else Stand.MOVING
        return Stand.STUCK if move.called else Stand.RETURNING
    if gone or (move is not None and move.step == Step.LOST):
        return Stand.LOST
    owner = line.owner if line is not None else Owner.UNKNOWN.value
    if owner == Owner.CONFLICT:
        return Stand.CONFLICT
    if move is None:
        # What no move of this wave changed is where it was, and nothing of it is undone.
        back = wave.phase in (Phase.ROLLING_BACK, Phase.ROLLED_BACK)
        there = owner == direction.path.value and not back
        return Stand.CONVERTED if there else Stand.WAITING
    if move.direction == direction and not move.cancelled:
        return Stand.CONVERTED
    return Stand.RETURNED


def lines_of(rows: Sequence[WaveNode]) -> Mapping[tuple[str, str], OwnershipLine]:
    """Who owns what on these nodes now, by node and type; one query."""
    found = as_of().filter(node__in=[row.node for row in rows])
    return {(line.node, line.type): line for line in found}


def _line(lines: Mapping[tuple[str, str], OwnershipLine], row: WaveNode) -> OwnershipLine | None:
    """The line of the row's devices, whichever of its two names the book has."""
    both = [lines.get((row.node, row.pool.resource)), lines.get((row.node, row.pool.driver))]
    known = [one for one in both if one is not None and one.node_uid == row.node_uid]
    return max(known, key=lambda one: one.owner != Owner.NONE, default=None)


def moves_of(wave: Wave, rows: Sequence[WaveNode]) -> Mapping[Key, Move]:
    """The newest move of each node that is open or began with the wave; one query."""
    since = Q(ended_at=None)
    if wave.started_at is not None:
        since |= Q(begun_at__gte=wave.started_at)
    found = Move.objects.filter(since, node_uid__in=[row.node_uid for row in rows])
    return {(move.pool_id, move.node_uid): move for move in found.order_by("pk")}


def verdicts_of(wave: Wave, now: datetime) -> tuple[GateVerdict, ...]:
    """What the wave's gates say now; may ask other systems, for seconds each. A wave that has moved
    nothing yet has nothing to be judged by, so its gates are silent.
    """
    if not wave.gates:
        return ()
    subjects = of_wave(wave)
    if subjects:
        return judge(subjects, wave.gates, now)
    return tuple(GateVerdict(slug, Outcome.NONE, "no node has moved yet") for slug in wave.gates)


def calendar_of(pools: set[str], now: datetime) -> tuple[Frozen, ...]:
    """Entries of the freeze calendar that concern these pools, in force or to come; one query."""
    return tuple(one.frozen() for one in CalendarFreeze.objects.to_come(now).of(pools))


def runner(wave: Wave) -> tuple[PlatformAccess | None, str]:
    """Whose rights the wave uses, or why it has nobody's."""
    if wave.plan.run_by is None:
        return None, "nobody has submitted it"
    user = User.objects.filter(person=wave.plan.run_by, is_active=True).first()
    if user is None:
        return None, "whoever ran it has no account any more"
    access = platform_of(user)
    if not access.may(PlatformAct.CONVERT):
        return None, f"{user.words} ran it and may not convert nodes any more"
    return access, ""


def _seen(
    row: WaveNode,
    move: Move | None,
    line: OwnershipLine | None,
    stand: Stand,
    direction: Direction,
) -> Seen:
    owner = line.owner if line is not None else Owner.UNKNOWN.value
    return Seen(
        node=row.node,
        stand=stand,
        source=owner == source_of(direction),
        why_not=lacks(row.pool) if stand is Stand.WAITING else "",
        skipped=row.skipped,
        opening=move is not None and move.ended_at is None and move.step == Step.OPENING,
    )


def _with_holders(
    nodes: Sequence[Seen],
    rows: Sequence[WaveNode],
    direction: Direction,
    snapshot: Snapshot | None,
) -> list[Seen]:
    """Who holds the devices of nodes on their way, and of those that may start next."""
    if snapshot is None:
        return list(nodes)
    by_pool: dict[int, Mapping[str, Sequence[Pod]]] = {}
    found = []
    for one, row in zip(nodes, rows, strict=True):
        leaving = one.stand in (Stand.WAITING, Stand.MOVING)
        if leaving or one.stand is Stand.RETURNING:
            to_dra = (direction is Direction.TO_DRA) is leaving
            one = replace(one, holders=_holders(row, snapshot, by_pool, by_plugin=to_dra))
        found.append(one)
    return found


def _holders(
    row: WaveNode,
    snapshot: Snapshot,
    by_pool: dict[int, Mapping[str, Sequence[Pod]]],
    *,
    by_plugin: bool,
) -> tuple[Holder, ...]:
    if by_plugin:
        if row.pool_id not in by_pool:
            by_pool[row.pool_id] = plugin_pods(row.pool, snapshot)
        pods: Sequence[Pod] = by_pool[row.pool_id].get(row.node, ())
    else:
        pods = claim_pods(place_named(row.pool, row.node, row.node_uid), snapshot)
    return tuple(holder_of(pod) for pod in pods)


def _drifts(row: WaveNode, line: OwnershipLine | None, direction: Direction, now: datetime) -> bool:
    """Whether a converted node is not as it was proved, for longer than slices dip."""
    if line is None or now - line.since < HYSTERESIS:
        return False
    if line.owner != direction.path.value:
        return True
    shown = line.published if direction is Direction.TO_DRA else line.plugin
    return row.pool.devices_per_node is not None and shown != row.pool.devices_per_node


def _rested(move: Move | None, now: datetime) -> bool:
    """Whether it is long enough ago that the node changed; the book of drift saw it change too."""
    return move is None or move.ended_at is None or now - move.ended_at > HYSTERESIS


def _gone(rows: Sequence[WaveNode], snapshot: Snapshot | None) -> set[str]:
    """Uids of nodes that are not there any more, or whose name another machine has."""
    if snapshot is None or NODE not in heard():
        return set()
    uids = {node.uid for node in snapshot.nodes.values()}
    return {row.node_uid for row in rows} - uids


def _away(rows: Sequence[WaveNode], gateway: Gateway) -> str:
    if not rows:
        return ""
    try:
        gateway.get(Ref("Node", rows[0].node))
    except ClusterError as error:
        return f"the API server does not answer: {error.message}"[:300]
    return ""


def _stale(now: datetime) -> str:
    """A sentence where the mirror has had no news of what a wave stands on."""
    ages = heard()
    late = [kind for kind in NEEDED if kind not in ages or now - ages[kind] > stale_after()]
    return f"the mirror has had no news of {', '.join(late)} for too long" if late else ""


def pools_of(rows: Sequence[WaveNode]) -> list[NodePool]:
    """The node pools of these rows, each once."""
    return list({row.pool_id: row.pool for row in rows}.values())
