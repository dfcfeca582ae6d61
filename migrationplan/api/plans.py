"""Operations on plans and their waves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.forecasts.warm import warm
from migrationplan.api.plan_shapes import (
    ChangedWaveIn,
    NodeIn,
    NodeReasonIn,
    PlanIn,
    PlanOut,
    ReasonIn,
    SubmitPlanIn,
    WaveEventOut,
    WaveNodeOut,
    WaveOut,
    wave_wish,
)
from migrationplan.models import Plan, Wave
from migrationplan.plans import leave, making, running
from migrationplan.plans.wishes import PlanWish
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.access import PlatformAccess
from tenants.api.base import KEY, PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE
PAGED = [OpenApiParameter("cursor", str), OpenApiParameter("limit", int)]


class PlanView(PlatformView):
    """What operations on plans share."""

    noun = "plans"

    def by(self, access: PlatformAccess, *, seen: bool = False) -> dict[str, Any]:
        by: dict[str, Any] = {
            "access": access,
            "request_id": request_id_of(self.request),
            "now": timezone.now(),
        }
        if seen:
            picture = warm()
            by["snapshot"] = picture.now if picture else None
        return by

    def wave(self, public_id: str, position: int) -> Wave:
        rows = Wave.objects.select_related("plan")
        return get_object_or_404(rows, plan__public_id=public_id, position=position)

    def convert(self) -> PlatformAccess:
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.CONVERT)
        return access


class Plans(PlanView):
    """All plans."""

    @extend_schema(operation_id="list_plans", parameters=PAGED, responses=PlanOut(many=True))
    def get(self, request: Request) -> Response:
        """Newest first, each with its waves."""
        self.platform().require(PlatformAct.SEE)
        rows = Plan.objects.select_related("strategy").prefetch_related("waves", "pools")
        return self.page(rows, PlanOut)

    @extend_schema(
        operation_id="make_plan", request=PlanIn, parameters=[KEY], responses={201: PlanOut}
    )
    def post(self, request: Request) -> Response:
        """Waves are drafts with their nodes; nothing happens until each is submitted."""
        by = self.by(self.convert(), seen=True)
        asked = PlanIn(data=request.data)
        asked.is_valid(raise_exception=True)
        data = dict(asked.validated_data)
        waves = tuple(wave_wish(one) for one in data.pop("waves"))
        wish = PlanWish(**{**data, "pools": tuple(data["pools"])}, waves=waves)

        def act() -> Response:
            return Response(PlanOut(making.make(wish, **by)).data, status=201)

        return once(request, caller=self.caller(), now=by["now"], act=act)


class OnePlan(PlanView):
    """One plan."""

    @extend_schema(operation_id="get_plan", responses=PlanOut)
    def get(self, request: Request, public_id: str) -> Response:
        """With how each of its waves stands."""
        self.platform().require(PlatformAct.SEE)
        rows = Plan.objects.select_related("strategy").prefetch_related("waves", "pools")
        return Response(PlanOut(get_object_or_404(rows, public_id=public_id)).data)


class OneWave(PlanView):
    """One wave of a plan."""

    @extend_schema(operation_id="get_wave", responses=WaveOut)
    def get(self, request: Request, public_id: str, position: int) -> Response:
        """Where it stands, and the sentence why."""
        self.platform().require(PlatformAct.SEE)
        return Response(WaveOut(self.wave(public_id, position)).data)

    @extend_schema(operation_id="change_wave", request=ChangedWaveIn, responses=WaveOut)
    def put(self, request: Request, public_id: str, position: int) -> Response:
        """Voids the approvals of every open wave of the plan; 412 where `revision` is older."""
        by = self.by(self.convert(), seen=True)
        wave = self.wave(public_id, position)
        asked = ChangedWaveIn(data=request.data)
        asked.is_valid(raise_exception=True)
        revision = asked.validated_data["revision"]
        return Response(WaveOut(making.change(wave, asked.wish(), revision=revision, **by)).data)


class WaveNodes(PlanView):
    """The nodes of a wave."""

    @extend_schema(
        operation_id="list_wave_nodes", parameters=PAGED, responses=WaveNodeOut(many=True)
    )
    def get(self, request: Request, public_id: str, position: int) -> Response:
        """How each of them stands."""
        self.platform().require(PlatformAct.SEE)
        wave = self.wave(public_id, position)
        return self.page(wave.nodes.select_related("pool", "move"), WaveNodeOut)


class WaveEvents(PlanView):
    """The log of a wave."""

    @extend_schema(
        operation_id="list_wave_events", parameters=PAGED, responses=WaveEventOut(many=True)
    )
    def get(self, request: Request, public_id: str, position: int) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        return self.page(self.wave(public_id, position).events.all(), WaveEventOut)


class SubmitWave(PlanView):
    """A wave is put before its approvers."""

    @extend_schema(
        operation_id="submit_wave", request=SubmitPlanIn, parameters=[KEY], responses=WaveOut
    )
    def post(self, request: Request, public_id: str, position: int) -> Response:
        """ALREADY_ASKED where an approval of it is open."""
        by = self.by(self.convert(), seen=True)
        wave = self.wave(public_id, position)
        asked = SubmitPlanIn(data=request.data)
        asked.is_valid(raise_exception=True)

        def act() -> Response:
            return Response(WaveOut(making.submit(wave, **asked.validated_data, **by)).data)

        return once(request, caller=self.caller(), now=by["now"], act=act)


class _Wish(PlanView):
    """A wish about a wave with its reason; the next turn makes it so."""

    verb: ClassVar[Callable[..., Any]]
    shape: ClassVar[type[serializers.Serializer]] = ReasonIn
    right: ClassVar[PlatformAct] = PlatformAct.CONVERT

    def wished(self, request: Request, public_id: str, position: int) -> Response:
        access = self.platform(scope=OPERATE)
        access.require(self.right)
        by = self.by(access)
        wave = self.wave(public_id, position)
        asked = self.shape(data=request.data)
        asked.is_valid(raise_exception=True)

        def act() -> Response:
            type(self).verb(wave, **asked.validated_data, **by)
            wave.refresh_from_db()
            return Response(WaveOut(wave).data)

        return once(request, caller=self.caller(), now=by["now"], act=act)


class PauseWave(_Wish):
    """No new node starts."""

    verb = staticmethod(running.pause)

    @extend_schema(operation_id="pause_wave", request=ReasonIn, parameters=[KEY], responses=WaveOut)
    def post(self, request: Request, public_id: str, position: int) -> Response:
        """Begun nodes finish."""
        return self.wished(request, public_id, position)


class ResumeWave(_Wish):
    """It goes on where it was."""

    verb = staticmethod(running.resume)

    @extend_schema(
        operation_id="resume_wave", request=ReasonIn, parameters=[KEY], responses=WaveOut
    )
    def post(self, request: Request, public_id: str, position: int) -> Response:
        """Gates that are against it now are let pass, and that is kept."""
        return self.wished(request, public_id, position)


class RollBackWave(_Wish):
    """Back to the path that it left."""

    verb = staticmethod(running.roll_back)

    @extend_schema(
        operation_id="roll_back_wave", request=ReasonIn, parameters=[KEY], responses=WaveOut
    )
    def post(self, request: Request, public_id: str, position: int) -> Response:
        """Ends nothing that runs; nodes go back as they empty."""
        return self.wished(request, public_id, position)


class SkipNode(_Wish):
    """A node is left out."""

    verb = staticmethod(running.skip)
    shape = NodeReasonIn

    @extend_schema(
        operation_id="leave_node_out", request=NodeReasonIn, parameters=[KEY], responses=WaveOut
    )
    def post(self, request: Request, public_id: str, position: int) -> Response:
        """The reason stands in the wave's log."""
        return self.wished(request, public_id, position)


class TakeNodeIn(_Wish):
    """A node counts again."""

    verb = staticmethod(running.take_in)
    shape = NodeIn

    @extend_schema(operation_id="take_node_in", request=NodeIn, parameters=[KEY], responses=WaveOut)
    def post(self, request: Request, public_id: str, position: int) -> Response:
        """WAVE_REFUSED where it was not left out."""
        return self.wished(request, public_id, position)


class WithdrawApproval(_Wish):
    """Somebody who approved takes it back. Never by a token, as approving is not."""

    verb = staticmethod(leave.withdraw)
    right = PlatformAct.DECIDE

    @extend_schema(
        operation_id="withdraw_wave_approval", request=ReasonIn, parameters=[KEY], responses=WaveOut
    )
    def post(self, request: Request, public_id: str, position: int) -> Response:
        """A wave under way pauses."""
        return self.wished(request, public_id, position)
