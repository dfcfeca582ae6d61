"""Operations on drills: list, begin, read with its steps, give up, and when each last passed."""

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
from migrationplan.drills.running import begin, give_up, passed_by_pool
from migrationplan.drills.words import Kind
from migrationplan.models import Drill, DrillMark
from migrationplan.models.drill import RESULTS
from portal.api.bodies import Body
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.api.base import KEY, PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE
KINDS = [one.value for one in Kind]


class DrillMarkOut(serializers.ModelSerializer[DrillMark]):
    """A step that was proved, or what somebody decided."""

    class Meta:
        model = DrillMark
        fields: ClassVar = ["step", "at", "text", "evidence", "person"]
        read_only_fields = fields


class DrillOut(serializers.ModelSerializer[Drill]):
    """A drill. `result` is empty while it is under way; `mark` is what its objects are called."""

    id = serializers.CharField(source="public_id")
    pool = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    mark = serializers.CharField(read_only=True)
    evidence_id = serializers.CharField(source="bundle")
    result = serializers.ChoiceField(choices=RESULTS, allow_blank=True)

    class Meta:
        model = Drill
        fields: ClassVar = [
            "id", "pool", "kind", "node", "node_uid", "begun_by", "begun_at", "since", "why",
            "evidence", "mark", "evidence_id", "ended_at", "result",
        ]  # fmt: skip
        read_only_fields = fields


class DrillWithMarksOut(DrillOut):
    """A drill with its steps."""

    marks = DrillMarkOut(many=True, read_only=True)

    class Meta(DrillOut.Meta):
        fields: ClassVar = [*DrillOut.Meta.fields, "marks"]
        read_only_fields = fields


class DrillIn(Body):
    """What is rehearsed on which node of which pool."""

    pool = serializers.SlugField()
    node = serializers.CharField(max_length=253)
    kind = serializers.ChoiceField(choices=KINDS)


class PassedOut(serializers.Serializer):
    """When a kind of drill last passed on a pool; null: never."""

    pool = serializers.CharField()
    kind = serializers.ChoiceField(choices=KINDS)
    passed_at = serializers.DateTimeField(allow_null=True)


class DrillView(PlatformView):
    """What operations on drills share."""

    noun = "drills"

    def by(self) -> dict[str, Any]:
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.DRILL)
        return {
            "access": access,
            "request_id": request_id_of(self.request),
            "now": timezone.now(),
        }


class Drills(DrillView):
    """All drills."""

    @extend_schema(
        operation_id="list_drills",
        parameters=[
            OpenApiParameter("pool", str, description="Only of this node pool, by slug."),
            OpenApiParameter("kind", str, enum=KINDS),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=DrillOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        rows = Drill.objects.select_related("pool")
        if pool := request.query_params.get("pool"):
            rows = rows.filter(pool__slug=pool)
        if kind := request.query_params.get("kind"):
            rows = rows.filter(kind=kind)
        return self.page(rows, DrillOut)

    @extend_schema(
        operation_id="begin_drill", request=DrillIn, parameters=[KEY], responses={201: DrillOut}
    )
    def post(self, request: Request) -> Response:
        """NOT_DRILLABLE says why it cannot be there."""
        by = self.by()
        asked = DrillIn(data=request.data)
        asked.is_valid(raise_exception=True)
        data = asked.validated_data
        pool, seen = get_object_or_404(NodePool, slug=data["pool"]), warm()
        nodes = standings(pool, seen, by["now"]) if seen else []
        node = next((one for one in nodes if one.node.name == data["node"]), None)
        if node is None or seen is None:
            raise Http404

        def act() -> Response:
            made = begin(pool, Kind(data["kind"]), node, seen, **by)
            return Response(DrillOut(made).data, status=201)

        return once(request, caller=self.caller(), now=by["now"], act=act)


class DrillsPassed(DrillView):
    """When each kind last passed on each pool."""

    @extend_schema(operation_id="list_passed_drills", responses=PassedOut(many=True))
    def get(self, request: Request) -> Response:
        """Every kind of every pool, also those that never passed."""
        self.platform().require(PlatformAct.SEE)
        passed = passed_by_pool()
        rows = [
            {"pool": slug, "kind": kind, "passed_at": passed.get((pk, kind))}
            for pk, slug in NodePool.objects.order_by("slug").values_list("pk", "slug")
            for kind in KINDS
        ]
        return Response(PassedOut(rows, many=True).data)


class OneDrill(DrillView):
    """One drill."""

    @extend_schema(operation_id="get_drill", responses=DrillWithMarksOut)
    def get(self, request: Request, public_id: str) -> Response:
        """With every step that was proved."""
        self.platform().require(PlatformAct.SEE)
        rows = Drill.objects.select_related("pool").prefetch_related("marks")
        return Response(DrillWithMarksOut(get_object_or_404(rows, public_id=public_id)).data)


class GiveUpDrill(DrillView):
    """Nobody goes on with it."""

    @extend_schema(operation_id="give_up_drill", request=None, responses=DrillOut)
    def post(self, request: Request, public_id: str) -> Response:
        """It ends without a result."""
        by = self.by()
        row = get_object_or_404(Drill.objects.select_related("pool"), public_id=public_id)
        return Response(DrillOut(give_up(row, **by)).data)
