"""Operations on inventories and drift: read, record, bring a file, and how each pool stands."""

from __future__ import annotations

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.dra.codes import CODES
from devices.fleet.driftbook import DriftNow, Drifts, drift_now
from devices.fleet.inventory import bring, record_now
from devices.forecasts.warm import warm
from devices.models import DriftLine, Inventory, InventoryLine, NodePool
from portal.api.bodies import Body
from portal.errors import Invalid
from portal.request_ids import request_id_of
from tenants.api.base import PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE


VERDICTS = [(one.value, one.value) for one in Drifts]


class InventoryLineOut(serializers.ModelSerializer[InventoryLine]):
    """So many devices of one model on one node."""

    class Meta:
        model = InventoryLine
        fields: ClassVar = ["node", "driver", "model", "count"]
        read_only_fields = fields


class InventoryOut(serializers.ModelSerializer[Inventory]):
    """One version of a node pool's inventory; `left_out` are nodes that it says nothing of."""

    class Meta:
        model = Inventory
        fields: ClassVar = [
            "number", "state", "source", "note", "left_out", "made_at", "approval", "decided_at",
        ]  # fmt: skip
        read_only_fields = fields


class InventoryIn(Body):
    """What this version is; without `file` it is recorded from what the cluster shows now."""

    note = serializers.CharField(max_length=240)
    file = serializers.CharField(
        required=False, max_length=2 * 1024 * 1024, trim_whitespace=False,
        help_text="Comma-separated values with the columns node, driver, model, count.",
    )  # fmt: skip


class DriftOut(serializers.ModelSerializer[DriftLine]):
    """A finding; it counts from `believed_at` on. `words` and `next_step` are those of its code."""

    id = serializers.CharField(source="public_id")
    node_pool = serializers.SerializerMethodField()
    words = serializers.SerializerMethodField()
    next_step = serializers.SerializerMethodField()

    @extend_schema_field(serializers.CharField(allow_null=True))
    def get_node_pool(self, row: DriftLine) -> str | None:
        return row.pool.slug if row.pool is not None else None

    def get_words(self, row: DriftLine) -> str:
        return CODES[row.code].words

    def get_next_step(self, row: DriftLine) -> str:
        return CODES[row.code].next_step

    class Meta:
        model = DriftLine
        fields: ClassVar = [
            "id", "node_pool", "code", "words", "next_step", "node", "driver", "why", "expected",
            "published", "claims", "first_seen_at", "seen_at", "believed_at", "gone_at",
        ]  # fmt: skip
        read_only_fields = fields


class DriftNowOut(serializers.Serializer):
    """Whether a node pool is as recorded. `unknown` is neither drift nor peace."""

    verdict = serializers.ChoiceField(choices=VERDICTS)
    why = serializers.CharField()
    inventory = serializers.IntegerField(allow_null=True)
    nodes = serializers.ListField(child=serializers.CharField())
    unrecorded = serializers.ListField(child=serializers.CharField())
    findings = DriftOut(many=True)


def _now_out(found: DriftNow) -> dict[str, Any]:
    return DriftNowOut(
        {
            "verdict": found.verdict.value,
            "why": found.why,
            "inventory": found.inventory.number if found.inventory else None,
            "nodes": found.nodes,
            "unrecorded": found.unrecorded,
            "findings": [*found.counts, *found.watched],
        }
    ).data


class DriftFindings(PlatformView):
    """Findings of all node pools, and of nodes in none."""

    noun = "drift"

    @extend_schema(
        operation_id="list_drift",
        parameters=[
            OpenApiParameter("state", str, enum=["open", "over"]),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=DriftOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """The oldest first."""
        self.platform().require(PlatformAct.SEE)
        state = request.query_params.get("state")
        if state not in (None, "open", "over"):
            raise Invalid("No such state.", fields={"state": "One of open, over."})
        rows = DriftLine.objects.select_related("pool")
        if state is not None:
            rows = rows.filter(gone_at__isnull=state == "open")
        return self.page(rows, DriftOut)


class PoolDrift(PlatformView):
    """One node pool against its inventory."""

    noun = "drift"

    @extend_schema(operation_id="get_drift_of_node_pool", responses=DriftNowOut)
    def get(self, request: Request, slug: str) -> Response:
        """As waves read it."""
        self.platform().require(PlatformAct.SEE)
        pool = get_object_or_404(NodePool, slug=slug)
        return Response(_now_out(drift_now(pool, warm(), timezone.now())))


class Inventories(PlatformView):
    """Versions of what a node pool's nodes should have."""

    noun = "inventories"

    @extend_schema(
        operation_id="list_inventories",
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
        responses=InventoryOut(many=True),
    )
    def get(self, request: Request, slug: str) -> Response:
        """The newest first."""
        self.platform().require(PlatformAct.SEE)
        return self.page(get_object_or_404(NodePool, slug=slug).inventories.all(), InventoryOut)

    @extend_schema(
        operation_id="propose_inventory", request=InventoryIn, responses={201: InventoryOut}
    )
    def post(self, request: Request, slug: str) -> Response:
        """Puts a version to review; it is in force once an approver said yes."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.RUN_POOLS)
        pool = get_object_or_404(NodePool, slug=slug)
        asked = InventoryIn(data=request.data)
        asked.is_valid(raise_exception=True)
        seen = warm()
        by: dict[str, Any] = {
            "access": access,
            "snapshot": seen.now if seen else None,
            "note": asked.validated_data["note"],
            "request_id": request_id_of(request),
            "now": timezone.now(),
        }
        text = asked.validated_data.get("file")
        made = record_now(pool, **by) if text is None else bring(pool, text, **by)
        return Response(InventoryOut(made).data, status=201)


class InventoryLines(PlatformView):
    """The lines of one version."""

    noun = "inventories"

    @extend_schema(
        operation_id="list_inventory_lines",
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
        responses=InventoryLineOut(many=True),
    )
    def get(self, request: Request, slug: str, number: int) -> Response:
        """By node."""
        self.platform().require(PlatformAct.SEE)
        version = get_object_or_404(Inventory, pool__slug=slug, number=number)
        return self.page(version.lines.all(), InventoryLineOut)
