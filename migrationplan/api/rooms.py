"""Operations on making room: the ways for a request that waits, taking one, and how it stands."""

from __future__ import annotations

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.forecasts.warm import warm
from devices.models import Claim
from migrationplan.makingroom.choosing import Choice
from migrationplan.makingroom.rooms import NoRoom, find, latency, propose, rivals
from migrationplan.models import MakeRoom, RoomPod
from portal.api.bodies import Body
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.api.base import KEY, PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE
NO_PREEMPTION = (
    "Kubernetes does not preempt for devices and reserves nothing: the scheduler gives free devices"
    " to whoever it looks at first."
)


class EndingOut(serializers.Serializer):
    """A Pod that would end."""

    pod = serializers.CharField()
    tenant = serializers.CharField(allow_blank=True)
    priority = serializers.IntegerField()
    grace_seconds = serializers.FloatField()


class WayOut(serializers.Serializer):
    """One way; `choice` names it when it is taken."""

    choice = serializers.CharField()
    node = serializers.CharField()
    ends = EndingOut(many=True)
    frees = serializers.ListField(child=serializers.CharField())
    takes_seconds = serializers.FloatField()
    needs_approval = serializers.BooleanField()


class WaysOut(serializers.Serializer):
    """The ways for one request, the cheapest first; `why_not` says why there is none."""

    ask = serializers.CharField()
    priority = serializers.IntegerField(allow_null=True)
    ways = WayOut(many=True)
    why_not = serializers.CharField(allow_blank=True)
    measured_count = serializers.IntegerField()
    measured_half_seconds = serializers.FloatField(allow_null=True)
    measured_most_seconds = serializers.FloatField(allow_null=True)
    rivals = serializers.ListField(child=serializers.CharField())
    no_preemption = serializers.CharField()


class RoomPodOut(serializers.ModelSerializer[RoomPod]):
    """A Pod that ends for it."""

    class Meta:
        model = RoomPod
        fields: ClassVar = [
            "namespace", "name", "uid", "tenant", "priority", "evicted_at", "gone_at", "free_at",
            "refused",
        ]  # fmt: skip
        read_only_fields = fields


class RoomOut(serializers.ModelSerializer[MakeRoom]):
    """Room that is made, or was."""

    id = serializers.CharField(source="public_id")
    ask = serializers.SlugRelatedField[Any](source="claim", slug_field="public_id", read_only=True)
    pods = RoomPodOut(many=True, read_only=True)

    class Meta:
        model = MakeRoom
        fields: ClassVar = [
            "id", "ask", "priority", "node", "devices", "reason", "asked_by", "asked_at",
            "approval", "leave", "state", "since", "code", "why", "ended_at", "pods",
        ]  # fmt: skip
        read_only_fields = fields


class RoomIn(Body):
    """Which way for which request, and why it cannot wait."""

    ask = serializers.CharField(max_length=12)
    choice = serializers.CharField(max_length=4000)
    reason = serializers.CharField(max_length=240)


class RoomView(PlatformView):
    """What operations on making room share."""

    noun = "rooms"


class Rooms(RoomView):
    """All of them."""

    @extend_schema(
        operation_id="list_rooms",
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
        responses=RoomOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        rows = MakeRoom.objects.select_related("claim").prefetch_related("pods")
        return self.page(rows, RoomOut)

    @extend_schema(
        operation_id="make_room", request=RoomIn, parameters=[KEY], responses={201: RoomOut}
    )
    def post(self, request: Request) -> Response:
        """NO_ROOM says why it cannot be made, or not in this way any more."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.MAKE_ROOM)
        asked = RoomIn(data=request.data)
        asked.is_valid(raise_exception=True)
        data = asked.validated_data
        claim = get_object_or_404(Claim.objects.whole(), public_id=data["ask"])
        seen, now = warm(), timezone.now()

        def act() -> Response:
            if seen is None:
                raise NoRoom("The cluster has not been seen yet.")
            made = propose(
                claim, data["choice"], seen, reason=data["reason"], access=access,
                request_id=request_id_of(request), now=now,
            )  # fmt: skip
            return Response(RoomOut(made).data, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class OneRoom(RoomView):
    """One of them."""

    @extend_schema(operation_id="get_room", responses=RoomOut)
    def get(self, request: Request, public_id: str) -> Response:
        """With the Pods that end."""
        self.platform().require(PlatformAct.SEE)
        rows = MakeRoom.objects.select_related("claim").prefetch_related("pods")
        return Response(RoomOut(get_object_or_404(rows, public_id=public_id)).data)


class Ways(RoomView):
    """The ways for one request."""

    @extend_schema(operation_id="list_ways_to_make_room", responses=WaysOut)
    def get(self, request: Request, public_id: str) -> Response:
        """By the priority policy of its tenant; from the mirror."""
        self.platform().require(PlatformAct.SEE)
        claim = get_object_or_404(Claim.objects.whole(), public_id=public_id)
        seen, now = warm(), timezone.now()
        found = find(claim, seen, now) if seen else None
        measured = latency(claim.classes, now)
        told = {
            "ask": claim.public_id,
            "priority": found.priority if found else None,
            "ways": [_way(one) for one in found.choices] if found else [],
            "why_not": found.why_not if found else "The cluster has not been seen yet.",
            "measured_count": measured.count,
            "measured_half_seconds": measured.half.total_seconds() if measured.half else None,
            "measured_most_seconds": measured.most.total_seconds() if measured.most else None,
            "rivals": [f"{one.name} of {one.tenant}" for one in rivals(claim)],
            "no_preemption": NO_PREEMPTION,
        }
        return Response(WaysOut(told).data)


def _way(choice: Choice) -> dict[str, Any]:
    return {
        "choice": choice.number,
        "node": choice.room.node,
        "ends": [
            {
                "pod": str(one.pod),
                "tenant": one.tenant,
                "priority": one.pod.priority,
                "grace_seconds": one.grace.total_seconds(),
            }
            for one in choice.endings
        ],
        "frees": ["/".join(device) for device in choice.room.devices],
        "takes_seconds": choice.room.takes.total_seconds(),
        "needs_approval": not choice.own,
    }
