"""Verbs of operators: begin a move, look again, turn back."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from devices.dra.ownership import Owner
from devices.fleet.nodepools import Standing
from devices.models import NodePool
from migrationplan.evidence.sighting import sight
from migrationplan.models import Move
from migrationplan.moving.reconcile import TURN, conversion_of, over_all, write_event
from migrationplan.node import turned_back
from migrationplan.steps import Direction, Step
from portal import news
from portal.audit.record import record
from portal.errors import Refused
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct


class NotMovable(Refused):
    """A node cannot begin, or a move not be changed, as things stand; the message says why."""

    code = "NOT_MOVABLE"


def begin(
    pool: NodePool,
    standing: Standing,
    direction: Direction,
    *,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> Move:
    """A node of a pool begins its way. Raises `NotMovable` where nothing could prove its end, where
    it is in conflict, or where it is on its way already.
    """
    access.require(PlatformAct.CONVERT)
    node = standing.node
    if why := why_not(pool, standing, direction):
        raise NotMovable(f"{node.name} stays: {why}", node=node.name)
    try:
        with transaction.atomic():
            move = Move.objects.create(
                pool=pool,
                node=node.name,
                node_uid=node.uid,
                direction=direction.value,
                since=now,
                begun_by=access.user.person,
                begun_at=now,
                request_id=request_id,
                wake_at=now,
                why="begun",
            )
            write_event(move, move.step, f"Begun {direction}.", now=now, person=move.begun_by)
            sight(pool, [move], why=f"begun {direction}", now=now)
            _record("move.begun", move, access, request_id, now)
    except IntegrityError as error:
        raise NotMovable(f"{node.name} is on its way already.", node=node.name) from error
    _wake(move)
    return move


def why_not(pool: NodePool, standing: Standing, direction: Direction) -> str:
    """Why a node cannot begin, as a clause; empty where it can."""
    wanted = Owner.PLUGIN if direction is Direction.TO_DRA else Owner.DRA
    if standing.owner == Owner.CONFLICT:
        return "its devices have two owners, and a person has to end that first"
    if standing.owner != wanted:
        return (
            f"its devices are not given out by {'the plugin' if wanted is Owner.PLUGIN else 'DRA'}"
        )
    if lacking := lacks(pool):
        return lacking
    if not standing.node.uid:
        return "its object has no uid"
    return ""


def lacks(pool: NodePool) -> str:
    """What nobody recorded of a pool, so that none of its nodes can begin; empty where it is all
    there.
    """
    if not pool.plugin_sets or not pool.driver_sets:
        return "nobody recorded which DaemonSets run plugin and driver, so nothing could be proved"
    if pool.devices_per_node is None:
        return "nobody recorded how many devices a node has, so its end could not be proved"
    return ""


@transaction.atomic
def look_again(move: Move, *, access: PlatformAccess, request_id: str, now: datetime) -> Move:
    """A person has looked: the step begins anew, with all its patience."""
    access.require(PlatformAct.CONVERT)
    move = Move.objects.select_for_update().select_related("pool").get(pk=move.pk)
    if not move.called or move.ended_at:
        raise NotMovable("Nobody is called: it goes on by itself.")
    over_all(move, now)
    move.called, move.since, move.wake_at = "", now, now
    move.save(update_fields=["called", "since", "wake_at"])
    write_event(move, move.step, "Looked at, to go on.", now=now, person=access.user.person)
    _record("move.looked_again", move, access, request_id, now)
    _wake(move)
    return move


@transaction.atomic
def turn_back(move: Move, *, access: PlatformAccess, request_id: str, now: datetime) -> Move:
    """The node goes back from wherever it stands; nothing is undone by halves."""
    access.require(PlatformAct.CONVERT)
    move = Move.objects.select_for_update().select_related("pool").get(pk=move.pk)
    if move.ended_at or move.step == Step.OPENING:
        raise NotMovable("It has ended; begin another move instead.")
    changed = move.events.exclude(step=Step.QUIESCING).exists()
    back = turned_back(conversion_of(move), changed=changed)
    over_all(move, now)
    move.direction, move.step = back.direction.value, back.step.value
    move.empty_since, move.plugin_off, move.cancelled = (
        back.empty_since,
        back.plugin_off,
        back.cancelled,
    )
    move.called, move.since, move.wake_at = "", now, now
    move.save()
    words = "Given up before anything was changed." if back.cancelled else "Turned back."
    write_event(move, move.step, words, now=now, person=access.user.person)
    sight(move.pool, [move], why=words, now=now)
    _record("move.turned_back", move, access, request_id, now)
    _wake(move)
    return move


def _wake(move: Move) -> None:
    def tell() -> None:
        outbox.hint(TURN, move.public_id)
        news.publish(["moves", f"move-{move.public_id}"], tenant=news.PLATFORM)

    transaction.on_commit(tell, robust=True)


def _record(
    action: str, move: Move, access: PlatformAccess, request_id: str, now: datetime, **facts: Any
) -> None:
    record(
        action=action,
        subject=f"move {move.public_id}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={
            "node": move.node,
            "pool": move.pool.slug,
            "direction": move.direction,
            "step": move.step,
            **facts,
        },
    )
