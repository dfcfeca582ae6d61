"""Operations on strategies and on the freeze calendar."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from migrationplan.api.plan_shapes import (
    CalendarIn,
    CalendarOut,
    ChangedStrategyIn,
    NewStrategyIn,
    StrategyOut,
)
from migrationplan.models import CalendarFreeze, Strategy
from migrationplan.plans import calendar, strategies
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.api.base import KEY, PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE
PAGED = [OpenApiParameter("cursor", str), OpenApiParameter("limit", int)]


class StrategyView(PlatformView):
    """What operations on strategies and the calendar share."""

    noun = "plans"

    def by(self, right: PlatformAct) -> dict[str, Any]:
        access = self.platform(scope=OPERATE)
        access.require(right)
        return {
            "access": access,
            "request_id": request_id_of(self.request),
            "now": timezone.now(),
        }


class Strategies(StrategyView):
    """All strategies."""

    @extend_schema(
        operation_id="list_strategies", parameters=PAGED, responses=StrategyOut(many=True)
    )
    def get(self, request: Request) -> Response:
        """Page by page."""
        self.platform().require(PlatformAct.SEE)
        return self.page(Strategy.objects.all(), StrategyOut)

    @extend_schema(
        operation_id="define_strategy",
        request=NewStrategyIn,
        parameters=[KEY],
        responses={201: StrategyOut},
    )
    def post(self, request: Request) -> Response:
        """For plans to be made of."""
        by = self.by(PlatformAct.CONVERT)
        asked = NewStrategyIn(data=request.data)
        asked.is_valid(raise_exception=True)

        def act() -> Response:
            made = strategies.define(asked.validated_data["slug"], **asked.fields_of(), **by)
            return Response(StrategyOut(made).data, status=201)

        return once(request, caller=self.caller(), now=by["now"], act=act)


class OneStrategy(StrategyView):
    """One strategy."""

    @extend_schema(operation_id="get_strategy", responses=StrategyOut)
    def get(self, request: Request, slug: str) -> Response:
        """With its waves."""
        self.platform().require(PlatformAct.SEE)
        return Response(StrategyOut(get_object_or_404(Strategy, slug=slug)).data)

    @extend_schema(operation_id="change_strategy", request=ChangedStrategyIn, responses=StrategyOut)
    def put(self, request: Request, slug: str) -> Response:
        """Plans that were made of it stay as they are; 412 where `revision` is older."""
        by = self.by(PlatformAct.CONVERT)
        found = get_object_or_404(Strategy, slug=slug)
        asked = ChangedStrategyIn(data=request.data)
        asked.is_valid(raise_exception=True)
        revision = asked.validated_data["revision"]
        changed = strategies.change(found, **asked.fields_of(), revision=revision, **by)
        return Response(StrategyOut(changed).data)

    @extend_schema(operation_id="remove_strategy", responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Plans keep their waves."""
        by = self.by(PlatformAct.CONVERT)
        strategies.remove(get_object_or_404(Strategy, slug=slug), **by)
        return Response(status=204)


class Calendar(StrategyView):
    """The freeze calendar."""

    @extend_schema(
        operation_id="list_freeze_calendar", parameters=PAGED, responses=CalendarOut(many=True)
    )
    def get(self, request: Request) -> Response:
        """Every entry, those that were removed too."""
        self.platform().require(PlatformAct.SEE)
        return self.page(CalendarFreeze.objects.all(), CalendarOut)

    @extend_schema(
        operation_id="enter_freeze_calendar",
        request=CalendarIn,
        parameters=[KEY],
        responses={201: CalendarOut},
    )
    def post(self, request: Request) -> Response:
        """No node starts then, whatever a plan says."""
        by = self.by(PlatformAct.FREEZE)
        asked = CalendarIn(data=request.data)
        asked.is_valid(raise_exception=True)

        def act() -> Response:
            made = calendar.enter(**asked.validated_data, **by)
            return Response(CalendarOut(made).data, status=201)

        return once(request, caller=self.caller(), now=by["now"], act=act)


class OneEntry(StrategyView):
    """One entry of the freeze calendar."""

    @extend_schema(operation_id="remove_from_freeze_calendar", responses={200: CalendarOut})
    def delete(self, request: Request, public_id: str) -> Response:
        """It counts no more; twice is fine."""
        by = self.by(PlatformAct.FREEZE)
        found = get_object_or_404(CalendarFreeze, public_id=public_id)
        return Response(CalendarOut(calendar.remove(found, **by)).data)
