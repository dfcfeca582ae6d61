"""Verbs of operators who make room for a request, and what its page needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import F
from django.urls import reverse

from devices.dra.lifecycle import State as AskState
from devices.dra.pods import Pod
from devices.dra.wording import many
from devices.forecasts.picture import Picture
from devices.forecasts.whatif import wish_of
from devices.models import Claim
from migrationplan.makingroom.choosing import UTILISATION, Choice, Found, choose, percentile
from migrationplan.makingroom.words import State
from migrationplan.models import MakeRoom, RoomPod
from portal import news
from portal.approvals import asks
from portal.approvals.rules import DecidedBy, Effect, Line
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.models import TenantNamespace
from tenants.policy import PlatformAct

TURN: Final = "migrationplan.tasks.turn_room"
TOPIC: Final = "rooms"
KIND: Final = "makeroom"
#: How far back releases are measured, and how many of them.
MEASURED: Final = timedelta(days=90)
MOST_MEASURED: Final = 1000
NAMED: Final = 8


class NoRoom(Refused):
    """Room cannot be made, or not in this way any more; the message says why."""

    code = "NO_ROOM"


@dataclass(frozen=True, slots=True)
class Latency:
    """From an eviction to free devices, as Berth measured it."""

    count: int
    half: timedelta | None
    most: timedelta | None


@dataclass(frozen=True, slots=True)
class Rival:
    """Another request that waits for the same class."""

    name: str
    tenant: str
    since: datetime


def waiting_asks() -> Any:
    """Asks of which Pods wait for devices, oldest first."""
    return Claim.objects.whole().filter(state=AskState.PENDING).order_by("since", "pk")


def find(claim: Claim, picture: Picture, now: datetime) -> Found:
    """What could be proposed for an ask; two queries."""
    tenants = dict(TenantNamespace.objects.values_list("name", "tenant__slug"))
    return choose(
        picture.now,
        [wish_of(claim.wish())],
        waiting_pods(claim, picture),
        policy=claim.tenant.priority,
        tenant=claim.tenant.slug,
        tenants=tenants,
        now=now,
    )


def waiting_pods(claim: Claim, picture: Picture) -> list[Pod]:
    """Pods of an ask that are placed nowhere."""
    pods = picture.now.pods
    found = [pods.get((claim.namespace.name, one["name"])) for one in claim.pods]
    return [pod for pod in found if pod is not None and not pod.node_name and not pod.finished]


def latency(classes: Sequence[str], now: datetime) -> Latency:
    """How long such Pods took to let go, where Berth ended them; one query."""
    rows = RoomPod.objects.filter(
        classes__overlap=list(classes), free_at__gte=now - MEASURED, evicted_at__isnull=False
    )
    took = sorted(
        rows.annotate(took_time=F("free_at") - F("evicted_at"))
        .order_by("-free_at")
        .values_list("took_time", flat=True)[:MOST_MEASURED]
    )
    return Latency(len(took), percentile(took, 0.5), percentile(took, 0.95))


def rivals(claim: Claim) -> list[Rival]:
    """Other asks that wait for one of its classes, those that wait longest first; one query."""
    rows = waiting_asks().filter(classes__overlap=claim.classes).exclude(pk=claim.pk)
    return [Rival(row.name, row.tenant.name, row.since) for row in rows[:NAMED]]


def propose(
    claim: Claim,
    number: str,
    picture: Picture,
    *,
    reason: str,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> MakeRoom:
    """Makes room in the way that `number` names; without an approval only where every Pod that ends
    is the asking tenant's own, whose policy is utilisation.

    Raises `NoRoom` where it is not as it was shown, `Invalid` without a reason.
    """
    access.require(PlatformAct.MAKE_ROOM)
    if not reason.strip():
        raise Invalid("Nothing was asked for.", fields={"reason": "Say why it cannot wait."})
    found = find(claim, picture, now)
    choice = next((one for one in found.choices if one.number == number), None)
    if choice is None:
        raise NoRoom(found.why_not or "It is not as it was shown any more; choose again.")
    try:
        with transaction.atomic():
            return _made(claim, choice, found, reason.strip(), access, request_id, now)
    except IntegrityError as error:
        raise NoRoom("Room is being made for it already.") from error


def _made(
    claim: Claim,
    choice: Choice,
    found: Found,
    reason: str,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> MakeRoom:
    own = choice.own and claim.tenant.priority == UTILISATION
    room = MakeRoom(
        claim=claim,
        priority=found.priority or 0,
        node=choice.room.node,
        devices=["/".join(device) for device in choice.room.devices],
        holders=list(choice.room.claims),
        takes=choice.room.takes,
        reason=reason[:240],
        asked_by=access.user.person,
        asked_at=now,
        request_id=request_id,
        leave="the tenant's own retryable Pods, by its own policy"
        if own
        else "Pods of others: an approver has to say yes",
        state=State.EVICTING if own else State.ASKED,
        since=now,
        wake_at=now,
    )
    room.save()
    RoomPod.objects.bulk_create(
        RoomPod(
            room=room,
            namespace=one.pod.meta.namespace,
            name=one.pod.meta.name,
            uid=one.pod.meta.uid,
            tenant=one.tenant,
            priority=one.pod.priority,
            grace=one.grace,
            classes=claim.classes,
        )
        for one in choice.endings
    )
    if not own:
        approval = _ask(room, claim, choice, access, request_id, now)
        MakeRoom.objects.filter(pk=room.pk).update(approval=approval.pk)
        room.approval = approval.pk
    record(
        action="room.proposed",
        subject=f"room {room.public_id}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=claim.tenant.slug,
        facts={
            "ask": claim.public_id,
            "node": room.node,
            "pods": [str(one.pod) for one in choice.endings],
            "devices": room.devices,
            "needs_approval": not own,
            "reason": reason,
        },
    )
    tell(room, wake=own)
    return room


def _ask(
    room: MakeRoom,
    claim: Claim,
    choice: Choice,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> Any:
    names = [str(one.pod) for one in choice.endings]
    told = latency(claim.classes, now)
    measured = (
        f"half within {told.half.total_seconds():.0f} s, of {told.count} measured"
        if told.half is not None
        else "never measured"
    )
    ends = f"End {many(len(names), 'Pod')} on {room.node}"
    return asks.ask(
        kind=KIND,
        subject=f"room {room.public_id}",
        title=f"{ends} for {claim.tenant.name}: {claim.name}"[:200],
        lines=[
            Line("end", None, ", ".join(names)[:400]),
            Line("for", None, f"{claim.tenant.name}, {claim.name}: {claim.words}"[:400]),
            Line("frees", None, f"{many(len(room.devices), 'device')} on {room.node}"),
        ],
        effects=[
            *(
                Effect(
                    "capacity", str(one.pod), f"priority {one.pod.priority}",
                    f"{one.tenant or 'no tenant'}, may take {one.grace.total_seconds():.0f} s",
                )
                for one in choice.endings[:NAMED]
            ),
            Effect("capacity", "Waits with", f"priority {room.priority}"),
            Effect("capacity", "Let go", f"{room.takes.total_seconds():.0f} s at most", measured),
        ],
        by=DecidedBy(platform=frozenset({"approver"})),
        author=access.user.person,
        tenant=claim.tenant.slug,
        reason=room.reason,
        task=TURN,
        key=room.public_id,
        lasts=timedelta(hours=12),
        request_id=request_id,
        now=now,
        address=reverse("room", args=[room.public_id]),
    )  # fmt: skip


def tell(room: MakeRoom, *, wake: bool = False) -> None:
    """Pages look again, and a turn comes where it can do something."""

    def told() -> None:
        if wake:
            outbox.hint(TURN, room.public_id)
        news.publish([TOPIC, f"room-{room.public_id}"], tenant=news.PLATFORM)

    transaction.on_commit(told, robust=True)
