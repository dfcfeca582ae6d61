"""What a wave asks for, done: a node begun, nodes sent back, Pods ended, a class frozen, a route.

Doing any of it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from devices.cluster.gateway import BudgetSpent, Gateway, Ref
from devices.dra.names import RETRYABLE_LABEL
from devices.fleet.nodepools import standings
from devices.forecasts.picture import Picture
from devices.models import Freeze, RouteRule
from devices.routing.rerouting import set_route
from devices.routing.routes import Path
from devices.tenancy.freezes import AlreadyFrozen, freeze
from migrationplan.models import Move, Wave, WaveNode
from migrationplan.moving.moves import NotMovable, begin, turn_back
from migrationplan.phases import Decision
from migrationplan.plans.observe import Key, moves_of, pools_of
from migrationplan.plans.story import write_event
from migrationplan.steps import Direction
from tenants.access import PlatformAccess


def perform(
    wave: Wave,
    decision: Decision,
    *,
    access: PlatformAccess,
    gateway: Gateway,
    picture: Picture | None,
    now: datetime,
) -> None:
    """Raises `ClusterError`; what a node refuses stands on its row and in the wave's log."""
    rows = list(wave.nodes.select_related("pool"))
    by_name = {row.node: row for row in rows}
    direction = Direction(wave.plan.direction)
    if decision.start is not None and picture is not None:
        _begin(wave, by_name[decision.start], direction, access, gateway, picture, now)
    if decision.back and picture is not None:
        moves = moves_of(wave, rows)
        for name in decision.back:
            _back(wave, by_name[name], moves, direction, access, gateway, picture, now)
    for pod in decision.evict:
        _evict(wave, pod, gateway, now)
    if decision.freeze:
        _freeze(wave, access, now)
    if decision.reroute:
        _freeze_pools(wave, direction, access, now)
        _reroute(wave, direction, access, now)


def _begin(
    wave: Wave,
    row: WaveNode,
    direction: Direction,
    access: PlatformAccess,
    gateway: Gateway,
    picture: Picture,
    now: datetime,
) -> None:
    """The mirror chose it; that it is this machine is asked of the API server once more."""
    live = gateway.get(Ref("Node", row.node))
    found = standings(row.pool, picture, now, only={row.node})
    if live is None or live["metadata"].get("uid") != row.node_uid or not found:
        return
    try:
        with transaction.atomic():
            move = begin(
                row.pool, found[0], direction,
                access=access, request_id=wave.plan.request_id, now=now,
            )  # fmt: skip
            WaveNode.objects.filter(pk=row.pk).update(move=move)
            write_event(wave, f"Begun {direction}.", now=now, node=row.node)
    except NotMovable as refused:
        WaveNode.objects.filter(pk=row.pk).update(why=refused.message[:500])


def _back(
    wave: Wave,
    row: WaveNode,
    moves: Mapping[Key, Move],
    direction: Direction,
    access: PlatformAccess,
    gateway: Gateway,
    picture: Picture,
    now: datetime,
) -> None:
    """A move under way is turned; a node that is through begins its way back."""
    move = moves.get((row.pool_id, row.node_uid))
    if move is None or move.ended_at is not None:
        other = Direction.TO_PLUGIN if direction is Direction.TO_DRA else Direction.TO_DRA
        _begin(wave, row, other, access, gateway, picture, now)
        return
    try:
        with transaction.atomic():
            turn_back(move, access=access, request_id=wave.plan.request_id, now=now)
            write_event(wave, "Turned back.", now=now, node=row.node)
    except NotMovable as refused:
        WaveNode.objects.filter(pk=row.pk).update(why=refused.message[:500])


def _evict(wave: Wave, pod: str, gateway: Gateway, now: datetime) -> None:
    """Asks the eviction API, which respects disruption budgets; refused now, it is asked again."""
    namespace, name = pod.split("/", 1)
    found = gateway.get(Ref("Pod", name, namespace))
    if found is None or found["metadata"].get("deletionTimestamp"):
        return
    # The mirror said so; the Pod itself is asked once more whether its owner allows it.
    if (found["metadata"].get("labels") or {}).get(RETRYABLE_LABEL) != "true":
        return
    try:
        gateway.evict(Ref("Pod", name, namespace), uid=found["metadata"]["uid"])
    except BudgetSpent:
        return
    write_event(wave, f"Asked {pod} to end: it declares itself retryable.", now=now)


def _freeze(wave: Wave, access: PlatformAccess, now: datetime) -> None:
    """Nothing new of the classes concerned is taken on until a person lifts it."""
    rows = list(wave.nodes.select_related("pool"))
    for device_class in sorted({pool.device_class for pool in pools_of(rows)}):
        try:
            freeze(
                access=access,
                scope="class",
                target=device_class,
                strict=False,
                reason=f"{wave.plan.number}, wave {wave.position}: devices with two owners",
                until=None,
                request_id=wave.plan.request_id,
                now=now,
            )
        except AlreadyFrozen:
            continue


def rolls_back(wave: Wave) -> str:
    """The reason of what a rollback freezes and reroutes; each is done once for it."""
    return f"{wave.plan.number}, wave {wave.position} rolls back"


def _freeze_pools(wave: Wave, direction: Direction, access: PlatformAccess, now: datetime) -> None:
    """The node pools take nothing new on the path that the wave led to, and their drivers stay as
    they are. What somebody lifts meanwhile stays lifted.
    """
    reason = rolls_back(wave)
    for pool in pools_of(list(wave.nodes.select_related("pool"))):
        for scope, path in (("pool", direction.path.value), ("change", "")):
            if Freeze.objects.filter(scope=scope, target=pool.slug, reason=reason).exists():
                continue
            try:
                freeze(
                    access=access,
                    scope=scope,
                    target=pool.slug,
                    path=path,
                    strict=False,
                    reason=reason,
                    until=None,
                    request_id=wave.plan.request_id,
                    now=now,
                )
            except AlreadyFrozen:
                continue


def _reroute(wave: Wave, direction: Direction, access: PlatformAccess, now: datetime) -> None:
    """New work takes the path that the wave leaves, by one rule per class and rollback."""
    path = Path.PLUGIN if direction is Direction.TO_DRA else Path.CLAIM
    reason = rolls_back(wave)
    for device_class in sorted({pool.device_class for pool in pools_of(list(
        wave.nodes.select_related("pool")
    ))}):  # fmt: skip
        if RouteRule.objects.filter(device_class=device_class, reason=reason).exists():
            continue
        set_route(
            access=access,
            device_class=device_class,
            path=path.value,
            reason=reason,
            request_id=wave.plan.request_id,
            now=now,
        )
