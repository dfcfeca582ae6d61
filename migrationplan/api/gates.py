"""Operations on gates and readings: define, change, retire, read, look at samples."""

from __future__ import annotations

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.models import NodePool
from migrationplan.gating import asking
from migrationplan.gating.definitions import (
    Wish,
    change,
    define,
    retire,
    take_standard,
)
from migrationplan.measures import Measure
from migrationplan.models import Gate, Reading
from portal.api.bodies import Body
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.api.base import KEY, PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE
PAGED = [OpenApiParameter("cursor", str), OpenApiParameter("limit", int)]


class GateOut(serializers.ModelSerializer[Gate]):
    """A gate. `revision` is what a change must name."""

    class Meta:
        model = Gate
        fields: ClassVar = [
            "slug", "name", "measure", "margin", "tolerance", "slack", "least", "limit",
            "patience", "trial", "url", "query", "revision", "made_at", "retired_at",
        ]  # fmt: skip
        read_only_fields = fields


class NewGateOut(GateOut):
    """A gate that was just defined; `secret` signs what a webhook is asked, and is shown once."""

    class Meta(GateOut.Meta):
        fields: ClassVar = [*GateOut.Meta.fields, "secret"]
        read_only_fields = fields


class GateIn(Body):
    """What a gate is to be. `margin` is a part of 1 (0.1: 10 of 100)."""

    name = serializers.CharField(max_length=80)
    measure = serializers.ChoiceField(choices=[one.value for one in Measure])
    margin = serializers.FloatField(required=False)
    tolerance = serializers.FloatField(required=False)
    slack = serializers.FloatField(required=False)
    least = serializers.IntegerField(required=False, max_value=2000)
    limit = serializers.FloatField(required=False)
    patience = serializers.DurationField(required=False)
    trial = serializers.BooleanField(required=False)
    url = serializers.CharField(required=False, max_length=500, allow_blank=True)
    query = serializers.CharField(required=False, allow_blank=True)

    def wish(self) -> Wish:
        asked = {key: value for key, value in self.validated_data.items() if key in Wish.__slots__}
        return Wish(**{**asked, "measure": Measure(asked["measure"])})


class NewGateIn(GateIn):
    """A new one has a name for plans too."""

    slug = serializers.SlugField(max_length=63)


class ChangedGateIn(GateIn):
    """`revision` is that of the gate that was looked at."""

    revision = serializers.IntegerField()


class ReadingOut(serializers.ModelSerializer[Reading]):
    """What one gate said of moved nodes. `figures` are the numbers of both sides, `digest` is the
    SHA-256 of the samples that were kept.
    """

    id = serializers.CharField(source="public_id")
    pool = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)

    class Meta:
        model = Reading
        fields: ClassVar = [
            "id", "at", "wave", "pool", "direction", "moved", "since", "gate", "name", "measure",
            "settings", "trial", "verdict", "sentence", "figures", "digest",
        ]  # fmt: skip
        read_only_fields = fields


class ReadingWithSamplesOut(ReadingOut):
    """A reading with its samples: of each side [of what, on which node, value]."""

    samples = serializers.JSONField(source="content", read_only=True)

    class Meta(ReadingOut.Meta):
        fields: ClassVar = [*ReadingOut.Meta.fields, "samples"]
        read_only_fields = fields


class GateView(PlatformView):
    """What operations on gates share."""

    noun = "gates"

    def by(self) -> dict[str, Any]:
        return {
            "access": self.platform(scope=OPERATE),
            "request_id": request_id_of(self.request),
            "now": timezone.now(),
        }


class Gates(GateView):
    """All gates."""

    @extend_schema(operation_id="list_gates", parameters=PAGED, responses=GateOut(many=True))
    def get(self, request: Request) -> Response:
        """Retired ones too."""
        self.platform().require(PlatformAct.SEE)
        return self.page(Gate.objects.all(), GateOut)

    @extend_schema(
        operation_id="define_gate",
        request=NewGateIn,
        parameters=[KEY],
        responses={201: NewGateOut},
    )
    def post(self, request: Request) -> Response:
        """The same key is done once; a webhook's secret is in the first answer only."""
        by = self.by()
        by["access"].require(PlatformAct.RUN_POOLS)
        asked = NewGateIn(data=request.data)
        asked.is_valid(raise_exception=True)
        slug, wish = asked.validated_data["slug"], asked.wish()

        def act() -> Response:
            return Response(NewGateOut(define(slug, wish, **by)).data, status=201)

        return once(request, caller=self.caller(), now=by["now"], act=act)


class StandardGates(GateView):
    """The usual set."""

    @extend_schema(operation_id="define_usual_gates", request=None, responses=GateOut(many=True))
    def post(self, request: Request) -> Response:
        """Defines those of the usual set that are not there, and lists them all."""
        take_standard(**self.by())
        return Response(GateOut(Gate.objects.all(), many=True).data)


class OneGate(GateView):
    """One gate."""

    @extend_schema(operation_id="get_gate", responses=GateOut)
    def get(self, request: Request, slug: str) -> Response:
        """What it measures and allows."""
        self.platform().require(PlatformAct.SEE)
        return Response(GateOut(get_object_or_404(Gate, slug=slug)).data)

    @extend_schema(operation_id="change_gate", request=ChangedGateIn, responses=GateOut)
    def put(self, request: Request, slug: str) -> Response:
        """OUTDATED where somebody changed it meanwhile; what it measures stays."""
        by = self.by()
        by["access"].require(PlatformAct.RUN_POOLS)
        row = get_object_or_404(Gate, slug=slug)
        asked = ChangedGateIn(data=request.data)
        asked.is_valid(raise_exception=True)
        found = change(row, asked.wish(), revision=asked.validated_data["revision"], **by)
        return Response(GateOut(found).data)

    @extend_schema(operation_id="retire_gate", responses={200: GateOut})
    def delete(self, request: Request, slug: str) -> Response:
        """It is measured no more; its readings stay."""
        by = self.by()
        by["access"].require(PlatformAct.RUN_POOLS)
        return Response(GateOut(retire(get_object_or_404(Gate, slug=slug), **by)).data)


class Readings(PlatformView):
    """Readings of a node pool's gates."""

    noun = "readings"

    @extend_schema(
        operation_id="list_readings",
        parameters=[
            OpenApiParameter("wave", str, description="Only those of this wave."),
            OpenApiParameter("gate", str, description="Only those of this gate."),
            *PAGED,
        ],
        responses=ReadingOut(many=True),
    )
    def get(self, request: Request, slug: str) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        pool = get_object_or_404(NodePool, slug=slug)
        rows = Reading.objects.filter(pool=pool).select_related("pool").defer("samples")
        for name in ("wave", "gate"):
            if value := request.query_params.get(name):
                rows = rows.filter(**{name: value})
        return self.page(rows, ReadingOut)

    @extend_schema(operation_id="read_gates", request=None, responses={202: None})
    def post(self, request: Request, slug: str) -> Response:
        """Has every gate read now, by a worker; NOTHING_MOVED where no node has moved."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.CONVERT)
        pool = get_object_or_404(NodePool, slug=slug)
        asking.ask(pool, access=access, request_id=request_id_of(request), now=timezone.now())
        return Response(status=202)


class OneReading(PlatformView):
    """One reading."""

    noun = "readings"

    @extend_schema(operation_id="get_reading", responses=ReadingWithSamplesOut)
    def get(self, request: Request, public_id: str) -> Response:
        """With the samples that it stands on."""
        self.platform().require(PlatformAct.SEE)
        rows = Reading.objects.select_related("pool")
        return Response(ReadingWithSamplesOut(get_object_or_404(rows, public_id=public_id)).data)
