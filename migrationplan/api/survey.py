"""The survey of a node pool, for programs."""

from __future__ import annotations

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.forecasts.warm import warm
from devices.models import NodePool
from migrationplan.survey import Survey
from migrationplan.surveying import survey_of, tenants_of
from tenants.api.base import PlatformView
from tenants.policy import PlatformAct


class WorkloadOut(serializers.Serializer):
    """Pods of one owner that use the pool. `by` is plugin, claim, extended or both; `ends` is null
    where one of them has not said when; `tenant` is empty where the namespace is nobody's.
    """

    namespace = serializers.CharField()
    kind = serializers.CharField()
    name = serializers.CharField()
    tenant = serializers.SerializerMethodField()
    by = serializers.CharField()
    pods = serializers.IntegerField()
    devices = serializers.IntegerField()
    nodes = serializers.ListField(child=serializers.CharField())
    retryable = serializers.IntegerField()
    waiting = serializers.IntegerField()
    ends = serializers.DateTimeField(allow_null=True)

    def get_tenant(self, one: object) -> str:
        names: dict[str, str] = self.context.get("tenants", {})
        return names.get(getattr(one, "namespace", ""), "")


class BreakOut(serializers.Serializer):
    """Something that would not work any more; `what` names the objects."""

    code = serializers.CharField()
    sentence = serializers.CharField()
    what = serializers.ListField(child=serializers.CharField())


class ProposedWaveOut(serializers.Serializer):
    """Nodes that should go together, and why then; `until` is null where it is not known."""

    name = serializers.CharField()
    words = serializers.CharField()
    nodes = serializers.ListField(child=serializers.CharField())
    pods = serializers.IntegerField()
    until = serializers.DateTimeField(allow_null=True)


class PoolSurveyOut(serializers.Serializer):
    """A survey. `as_of` is null, and the rest empty, where the cluster has not been seen."""

    as_of = serializers.SerializerMethodField()
    nodes = serializers.IntegerField()
    owners = serializers.DictField(child=serializers.IntegerField())
    workloads = WorkloadOut(many=True)
    breaks = BreakOut(many=True)
    waves = ProposedWaveOut(many=True)
    risks = serializers.ListField(child=serializers.CharField())
    left_out = serializers.SerializerMethodField()

    def get_as_of(self, found: Survey) -> str | None:
        moment = self.context.get("as_of")
        return moment.isoformat() if moment else None

    def get_left_out(self, found: Survey) -> dict[str, str]:
        return dict(found.left_out)


class NodePoolSurvey(PlatformView):
    """What to know before a node pool moves."""

    noun = "node pools"

    @extend_schema(operation_id="survey_node_pool", responses=PoolSurveyOut)
    def get(self, request: Request, slug: str) -> Response:
        """Who uses it by which path, what would break, in which order its nodes should go."""
        self.platform().require(PlatformAct.SEE)
        pool = get_object_or_404(NodePool, slug=slug)
        seen = warm()
        found = survey_of(pool, seen) if seen else Survey()
        context = {"as_of": seen.as_of if seen else None, "tenants": tenants_of(found)}
        return Response(PoolSurveyOut(found, context=context).data)
