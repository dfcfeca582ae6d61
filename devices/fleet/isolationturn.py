"""One turn of one isolation: look at its node, do what is wished, record what came of it.

It may run twice or die anywhere; it holds a lease but no lock while it talks to the cluster. What
is closed is looked at again and again, and closed anew where somebody else opened it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.urls import reverse

from devices.cluster.gateway import ClusterError, Conflict, Gateway, NotServed, Ref
from devices.cluster.taints import remove_rule, set_taints
from devices.dra.claims import read_claim
from devices.dra.codes import CODES
from devices.dra.evictions import rule_reach
from devices.dra.isolationobjects import (
    DryRun,
    canary_claim,
    canary_pod,
    computed,
    node_taints,
    read_dry_run,
    taint_rule,
)
from devices.dra.names import ISOLATED_TAINT, SYSTEM_NAMESPACE, Manager
from devices.dra.podstatus import read_pod_status
from devices.dra.snapshot import Snapshot
from devices.dra.taints import Effect, read_rule
from devices.fleet.isolationroom import room_of
from devices.fleet.isolationwishes import (
    ISOLATED,
    PROPOSED,
    TOPIC,
    TURN,
    End,
    State,
    Wish,
    ended_alerts,
    subject,
    write,
)
from devices.forecasts.warm import fresh
from devices.models import Isolation, IsolationPolicy
from portal import news
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity
from portal.outbox import lines as outbox

Obj = dict[str, Any]
SHARE: Final = "ISOLATION_SHARE_REACHED"
#: So long Kubernetes may take to say what a rule would do, before Berth counts itself.
PATIENCE: Final = timedelta(seconds=20)
#: So long a trial Pod may take to run.
TRIAL_PATIENCE: Final = timedelta(minutes=2)
#: What is closed is looked at as often.
KEEPING: Final = timedelta(seconds=30)


def turn(public_id: str, *, gateway: Gateway, now: datetime) -> bool:
    """Takes one isolation a step further; False where another turn is at work.

    Raises `ClusterError` with `retry` where asking again can help; the reason stands on the row.
    """
    row = Isolation.objects.get(public_id=public_id)
    if row.ended_at is not None:
        outbox.settle(TURN, public_id, through=outbox.newest(TURN, public_id))
        return True
    holder = secrets.token_hex(8)
    if not row.take_lease(holder, now):
        return False
    try:
        through = outbox.newest(TURN, public_id)
        row.refresh_from_db()
        wished = row.wished_at
        try:
            changed = _agree(row, gateway, now)
        except ClusterError as error:
            if error.retry:
                Isolation.objects.filter(pk=row.pk).update(answer=error.message[:500])
                raise
            changed = {"wish": Wish.NONE, "code": "REFUSED_BY_CLUSTER", "answer": error.message}
        _record(row, holder, wished, changed, now)
        if row.state != State.PROPOSED and not row.wish:
            outbox.settle(TURN, public_id, through=through)
    finally:
        if row.drop_lease(holder, looked_at=now):
            outbox.hint(TURN, public_id)
    return True


def due(now: datetime) -> Sequence[str]:
    """Public ids of isolations that a turn has to look at now."""
    waiting = ~Q(wish="") | Q(state=State.PROPOSED)
    kept = Q(state=State.APPLIED) & (Q(looked_at=None) | Q(looked_at__lte=now - KEEPING))
    rows = Isolation.objects.filter(waiting | kept, ended_at=None).order_by("looked_at")
    return list(rows.values_list("public_id", flat=True)[:200])


def _agree(row: Isolation, gateway: Gateway, now: datetime) -> Obj:
    """Does what is to do now; returns the fields to record."""
    node = gateway.get(Ref("Node", row.node))
    gone = node is None or (row.node_uid and node["metadata"]["uid"] != row.node_uid)
    if row.wish == Wish.LIFT or gone:
        _open(row, gateway, node)
        end = End(row.end) if row.wish == Wish.LIFT and row.end else End.LOST
        why = row.wished_why if end != End.LOST else "Its node is gone."
        return {
            "state": State.ENDED, "wish": Wish.NONE, "ended_at": now, "end": end,
            "ended_by": row.wished_by, "end_why": why, "canary": "",
        }  # fmt: skip
    match (State(row.state), Wish(row.wish)):
        case (State.TRIED, Wish.LOOK):
            anew = {"looks": row.looks + 1, "looking_since": now, "state": State.PROPOSED}
            return {**anew, "wish": Wish.NONE}
        case (State.PROPOSED, _):
            return _try(row, gateway, now)
        case (State.TRIED, Wish.APPLY):
            return _apply(row, gateway, now)
        case (State.APPLIED, Wish.PROBE):
            _close(row, gateway)
            return _probe(row, gateway, node, now)
        case (State.APPLIED, _):
            _close(row, gateway)
    return {}


def _try(row: Isolation, gateway: Gateway, now: datetime) -> Obj:
    """The dry run: the rule stands with effect None; what Kubernetes says of it is read back."""
    seen = fresh()
    snapshot = seen.now if seen is not None else None
    told, by_node = None, False
    if snapshot is not None and "DRADeviceTaintRules" not in snapshot.gates:
        by_node = True
    else:
        try:
            made = gateway.apply(
                taint_rule(row.target, Effect.NONE, row.looks),
                manager=Manager.ISOLATION,
                force=True,
            )
            told = read_dry_run(made)
        except NotServed:
            by_node = True
    if told is None and (by_node or now - (row.looking_since or now) > PATIENCE):
        told = _count(row, snapshot, by_node=by_node)
    if told is None:
        return {}
    return {
        "state": State.TRIED, "dry_run": asdict(told), "dry_run_at": now, "node_taint": by_node,
    }  # fmt: skip


def _count(row: Isolation, snapshot: Snapshot | None, *, by_node: bool) -> DryRun:
    if snapshot is None:
        return DryRun("Berth has not seen the cluster yet.", computed=True)
    rule, _ = read_rule(taint_rule(row.target, Effect.NONE, row.looks))
    found = computed(rule_reach(snapshot, rule))
    if not by_node:
        return found
    pods = [
        pod
        for pod in snapshot.pods.values()
        if pod.node_name == row.node and not pod.finished and pod.meta.namespace != SYSTEM_NAMESPACE
    ]
    return replace(
        found,
        text="This cluster serves no DeviceTaintRule, so the node itself is closed: to every Pod, "
        "also to those that need no device. Counted by Berth from what it sees of the cluster.",
        pods=len(pods),
        namespaces=len({pod.meta.namespace for pod in pods}),
    )


def _apply(row: Isolation, gateway: Gateway, now: datetime) -> Obj:
    """Closes the place, unless too much of its pool would be closed then."""
    seen = fresh()
    share = IsolationPolicy.current().share / 100
    if seen is None:
        why = "Berth has not seen the cluster yet, so it cannot say how much would be left."
        return {"wish": Wish.NONE, "code": SHARE, "answer": why}
    found = room_of(row, seen.now, share)
    if not found.allowed:
        return {"wish": Wish.NONE, "code": SHARE, "answer": found.sentence}
    _close(row, gateway)
    return {
        "state": State.APPLIED, "wish": Wish.NONE, "applied_at": now, "applied_by": row.wished_by,
        "code": "", "answer": found.sentence,
    }  # fmt: skip


def _close(row: Isolation, gateway: Gateway) -> None:
    """The taint stands, read back; where it is there already nothing is written."""
    if row.node_taint:
        _taint(row, gateway, closed=True)
        return
    ref = Ref("DeviceTaintRule", row.target.rule_name)
    wanted = taint_rule(row.target, Effect.NO_SCHEDULE, row.looks)
    found = gateway.get(ref)
    if found is None or not _stands(found, wanted):
        found = gateway.apply(wanted, manager=Manager.ISOLATION, force=True)
    if not _stands(found, wanted):
        raise Conflict("The taint rule does not say what was written; somebody changes it.")


def _stands(found: Obj, wanted: Obj) -> bool:
    spec, ours = found["spec"], wanted["spec"]
    taint = {key: spec["taint"].get(key) for key in ours["taint"]}
    return taint == ours["taint"] and spec.get("deviceSelector") == ours["deviceSelector"]


def _open(row: Isolation, gateway: Gateway, node: Obj | None) -> None:
    """Takes away whatever stands of it: trial, rule, taint."""
    _tidy(row, gateway)
    if node is not None:
        _taint(row, gateway, closed=False)
    remove_rule(gateway, row.target.rule_name)


def _taint(row: Isolation, gateway: Gateway, *, closed: bool) -> None:
    node = gateway.get(Ref("Node", row.node))
    if node is None or (row.node_uid and node["metadata"]["uid"] != row.node_uid):
        return
    before = node["spec"].get("taints") or []
    after = node_taints(before, row.public_id, closed=closed)
    made = set_taints(gateway, node, after)
    if closed and not any(
        one.get("key") == ISOLATED_TAINT for one in made["spec"].get("taints") or []
    ):
        raise Conflict("The node's taint is gone again; somebody changes it.")


def _probe(row: Isolation, gateway: Gateway, node: Obj | None, now: datetime) -> Obj:
    """A trial Pod with a claim that tolerates the isolation: made, watched, judged, removed."""
    if not row.canary:
        # Its name is stored before it is made, so that whoever dies in between leaves nothing over.
        name = re.sub(r"[^a-z0-9-]", "-", row.node)[:30].strip("-")
        number = row.canaries + 1
        return {
            "canary": f"trial-{name}-{row.public_id[:6]}-{number}",
            "canary_at": now,
            "canaries": number,
        }
    pod, claim = _trial(row, gateway)
    status = read_pod_status(pod)
    if status.containers and all(each.running for each in status.containers):
        held = read_claim(claim)[0].allocation
        devices = [result.key for result in held.results] if held else []
        _tidy(row, gateway)
        if devices and all(row.target.covers(key) for key in devices):
            _open(row, gateway, node)
            return {
                "state": State.ENDED, "wish": Wish.NONE, "ended_at": now, "end": End.PROBED,
                "ended_by": row.wished_by, "end_why": "A trial Pod ran with its devices.",
                "canary": "", "trial": "It ran.", "trial_at": now,
            }  # fmt: skip
        names = ", ".join(name for _, _, name in devices) or "no device"
        return _tried(f"It ran with {names}, which says nothing of {row.place}.", now)
    if now - (row.canary_at or now) <= TRIAL_PATIENCE:
        return {}
    said = status.conditions.get("PodScheduled")
    why = said.message if said is not None and not said.true else "its devices were not got ready"
    _tidy(row, gateway)
    return _tried(f"It did not run within {TRIAL_PATIENCE.seconds // 60} minutes: {why}"[:240], now)


def _tried(words: str, now: datetime) -> Obj:
    return {"wish": Wish.NONE, "canary": "", "trial": words, "trial_at": now}


def _trial(row: Isolation, gateway: Gateway) -> tuple[Obj, Obj]:
    """The trial's Pod and claim as they are, made where they are not."""
    claim = gateway.get(Ref("ResourceClaim", row.canary, SYSTEM_NAMESPACE))
    if claim is None:
        claim = gateway.create(canary_claim(row.canary, row.target, row.device_class))
    pod = gateway.get(Ref("Pod", row.canary, SYSTEM_NAMESPACE))
    if pod is None:
        made = canary_pod(row.canary, row.target, row.node, settings.CANARY_IMAGE)
        pod = gateway.create(made)
    return pod, claim


def _tidy(row: Isolation, gateway: Gateway) -> None:
    """The trial's Pod goes before its claim, which it would keep."""
    if row.canary:
        gateway.delete(Ref("Pod", row.canary, SYSTEM_NAMESPACE), grace_seconds=1)
        gateway.delete(Ref("ResourceClaim", row.canary, SYSTEM_NAMESPACE))


def _record(
    row: Isolation, holder: str, wished: datetime | None, changed: Obj, now: datetime
) -> None:
    """Stores what was done, unless this turn lost its lease or somebody wished anew meanwhile."""
    if not changed:
        return
    if changed.get("state", row.state) != row.state:
        changed["since"] = now
    with transaction.atomic():
        mine = Isolation.objects.filter(pk=row.pk, lease=holder, wished_at=wished)
        if not mine.update(**changed):
            return
        for name, value in changed.items():
            setattr(row, name, value)
        match changed.get("state"):
            case State.APPLIED:
                _isolated(row, now)
            case State.ENDED:
                ended_alerts(row, now)
                write("isolation.ended", row, now, end=row.end, why=row.end_why)
            case _ if changed.get("code") == SHARE:
                write("isolation.refused", row, now, why=row.answer)
    topics = [TOPIC, f"isolation-{row.public_id}"]
    news.publish(topics, tenant=news.PLATFORM)


def _isolated(row: Isolation, now: datetime) -> None:
    over(PROPOSED, subject(row), now=now)
    raise_alert(
        About(
            code=ISOLATED,
            subject=subject(row),
            title=f"{row.place} is closed to new work"[:200],
            severity=Severity.WARNING,
            failure_class=CODES[ISOLATED].class_.value,
            words=CODES[ISOLATED].next_step,
            path=reverse("isolation", args=[row.public_id]),
            evidence=(("Driver", row.driver), ("Why", row.wished_why or row.why)),
        ),
        now=now,
    )
    by = "node taint" if row.node_taint else "device taint rule"
    policy = row.applied_by is None
    write("isolation.closed", row, now, why=row.wished_why, by=by, policy=policy)
