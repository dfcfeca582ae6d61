"""One turn of making room: what was chosen is looked at live once more, then Pods are evicted.

By the eviction API only, so disruption budgets count. A Pod that is not what it was when it was
chosen is never ended.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.urls import reverse

from devices.cluster.gateway import BudgetSpent, Forbidden, Gateway, Ref
from devices.dra.lifecycle import State as AskState
from devices.dra.podends import retryable
from devices.dra.pods import read_pod
from devices.dra.wording import many
from devices.forecasts.warm import fresh
from migrationplan.makingroom.rooms import TURN, tell
from migrationplan.makingroom.words import ENDED, State
from migrationplan.models import MakeRoom, RoomPod
from portal.alerts.raising import About, raise_alert
from portal.alerts.rules import Severity
from portal.approvals.models import Approval
from portal.approvals.rules import State as ApprovalState
from portal.audit.record import record
from portal.outbox import lines as outbox

FORBIDDEN: Final = "EVICTION_FORBIDDEN"
BUDGET: Final = "DISRUPTION_BUDGET"
CHANGED: Final = "ROOM_CHANGED"
LATE: Final = "ROOM_TIMED_OUT"
NOT_APPROVED: Final = "ROOM_NOT_APPROVED"
#: How long budgets are waited for, and beyond the Pods' own grace until their devices are free.
PATIENCE: Final = timedelta(minutes=15)
RECHECK: Final = timedelta(seconds=3)
ASK_AGAIN: Final = timedelta(minutes=1)
SWEEP_BATCH: Final = 200


def turn(public_id: str, *, gateway: Gateway, now: datetime) -> None:
    """Takes a room one step further. Raises `ClusterError` where asking again can help."""
    room = MakeRoom.objects.select_related("claim__tenant").get(public_id=public_id)
    through = outbox.newest(TURN, public_id)
    if room.ended:
        return outbox.settle(TURN, public_id, through=through)
    holder = secrets.token_hex(8)
    if not room.take_lease(holder, now):
        return None
    try:
        room.refresh_from_db()
        if room.state == State.ASKED:
            _asked(room, now)
        if room.state == State.EVICTING:
            _evict(room, gateway, now)
    finally:
        room.drop_lease(holder, looked_at=now)
    return outbox.settle(TURN, public_id, through=through)


def due(now: datetime) -> Sequence[str]:
    """Rooms whose time has come; nobody is told of a denial, so those that wait are looked at."""
    rows = MakeRoom.objects.filter(ended_at=None, wake_at__lte=now).order_by("wake_at")
    return list(rows.values_list("public_id", flat=True)[:SWEEP_BATCH])


def _asked(room: MakeRoom, now: datetime) -> None:
    approval = Approval.objects.filter(pk=room.approval or 0).first()
    if approval is None or approval.state == ApprovalState.OPEN:
        MakeRoom.objects.filter(pk=room.pk).update(wake_at=now + ASK_AGAIN)
        return
    if approval.state == ApprovalState.APPROVED:
        _to(room, State.EVICTING, f"approved ({approval.number})", now)
    else:
        _to(room, State.REFUSED, f"{approval.number} is {approval.state}", now, code=NOT_APPROVED)


def _evict(room: MakeRoom, gateway: Gateway, now: datetime) -> None:
    pods = list(room.pods.all())
    if room.claim.state != AskState.PENDING and not any(one.evicted_at for one in pods):
        return _to(room, State.REFUSED, "the request does not wait any more", now, code=CHANGED)
    for one in pods:
        if one.gone_at is not None:
            continue
        found = _live(one, gateway)
        if found is None:
            _seen(one, gone_at=now, evicted_at=one.evicted_at)
            continue
        if why := _another(found, room):
            return _to(room, State.REFUSED, f"{one} {why}", now, code=CHANGED)
        if one.evicted_at is not None:
            continue
        try:
            gateway.evict(Ref("Pod", one.name, one.namespace), uid=one.uid)
        except BudgetSpent as spent:
            _seen(one, refused=(spent.budget or spent.message)[:400])
            continue
        except Forbidden as error:
            words = f"Berth's worker may not evict Pods: {error.message}"
            return _to(room, State.FAILED, words, now, code=FORBIDDEN)
        _seen(one, evicted_at=now, refused="")
    return _judge(room, now)


def _judge(room: MakeRoom, now: datetime) -> None:
    """Done once all are gone and nothing is held; late where that does not come."""
    pods = list(room.pods.all())
    held = _held(room)
    for one in pods:
        if one.gone_at is not None and one.free_at is None and held is False:
            _seen(one, free_at=now)
    if all(one.gone_at for one in pods) and held is False:
        freed = many(len(room.devices), "device is", "devices are")
        words = f"{freed} free on {room.node}; the scheduler gives them out"
        return _to(room, State.DONE, words, now)
    refused = [one for one in pods if one.refused and one.gone_at is None]
    why = f"{many(sum(1 for one in pods if not one.gone_at), 'Pod is', 'Pods are')} to end"
    if refused:
        why = f"a disruption budget lets {refused[0]} stay for now: {refused[0].refused}"
    elif all(one.gone_at for one in pods):
        why = "the Pods are gone; their devices are being let go"
    if now - room.since > PATIENCE + room.takes:
        code = BUDGET if refused else LATE
        return _to(room, State.FAILED, f"given up: {why}", now, code=code)
    changed = MakeRoom.objects.filter(pk=room.pk, ended_at=None)
    changed.update(why=why[:500], code=BUDGET if refused else "", wake_at=now + RECHECK)
    if why != room.why:
        tell(room)
    return None


def _held(room: MakeRoom) -> bool | None:
    """Whether the claims that were to go free hold something; None where nobody has looked."""
    seen = fresh()
    if seen is None:
        return None
    for name in room.holders:
        namespace, _, claim = name.partition("/")
        found = seen.now.claims.get((namespace, claim))
        if found is not None and found.allocation is not None:
            return True
    return False


def _live(one: RoomPod, gateway: Gateway) -> dict[str, Any] | None:
    """The Pod itself; None where it is gone, or another one has its name."""
    fields = f"metadata.name={one.name}"
    for found in gateway.list("Pod", namespace=one.namespace, fields=fields).items:
        if found["metadata"]["uid"] == one.uid:
            return found
    return None


def _another(found: dict[str, Any], room: MakeRoom) -> str:
    """Why a Pod must not be ended after all, as what is said of it; empty where it may."""
    pod = read_pod(found)
    if pod.meta.deleted is not None:
        return ""
    if not retryable(pod):
        return "is not marked as retryable any more"
    if pod.priority >= room.priority:
        return "is as important as what waits"
    return ""


def _seen(one: RoomPod, **changed: Any) -> None:
    for name, value in changed.items():
        setattr(one, name, value)
    RoomPod.objects.filter(pk=one.pk).update(**changed)


def _to(room: MakeRoom, state: State, why: str, now: datetime, *, code: str = "") -> None:
    """Moves on, once; endings are audited, failures ring."""
    ended = state in ENDED
    with transaction.atomic():
        rows = MakeRoom.objects.filter(pk=room.pk, state=room.state, ended_at=None)
        if not rows.update(
            state=state, since=now, why=why[:500], code=code,
            wake_at=None if ended else now, ended_at=now if ended else None,
        ):  # fmt: skip
            return
        room.state, room.since, room.why = state, now, why
        if state is State.FAILED:
            _ring(room, why, code, now)
        record(
            action=f"room.{state.value}",
            subject=f"room {room.public_id}",
            request_id=room.request_id,
            at=now,
            tenant=room.claim.tenant.slug,
            facts={"why": why, "code": code, "pods": [str(one) for one in room.pods.all()]},
        )
        tell(room)


def _ring(room: MakeRoom, why: str, code: str, now: datetime) -> None:
    raise_alert(
        About(
            code=code,
            subject=f"room {room.public_id}",
            title=f"No room was made for {room.claim.name} on {room.node}",
            severity=Severity.WARNING,
            failure_class="not retryable",
            words=f"{why}.",
            path=reverse("room", args=[room.public_id]),
            evidence=(("Ask", room.claim.name), ("Node", room.node)),
        ),
        now=now,
        request_id=room.request_id,
    )
