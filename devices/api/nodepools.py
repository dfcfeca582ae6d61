"""Operations on node pools: list, define, read with their nodes, change, forget."""

from __future__ import annotations

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.fleet.nodepools import Standing, Wish, change, define, remove, standings
from devices.forecasts.warm import warm
from devices.models import NodePool
from portal.api.bodies import Body
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.access import PlatformAccess
from tenants.api.base import KEY, PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE
PAGED = [OpenApiParameter("cursor", str), OpenApiParameter("limit", int)]


class NodePoolOut(serializers.ModelSerializer[NodePool]):
    """A node pool. `revision` is what a change must name."""

    class Meta:
        model = NodePool
        fields: ClassVar = [
            "slug", "name", "words", "selector", "resource", "driver", "device_class",
            "plugin_label", "driver_label", "plugin_sets", "driver_sets", "devices_per_node",
            "settling", "revision", "made_at",
        ]  # fmt: skip
        read_only_fields = fields


class NodePoolIn(Body):
    """What a node pool is to be; labels are `key=value`, DaemonSets `namespace/name`."""

    name = serializers.CharField(max_length=80)
    words = serializers.CharField(max_length=240, required=False, default="", allow_blank=True)
    selector = serializers.DictField(child=serializers.CharField(allow_blank=True))
    resource = serializers.CharField(max_length=253)
    driver = serializers.CharField(max_length=63)
    device_class = serializers.CharField(max_length=253)
    plugin_label = serializers.CharField(max_length=320)
    driver_label = serializers.CharField(max_length=320)
    plugin_sets = serializers.ListField(child=serializers.CharField(), default=list)
    driver_sets = serializers.ListField(child=serializers.CharField(), default=list)
    devices_per_node = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=0, max_value=10_000
    )
    settling = serializers.DurationField(required=False)

    def wish(self) -> Wish:
        asked = dict(self.validated_data)
        for name in ("plugin_sets", "driver_sets"):
            asked[name] = tuple(asked[name])
        return Wish(**{key: asked[key] for key in asked if key in Wish.__slots__})


class NewNodePoolIn(NodePoolIn):
    """A new one has a name for addresses too."""

    slug = serializers.SlugField(max_length=63)


class ChangedNodePoolIn(NodePoolIn):
    """`revision` is that of the node pool that was looked at."""

    revision = serializers.IntegerField()


class LeaveOut(serializers.Serializer):
    """Whether a conversion could take the node from its owner now."""

    verdict = serializers.CharField()
    why = serializers.CharField()
    evidence = serializers.ListField(child=serializers.CharField())
    code = serializers.CharField(allow_blank=True)


class NodeStandingOut(serializers.Serializer):
    """How one node stands; `leave` is what a conversion away from its owner would wait for."""

    node = serializers.CharField(source="node.name")
    owner = serializers.CharField()
    plugin_switch = serializers.BooleanField()
    driver_switch = serializers.BooleanField()
    switches_agree = serializers.BooleanField()
    leave = serializers.SerializerMethodField()

    @extend_schema_field(LeaveOut(allow_null=True))
    def get_leave(self, one: Standing) -> dict[str, Any] | None:
        if one.leave is None:
            return None
        return {
            "verdict": one.leave.verdict.value,
            "why": one.leave.why,
            "evidence": list(one.leave.evidence),
            "code": one.leave.code.name if one.leave.code else "",
        }


class NodePoolWithNodesOut(NodePoolOut):
    """A node pool with its nodes; none where the cluster has not been seen."""

    nodes = serializers.SerializerMethodField()

    @extend_schema_field(NodeStandingOut(many=True))
    def get_nodes(self, pool: NodePool) -> list[dict[str, Any]]:
        seen = warm()
        rows = standings(pool, seen, timezone.now()) if seen else []
        return list(NodeStandingOut(rows, many=True).data)

    class Meta(NodePoolOut.Meta):
        fields: ClassVar = [*NodePoolOut.Meta.fields, "nodes"]
        read_only_fields = fields


class NodePoolView(PlatformView):
    """What operations on node pools share."""

    noun = "node pools"

    def by(self, access: PlatformAccess) -> dict[str, Any]:
        seen = warm()
        return {
            "access": access,
            "snapshot": seen.now if seen else None,
            "request_id": request_id_of(self.request),
            "now": timezone.now(),
        }


class NodePools(NodePoolView):
    """All node pools."""

    @extend_schema(
        operation_id="list_node_pools", parameters=PAGED, responses=NodePoolOut(many=True)
    )
    def get(self, request: Request) -> Response:
        """By name."""
        self.platform().require(PlatformAct.SEE)
        return self.page(NodePool.objects.all(), NodePoolOut)

    @extend_schema(
        operation_id="define_node_pool",
        request=NewNodePoolIn,
        parameters=[KEY],
        responses={201: NodePoolOut},
    )
    def post(self, request: Request) -> Response:
        """NODE_POOLS_OVERLAP names the nodes that would be in two."""
        by = self.by(self.platform(scope=OPERATE))
        asked = NewNodePoolIn(data=request.data)
        asked.is_valid(raise_exception=True)

        def act() -> Response:
            made = define(asked.validated_data["slug"], asked.wish(), **by)
            return Response(NodePoolOut(made).data, status=201)

        return once(request, caller=self.caller(), now=by["now"], act=act)


class OneNodePool(NodePoolView):
    """One node pool."""

    @extend_schema(operation_id="get_node_pool", responses=NodePoolWithNodesOut)
    def get(self, request: Request, slug: str) -> Response:
        """With how each of its nodes stands."""
        self.platform().require(PlatformAct.SEE)
        return Response(NodePoolWithNodesOut(get_object_or_404(NodePool, slug=slug)).data)

    @extend_schema(
        operation_id="change_node_pool", request=ChangedNodePoolIn, responses=NodePoolOut
    )
    def put(self, request: Request, slug: str) -> Response:
        """412 where `revision` is no longer the newest."""
        by = self.by(self.platform(scope=OPERATE))
        pool = get_object_or_404(NodePool, slug=slug)
        asked = ChangedNodePoolIn(data=request.data)
        asked.is_valid(raise_exception=True)
        revision = asked.validated_data["revision"]
        return Response(NodePoolOut(change(pool, asked.wish(), revision=revision, **by)).data)

    @extend_schema(operation_id="remove_node_pool", responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Its nodes stay as they are."""
        by = self.by(self.platform(scope=OPERATE))
        del by["snapshot"]
        remove(get_object_or_404(NodePool, slug=slug), **by)
        return Response(status=204)
