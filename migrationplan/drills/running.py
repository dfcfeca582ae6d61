"""Drills as they run: begun and given up by people, taken on by turns that look and write down.

A turn holds a lease and no lock while it talks to the cluster; it may run twice or die anywhere.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.urls import reverse

from devices.cluster.gateway import ClusterError, Gateway, Ref
from devices.dra.conversion import Look, Proof, Verdict
from devices.dra.names import SYSTEM_NAMESPACE
from devices.dra.ownpods import attempt_pod
from devices.fleet.nodepools import Standing, heard, place_named, standings
from devices.forecasts.picture import Picture
from devices.forecasts.warm import fresh
from devices.models import LeakRow, NodePool
from migrationplan.drills.kinds import DRILLS, look
from migrationplan.drills.scene import MoveSeen, Scene, remembered
from migrationplan.drills.words import Act, Kind, Result
from migrationplan.evidence.collecting import collect
from migrationplan.models import Drill, DrillMark, Move
from portal import news
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity
from portal.audit.record import record
from portal.errors import Refused
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

TURN: Final = "migrationplan.tasks.turn_drill"
TOPIC: Final = "drills"
FAILED: Final = "DRILL_FAILED"
SWEEP_BATCH: Final = 200
RECHECK: Final = timedelta(seconds=2)
Connect = Callable[[], Gateway]


class NotDrillable(Refused):
    """A drill cannot begin, or not be ended, as things stand; the message says why."""

    code = "NOT_DRILLABLE"


def passed_by_pool() -> dict[tuple[int, str], datetime]:
    """By pool and kind, when it last passed; one query."""
    rows = Drill.objects.filter(result=Result.PASSED.value).order_by()
    found = rows.values_list("pool", "kind").annotate(Max("ended_at"))
    return {(pool, kind): at for pool, kind, at in found}


def begin(
    pool: NodePool,
    kind: Kind,
    standing: Standing,
    picture: Picture,
    *,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> Drill:
    """A drill begins on a node of a pool. Raises `NotDrillable` where one is under way there, or
    where nothing could be proved.
    """
    access.require(PlatformAct.DRILL)
    if why := why_not(pool, kind, standing, picture):
        raise NotDrillable(f"Not on {standing.node.name}: {why}.", node=standing.node.name)
    made = Drill(
        pool=pool,
        kind=kind.value,
        node=standing.node.name,
        node_uid=standing.node.uid,
        begun_by=access.user.person,
        begun_at=now,
        since=now,
        request_id=request_id,
        wake_at=now,
        why="begun",
    )
    scene = scene_of(made, picture, now, owner=standing.owner)
    made.baseline = remembered(scene)
    try:
        with transaction.atomic():
            made.save()
            _mark(made, "begun", Proof(Verdict.PROVED, f"Begun on {made.node}."), now, access)
            _record("drill.begun", made, request_id, now, access)
            _tell(made, wake=True)
    except IntegrityError as error:
        raise NotDrillable(f"A drill is under way on {made.node}.", node=made.node) from error
    return made


def why_not(pool: NodePool, kind: Kind, standing: Standing, picture: Picture) -> str:
    """Why a drill cannot begin there, as a clause; empty where it can."""
    if not pool.driver_sets or pool.devices_per_node is None:
        return "nobody recorded its driver's DaemonSet and how many devices it has"
    if not standing.node.uid:
        return "its object has no uid"
    moving = Move.objects.filter(node_uid=standing.node.uid, ended_at=None).exists()
    if moving:
        return "it is on its way to another path; wait until it has arrived"
    if kind is not Kind.ROLLBACK and kind is not Kind.CROSS_NAMESPACE and standing.owner != "dra":
        return "its devices are not given out by DRA, and this drill is about a driver"
    if kind is Kind.CROSS_NAMESPACE and not _somebody_elses(pool, picture):
        return "no claim of this class is in any namespace, so there is nothing to try"
    return ""


def give_up(drill: Drill, *, access: PlatformAccess, request_id: str, now: datetime) -> Drill:
    """Ends a drill without a result. What Berth made for it is taken away."""
    access.require(PlatformAct.DRILL)
    with transaction.atomic():
        drill = Drill.objects.select_for_update().select_related("pool").get(pk=drill.pk)
        if drill.ended_at is not None:
            raise NotDrillable("It has ended.")
        words = Proof(Verdict.NOT_YET, "Given up.")
        _end(drill, Result.GIVEN_UP, words, now, access, request_id)
    return drill


def turn(public_id: str, *, connect: Connect, now: datetime) -> None:
    """Takes a drill as far as what is seen proves. Raises `ClusterError`."""
    drill = Drill.objects.select_related("pool").get(public_id=public_id)
    holder = secrets.token_hex(8)
    if drill.wake_at is None or not drill.take_lease(holder, now):
        return
    try:
        drill.refresh_from_db()
        if drill.ended_at is not None:
            _tidy(drill, connect())
            return
        picture = fresh()
        if picture is None:
            _wait(drill, Proof(Verdict.NOT_KNOWN, "nobody has looked at the cluster yet"), now)
            return
        _step(drill, picture, connect, now)
    except ClusterError as error:
        Drill.objects.filter(pk=drill.pk, ended_at=None).update(
            why=error.message[:500], wake_at=now + timedelta(seconds=5)
        )
        raise
    finally:
        drill.drop_lease(holder, looked_at=now)


def due(now: datetime) -> Sequence[str]:
    """Drills whose time has come."""
    rows = Drill.objects.filter(wake_at__lte=now).order_by("wake_at")
    return list(rows.values_list("public_id", flat=True)[:SWEEP_BATCH])


def scene_of(drill: Drill, picture: Picture, now: datetime, *, owner: str = "") -> Scene:
    """What the rules look at; three queries."""
    if not owner:
        found = {one.node.name: one.owner for one in standings(drill.pool, picture, now)}
        owner = found.get(drill.node, "")
    board = LeakRow.objects.filter(gone_at=None).values_list("code", "claims")
    return Scene(
        place=place_named(drill.pool, drill.node, drill.node_uid),
        look=Look(picture.now, heard()),
        now=now,
        mark=drill.mark,
        since=drill.since,
        baseline=drill.baseline,
        board=tuple((code, tuple(claims)) for code, claims in board),
        moves=tuple(_moves(drill)),
        owner=owner,
        bundle=drill.bundle,
    )


def _moves(drill: Drill) -> list[MoveSeen]:
    rows = Move.objects.filter(node_uid=drill.node_uid, begun_at__gte=drill.begun_at)
    return [
        MoveSeen(
            tuple((one.step, one.direction) for one in row.events.all()),
            row.step if row.ended_at else "",
            row.cancelled,
        )
        for row in rows.order_by("pk").prefetch_related("events")
    ]


def _step(drill: Drill, picture: Picture, connect: Connect, now: datetime) -> None:
    """Marks every step that is proved, and does what Berth does for the next one."""
    steps = DRILLS[Kind(drill.kind)]
    while (step := steps.at(drill.position)) is not None:
        proof = look(step, scene_of(drill, picture, now))
        if proof.verdict is Verdict.REFUTED:
            return _finish(drill, Result.FAILED, proof, now)
        if not proof.proved:
            if now - drill.since > step.patience:
                late = f"{step.title}: not seen in time; {proof.why}"
                failed = Proof(Verdict.REFUTED, late, proof.evidence)
                return _finish(drill, Result.FAILED, failed, now)
            if step.act is not None:
                _do(step.act, drill, picture, connect, now)
            return _wait(drill, proof, now)
        with transaction.atomic():
            moved = Drill.objects.filter(pk=drill.pk, position=drill.position, ended_at=None)
            if not moved.update(position=drill.position + 1, since=now):
                return None
            _mark(drill, step.slug, proof, now)
            _tell(drill)
        drill.refresh_from_db()
    return _finish(drill, Result.PASSED, Proof(Verdict.PROVED, "Every step was proved."), now)


def _do(act: Act, drill: Drill, picture: Picture, connect: Connect, now: datetime) -> None:
    if act is Act.COLLECT and not drill.bundle:
        moves = list(Move.objects.filter(node_uid=drill.node_uid, begun_at__gte=drill.begun_at))
        with transaction.atomic():
            made = collect(
                drill.pool, moves, drill.begun_at, None, why=f"rollback rehearsed on {drill.node}",
                now=now, request_id=drill.request_id,
            )  # fmt: skip
            Drill.objects.filter(pk=drill.pk, bundle="").update(bundle=made.public_id)
    elif act is Act.TRY_ACROSS:
        _try_across(drill, picture, connect())
    elif act is Act.TIDY:
        _tidy(drill, connect())


def _try_across(drill: Drill, picture: Picture, gateway: Gateway) -> None:
    ref = Ref("Pod", drill.mark, SYSTEM_NAMESPACE)
    claim = _somebody_elses(drill.pool, picture)
    Drill.objects.filter(pk=drill.pk).update(attempt=drill.mark)
    if claim and gateway.get(ref) is None:
        gateway.create(attempt_pod(drill.mark, settings.CANARY_IMAGE, claim))


def _tidy(drill: Drill, gateway: Gateway) -> None:
    ref = Ref("Pod", drill.attempt or drill.mark, SYSTEM_NAMESPACE)
    if gateway.get(ref) is not None:
        gateway.delete(ref, grace_seconds=1)
    elif drill.ended_at is not None:
        Drill.objects.filter(pk=drill.pk).update(attempt="", wake_at=None)


def _somebody_elses(pool: NodePool, picture: Picture) -> str:
    """The name of a claim for the pool's class that lies in a tenant's namespace."""
    for claim in picture.now.claims.values():
        classes = {ask.device_class for request in claim.spec.requests for ask in request.asks}
        if claim.meta.namespace != SYSTEM_NAMESPACE and pool.device_class in classes:
            return claim.meta.name
    return ""


def _wait(drill: Drill, proof: Proof, now: datetime) -> None:
    """Said on the page only where it is news."""
    changed = {"why": proof.why[:500], "evidence": [one[:400] for one in proof.evidence][:20]}
    rows = Drill.objects.filter(pk=drill.pk, ended_at=None)
    rows.update(**changed, wake_at=now + RECHECK)
    if drill.why != changed["why"]:
        _publish(drill)


def _finish(drill: Drill, result: Result, proof: Proof, now: datetime) -> None:
    with transaction.atomic():
        drill = Drill.objects.select_for_update().select_related("pool").get(pk=drill.pk)
        if drill.ended_at is None:
            _end(drill, result, proof, now, None, drill.request_id)


def _end(
    drill: Drill,
    result: Result,
    proof: Proof,
    now: datetime,
    access: PlatformAccess | None,
    request_id: str,
) -> None:
    left = DRILLS[Kind(drill.kind)].kind is Kind.CROSS_NAMESPACE and bool(drill.attempt)
    drill.ended_at, drill.result, drill.why = now, result.value, proof.why[:500]
    drill.evidence = [one[:400] for one in proof.evidence][:20]
    drill.wake_at = now if left else None
    drill.save(update_fields=["ended_at", "result", "why", "evidence", "wake_at"])
    _mark(drill, result.value, proof, now, access)
    if result is Result.FAILED:
        _ring(drill, proof, now)
    elif result is Result.PASSED:
        over(FAILED, _subject(drill), now=now)
    _record(f"drill.{result.value.replace(' ', '_')}", drill, request_id, now, access)
    _tell(drill, wake=left)


def _subject(drill: Drill) -> str:
    """Failures of one kind on one pool are one alert, which the next pass ends."""
    return f"drill {drill.kind} on node pool {drill.pool.slug}"


def _ring(drill: Drill, proof: Proof, now: datetime) -> None:
    raise_alert(
        About(
            code=FAILED,
            subject=_subject(drill),
            title=f"{DRILLS[Kind(drill.kind)].name}: the drill on {drill.node} failed",
            severity=Severity.WARNING,
            failure_class="needs cleanup",
            words=f"{proof.why}. Look what of it is left before anything else.",
            path=reverse("drill", args=[drill.public_id]),
            evidence=(
                ("Node pool", drill.pool.name),
                *(("Seen", one) for one in proof.evidence[:5]),
            ),
        ),
        now=now,
        request_id=drill.request_id,
    )


def _mark(
    drill: Drill, step: str, proof: Proof, now: datetime, access: PlatformAccess | None = None
) -> None:
    DrillMark.objects.create(
        drill=drill,
        step=step,
        at=now,
        text=proof.why[:500],
        evidence=[one[:400] for one in proof.evidence][:20],
        person=access.user.person if access else None,
    )


def _record(
    action: str, drill: Drill, request_id: str, now: datetime, access: PlatformAccess | None
) -> None:
    facts: dict[str, Any] = {
        "pool": drill.pool.slug,
        "kind": drill.kind,
        "node": drill.node,
        "result": drill.result,
        "why": drill.why,
    }
    record(
        action=action,
        subject=f"drill {drill.public_id}",
        request_id=request_id,
        at=now,
        person=access.user.person if access else None,
        facts=facts,
    )


def _tell(drill: Drill, *, wake: bool = False) -> None:
    def tell() -> None:
        if wake:
            outbox.hint(TURN, drill.public_id)
        _publish(drill)

    transaction.on_commit(tell, robust=True)


def _publish(drill: Drill) -> None:
    news.publish([TOPIC, f"drill-{drill.public_id}"], tenant=news.PLATFORM)
