"""Operations on moves: list, begin, read with their lane, let go on, turn back."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.fleet.nodepools import standings
from devices.forecasts.warm import warm
from devices.models import NodePool
from migrationplan.models import Move, MoveEvent
from migrationplan.moving.moves import begin, look_again, turn_back
from migrationplan.steps import Direction
from portal.api.bodies import Body
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.api.base import KEY, PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE


class MoveEventOut(serializers.ModelSerializer[MoveEvent]):
    """One thing that happened to a move."""

    class Meta:
        model = MoveEvent
        fields: ClassVar = ["at", "step", "direction", "code", "text", "person"]
        read_only_fields = fields


class MoveOut(serializers.ModelSerializer[Move]):
    """A node on its way. `called` is the code for which a person was called, or empty."""

    id = serializers.CharField(source="public_id")
    pool = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)

    class Meta:
        model = Move
        fields: ClassVar = [
            "id", "pool", "node", "node_uid", "direction", "step", "since", "begun_at",
            "ended_at", "cancelled", "called", "why", "evidence",
        ]  # fmt: skip
        read_only_fields = fields


class MoveWithEventsOut(MoveOut):
    """A move with its history."""

    events = MoveEventOut(many=True, read_only=True)

    class Meta(MoveOut.Meta):
        fields: ClassVar = [*MoveOut.Meta.fields, "events"]
        read_only_fields = fields


class MoveIn(Body):
    """Which node of which pool goes which way."""

    pool = serializers.SlugField()
    node = serializers.CharField(max_length=253)
    direction = serializers.ChoiceField(choices=[one.value for one in Direction])


class MoveView(PlatformView):
    """What operations on moves share."""

    noun = "moves"

    def by(self) -> dict[str, Any]:
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.CONVERT)
        return {
            "access": access,
            "request_id": request_id_of(self.request),
            "now": timezone.now(),
        }


class Moves(MoveView):
    """All moves."""

    @extend_schema(
        operation_id="list_moves",
        parameters=[
            OpenApiParameter("open", bool, description="Only those under way."),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=MoveOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        rows = Move.objects.select_related("pool")
        if request.query_params.get("open", "").lower() in {"1", "true", "yes"}:
            rows = rows.filter(ended_at=None)
        return self.page(rows, MoveOut)

    @extend_schema(
        operation_id="begin_move", request=MoveIn, parameters=[KEY], responses={201: MoveOut}
    )
    def post(self, request: Request) -> Response:
        """NOT_MOVABLE says why a node stays."""
        by = self.by()
        asked = MoveIn(data=request.data)
        asked.is_valid(raise_exception=True)
        data = asked.validated_data
        pool = get_object_or_404(NodePool, slug=data["pool"])
        seen = warm()
        nodes = {one.node.name: one for one in standings(pool, seen, by["now"])} if seen else {}
        found = nodes.get(data["node"])
        if found is None:
            raise Http404

        def act() -> Response:
            made = begin(pool, found, Direction(data["direction"]), **by)
            return Response(MoveOut(made).data, status=201)

        return once(request, caller=self.caller(), now=by["now"], act=act)


class OneMove(MoveView):
    """One move."""

    @extend_schema(operation_id="get_move", responses=MoveWithEventsOut)
    def get(self, request: Request, public_id: str) -> Response:
        """With everything that happened to it."""
        self.platform().require(PlatformAct.SEE)
        rows = Move.objects.select_related("pool").prefetch_related("events")
        return Response(MoveWithEventsOut(get_object_or_404(rows, public_id=public_id)).data)


class LookAgain(MoveView):
    """A person has looked."""

    @extend_schema(operation_id="let_move_go_on", request=None, responses=MoveOut)
    def post(self, request: Request, public_id: str) -> Response:
        """The step begins anew, with all its patience."""
        by = self.by()
        return Response(MoveOut(look_again(_found(public_id), **by)).data)


class TurnBack(MoveView):
    """The node goes back."""

    @extend_schema(operation_id="turn_move_back", request=None, responses=MoveOut)
    def post(self, request: Request, public_id: str) -> Response:
        """From wherever it stands; nothing is undone by halves."""
        by = self.by()
        return Response(MoveOut(turn_back(_found(public_id), **by)).data)


def _found(public_id: str) -> Move:
    return get_object_or_404(Move.objects.select_related("pool"), public_id=public_id)
