"""The report "did it pay?" of a node pool, for programs."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.forecasts.warm import warm
from devices.models import NodePool
from migrationplan.payoff import Comparison, Finding, Side, Similar
from migrationplan.payoffs import DAYS, Payoff, payoff_of
from portal.errors import Invalid
from tenants.api.base import PlatformView
from tenants.policy import PlatformAct


class SideOut(serializers.Serializer[Any]):
    """One path's work in an aspect: shares from 0 to 1, times in seconds; null: too few."""

    samples = serializers.IntegerField()
    bad = serializers.IntegerField(allow_null=True)
    bad_range = serializers.ListField(child=serializers.FloatField(), allow_null=True)
    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)
    p95_range = serializers.ListField(child=serializers.FloatField(), allow_null=True)


class AgainstOut(serializers.Serializer[Any]):
    """A path beside the plugin: how far apart, and between which bounds that is certain."""

    finding = serializers.ChoiceField(choices=[one.value for one in Finding])
    why = serializers.CharField(allow_blank=True)
    apart = serializers.FloatField(allow_null=True)
    low = serializers.FloatField(allow_null=True)
    high = serializers.FloatField(allow_null=True)


class AspectOut(serializers.Serializer[Any]):
    """One aspect of similar work, by path."""

    aspect = serializers.CharField()
    sides = serializers.DictField(child=SideOut())
    against = serializers.DictField(child=AgainstOut())


class SimilarOut(serializers.Serializer[Any]):
    """Pods of both paths that asked for as many devices in the same time."""

    devices = serializers.IntegerField()
    pods = serializers.DictField(child=serializers.IntegerField())
    since = serializers.DateTimeField(allow_null=True)
    until = serializers.DateTimeField(allow_null=True)
    rows = AspectOut(many=True)


class UsefulOut(serializers.Serializer[Any]):
    """How much of their time devices of a path were of use, as platforms told."""

    path = serializers.CharField()
    share = serializers.FloatField(allow_null=True)
    told = serializers.IntegerField()
    pods = serializers.IntegerField()


class FreeOut(serializers.Serializer[Any]):
    """Free devices of a path, and those that lie apart."""

    path = serializers.CharField()
    free = serializers.IntegerField(allow_null=True)
    apart = serializers.IntegerField(allow_null=True)


class PayoffOut(serializers.Serializer):
    """Similar work on both paths of a pool: `rows` by aspect have each path's `sides`, and each
    path `against` the plugin with finding better, worse, alike or not comparable. Useful time and
    free devices that are null are not known.
    """

    since = serializers.DateTimeField()
    left_out = serializers.IntegerField()
    cut = serializers.BooleanField()
    similar = serializers.SerializerMethodField()
    useful = serializers.SerializerMethodField()
    free = serializers.SerializerMethodField()

    @extend_schema_field(SimilarOut(many=True))
    def get_similar(self, found: Payoff) -> list[dict[str, Any]]:
        return [_similar(one) for one in found.similar]

    @extend_schema_field(UsefulOut(many=True))
    def get_useful(self, found: Payoff) -> list[dict[str, Any]]:
        return [
            {"path": one.path, "share": one.sums.share, "told": one.told, "pods": one.pods}
            for one in found.useful
        ]

    @extend_schema_field(FreeOut(many=True))
    def get_free(self, found: Payoff) -> list[dict[str, Any]]:
        return [{"path": one.path, "free": one.free, "apart": one.apart} for one in found.apart]


def _similar(one: Similar) -> dict[str, Any]:
    return {
        "devices": one.devices,
        "pods": {path.value: count for path, count in one.pods.items()},
        "since": one.since,
        "until": one.until,
        "rows": [
            {
                "aspect": row.aspect.value,
                "sides": {path.value: _side(side) for path, side in row.sides.items()},
                "against": {path.value: _against(found) for path, found in row.against.items()},
            }
            for row in one.rows
        ],
    }


def _side(side: Side) -> dict[str, Any]:
    bounds = side.p95_range
    return {
        "samples": side.samples,
        "bad": side.bad,
        "bad_range": side.bad_range,
        "p50": side.p50,
        "p95": side.p95,
        "p95_range": (bounds.low, bounds.high) if bounds is not None else None,
    }


def _against(found: Comparison) -> dict[str, Any]:
    return {
        "finding": found.finding.value,
        "why": found.why,
        "apart": found.apart,
        "low": found.low,
        "high": found.high,
    }


class NodePoolPayoff(PlatformView):
    """Whether moving a node pool paid."""

    noun = "node pools"

    @extend_schema(
        operation_id="compare_paths_of_node_pool",
        parameters=[OpenApiParameter("days", int, enum=DAYS, description="30 where it is left.")],
        responses=PayoffOut,
    )
    def get(self, request: Request, slug: str) -> Response:
        """The same work on both paths, with sample sizes and ranges; never a cluster's average."""
        self.platform().require(PlatformAct.SEE)
        pool = get_object_or_404(NodePool, slug=slug)
        asked = request.query_params.get("days", str(DAYS[1]))
        if asked not in {str(one) for one in DAYS}:
            raise Invalid("No such span.", fields={"days": f"One of {', '.join(map(str, DAYS))}."})
        found = payoff_of(pool, warm(), int(asked), timezone.now())
        return Response(PayoffOut(found).data)
