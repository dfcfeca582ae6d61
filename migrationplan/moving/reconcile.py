"""One turn of one move: load, look, decide, do, record.

A turn may run twice or die at any line; it holds a lease but no lock and no transaction while it
talks to the cluster. What it decides is `node.decide`'s alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.urls import reverse

from devices.cluster.gateway import ClusterError, Conflict, Gateway
from devices.dra.conversion import Times
from devices.dra.names import SYSTEM_NAMESPACE
from devices.fleet.nodepools import place_named
from devices.models import NodePool
from migrationplan.evidence.sighting import sight
from migrationplan.models import Move, MoveEvent
from migrationplan.moving.observe import look_at
from migrationplan.moving.perform import perform
from migrationplan.moving.reports import from_json
from migrationplan.node import decide
from migrationplan.steps import ENDED, Conversion, Decision, Direction, Step
from portal import news
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity
from portal.audit.record import record

TURN = "migrationplan.tasks.turn_move"
SWEEP_BATCH = 200
REMEMBERED = ("trial", "canary", "probe", "tries", "reports")


def turn(public_id: str, *, gateway: Gateway, now: datetime) -> bool:
    """Takes a move one step further, or waits; False where another turn is at work.

    Raises `ClusterError` with `retry` where asking again can help; the reason stands on the row.
    """
    move = Move.objects.select_related("pool").get(public_id=public_id)
    holder = secrets.token_hex(8)
    if move.ended_at is not None or not move.take_lease(holder, now):
        return False
    try:
        move.refresh_from_db()
        look = look_at(move.node, move.pool, gateway, now)
        decision = decide(conversion_of(move), look, now)
        for act in decision.acts:
            try:
                perform(act, move, gateway)
            except Conflict:
                continue  # the node changed meanwhile; the next turn asks again
        _record(move, decision, holder, now)
    except ClusterError as error:
        Move.objects.filter(pk=move.pk).update(
            why=error.message[:500], wake_at=now + timedelta(seconds=5)
        )
        raise
    finally:
        move.drop_lease(holder, looked_at=now)
    return True


def conversion_of(move: Move) -> Conversion:
    """The row as the rules take it."""
    return Conversion(
        direction=Direction(move.direction),
        step=Step(move.step),
        since=move.since,
        place=place_named(move.pool, move.node, move.node_uid),
        times=times_of(move.pool),
        empty_since=move.empty_since,
        plugin_off=move.plugin_off,
        reports=tuple(from_json(one) for one in move.reports),
        mark=move.public_id,
        trial=(SYSTEM_NAMESPACE, move.trial) if move.trial else None,
        canary=(SYSTEM_NAMESPACE, move.canary) if move.canary else None,
        called=move.called,
        cancelled=move.cancelled,
    )


def times_of(pool: NodePool) -> Times:
    """The pool's waits: those of true kubelets, in the proportion of its settling time."""
    usual = Times()
    share = min(pool.settling / usual.settling, 1.0)
    least = timedelta(seconds=2)
    return Times(
        grace=usual.grace * share,
        settling=pool.settling,
        margin=max(usual.margin * share, least),
        second_look=max(usual.second_look * share, least),
        cleaning=max(usual.cleaning * share, least),
    )


def _record(move: Move, decision: Decision, holder: str, now: datetime) -> None:
    """Stores what was decided, if this turn still has its lease; tells pages and the bell."""
    changed = {name: getattr(move, name) for name in REMEMBERED}
    changed |= decision.remember
    changed |= {"why": decision.why[:500], "evidence": list(decision.evidence)[:20]}
    changed["wake_at"] = now + decision.recheck
    moved, called = decision.move, decision.called if decision.called != move.called else ""
    if moved is not None:
        changed |= {"step": moved.value, "since": now, "wake_at": now}
        if moved in ENDED:
            changed |= {"ended_at": now, "wake_at": None}
    if decision.called:
        changed |= {"called": decision.called, "wake_at": None}
    with transaction.atomic():
        # A wish of a person meanwhile changes step or direction, and counts more than this look.
        as_read = Move.objects.filter(
            pk=move.pk, lease=holder, step=move.step, direction=move.direction,
            cancelled=move.cancelled, called=move.called,
        )  # fmt: skip
        if not as_read.update(**changed):
            return
        if moved is not None:
            write_event(move, moved.value, decision.why, now=now)
        if called or moved in ENDED:
            # Before the mirror forgets: the cluster's events live for an hour.
            sight(move.pool, [move], why=f"{called or moved}: {decision.why}", now=now)
        if moved in ENDED:
            _ended(move, moved, decision.why, now)
        if called:
            write_event(move, move.step, decision.why, now=now, code=called)
            _call(move, called, decision, now)
    if moved is not None or called or decision.why != move.why:
        news.publish(["moves", f"move-{move.public_id}"], tenant=news.PLATFORM)


def write_event(
    move: Move, step: str, text: str, *, now: datetime, code: str = "", person: UUID | None = None
) -> None:
    """One line of the move's history."""
    MoveEvent.objects.create(
        move=move, at=now, step=step, direction=move.direction, code=code, text=text[:500],
        person=person,
    )  # fmt: skip


def _ended(move: Move, step: Step, why: str, now: datetime) -> None:
    over_all(move, now)
    record(
        action="move.lost" if step is Step.LOST else "move.done",
        subject=f"move {move.public_id}",
        request_id=move.request_id,
        at=now,
        facts={"node": move.node, "pool": move.pool.slug, "direction": move.direction, "why": why},
    )


def _call(move: Move, code: str, decision: Decision, now: datetime) -> None:
    """Somebody has to look: the node stays closed where it is."""
    raise_alert(
        About(
            code=code,
            subject=f"move {move.public_id}",
            title=f"{move.node} stands still on its way {move.direction}",
            severity=Severity.CRITICAL,
            failure_class="needs cleanup",
            words=f"At {move.step}: {decision.why}. The node stays closed until somebody decides.",
            path=reverse("move", args=[move.public_id]),
            evidence=(
                ("Node pool", move.pool.name),
                *(("Seen", one) for one in decision.evidence[:5]),
            ),
        ),
        now=now,
        request_id=move.request_id,
    )


def over_all(move: Move, now: datetime) -> None:
    """No alert of this move is open any more."""
    if move.called:
        over(move.called, f"move {move.public_id}", now=now)


def due(now: datetime) -> Sequence[str]:
    """Moves whose time has come, those that nobody has waited for longest first."""
    open_ones = Move.objects.filter(ended_at=None).filter(Q(wake_at__lte=now))
    return list(open_ones.order_by("wake_at").values_list("public_id", flat=True)[:SWEEP_BATCH])
