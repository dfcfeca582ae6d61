"""Operations on the history of stages: what became of Pods with devices over a span of time."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.asks.stagehistory import DAYS, By, History, history_of, question_from
from devices.routing.routes import Path
from tenants.api.base import PlatformView, TenantView
from tenants.policy import Act, PlatformAct

ASKED = [
    OpenApiParameter("days", int, enum=list(DAYS), description="The last days; 7 unless said."),
    OpenApiParameter("from", str, description="Instead: from this moment (ISO 8601, UTC)."),
    OpenApiParameter("to", str, description="To this moment; now unless said."),
    OpenApiParameter("class", str),
    OpenApiParameter("path", str, enum=[path.value for path in Path]),
    OpenApiParameter("pool", str, description="A node pool."),
]


def _by(*kinds: By) -> OpenApiParameter:
    return OpenApiParameter("by", str, enum=[one.value for one in kinds])


class StageFigureOut(serializers.Serializer):
    """Seconds; null where fewer than 5 samples say."""

    samples = serializers.IntegerField()
    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)


class StageFiguresOut(serializers.Serializer):
    """`wait` from the Pod's creation to its devices, `prepare` from there to prepared, `start` from
    there to Ready, `whole` from creation to Ready.
    """

    wait = StageFigureOut()
    prepare = StageFigureOut()
    start = StageFigureOut()
    whole = StageFigureOut()


class StageGroupOut(serializers.Serializer):
    """`percent` of the Pods that are over it came to run, null where none is; `retries` are failed
    preparations, `failed` are Pods that ended so.
    """

    key = serializers.CharField()
    pods = serializers.IntegerField()
    ran = serializers.IntegerField()
    never_ran = serializers.IntegerField()
    under_way = serializers.IntegerField()
    percent = serializers.IntegerField(allow_null=True)
    retries = serializers.IntegerField()
    failed = serializers.IntegerField()
    figures = StageFiguresOut()


class StagePartOut(serializers.Serializer):
    """One of the equal parts of the span that any Pod began in."""

    start = serializers.DateTimeField()
    group = StageGroupOut()


class StageHistoryOut(serializers.Serializer):
    """All Pods together, by group, and over time."""

    since = serializers.DateTimeField(source="question.since")
    until = serializers.DateTimeField(source="question.until")
    by = serializers.CharField(source="question.by")
    whole = StageGroupOut()
    groups = StageGroupOut(many=True)
    parts = serializers.SerializerMethodField()

    @extend_schema_field(StagePartOut(many=True))
    def get_parts(self, found: History) -> Any:
        return StagePartOut([one for one in found.parts if one.group.pods], many=True).data


class TenantStageHistory(TenantView):
    """What became of the tenant's own Pods."""

    noun = "claims"

    @extend_schema(
        operation_id="get_stage_history",
        parameters=[*ASKED, _by(By.CLASS, By.PATH, By.POOL)],
        responses=StageHistoryOut,
    )
    def get(self, request: Request, slug: str) -> Response:
        """Waits, success and retries of the tenant's Pods over a span of time."""
        access = self.access(slug)
        access.require(Act.VIEW)
        asked = request.query_params.dict()
        question = question_from(asked, timezone.now(), tenant=access.tenant.slug)
        return Response(StageHistoryOut(history_of(question)).data)


class PlatformStageHistory(PlatformView):
    """The same of all tenants."""

    noun = "claims"

    @extend_schema(
        operation_id="get_platform_stage_history",
        parameters=[*ASKED, _by(*By), OpenApiParameter("tenant", str)],
        responses=StageHistoryOut,
    )
    def get(self, request: Request) -> Response:
        """Waits, success and retries of all Pods, or of one tenant's, over a span of time."""
        self.platform().require(PlatformAct.SEE)
        question = question_from(request.query_params.dict(), timezone.now())
        return Response(StageHistoryOut(history_of(question)).data)
