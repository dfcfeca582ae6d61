"""Operations on evidence: list, collect, read, download."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.models import NodePool
from migrationplan.evidence.collecting import collect
from migrationplan.evidence.download import sent
from migrationplan.models import Evidence, Move
from portal.api.bodies import Body
from portal.api.idempotency import once
from portal.errors import Invalid
from portal.request_ids import request_id_of
from tenants.api.base import KEY, PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE


class EvidenceBundleOut(serializers.ModelSerializer[Evidence]):
    """A bundle; `sha256` is of the whole file."""

    id = serializers.CharField(source="public_id")
    pool = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    sha256 = serializers.CharField(source="digest")

    class Meta:
        model = Evidence
        fields: ClassVar = [
            "id", "pool", "moves", "since", "until", "why", "made_by", "made_at", "sha256", "size",
        ]  # fmt: skip
        read_only_fields = fields


class EvidenceIn(Body):
    """Which moves of which pool, in which time; without moves all that were under way in it."""

    pool = serializers.SlugField()
    moves = serializers.ListField(
        child=serializers.CharField(max_length=12), required=False, max_length=500
    )
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(required=False, allow_null=True, default=None)
    why = serializers.CharField(max_length=240)


class EvidenceView(PlatformView):
    """What operations on evidence share."""

    noun = "evidence"


class Bundles(EvidenceView):
    """All bundles."""

    @extend_schema(
        operation_id="list_evidence",
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
        responses=EvidenceBundleOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        return self.page(Evidence.objects.select_related("pool"), EvidenceBundleOut)

    @extend_schema(
        operation_id="collect_evidence",
        request=EvidenceIn,
        parameters=[KEY],
        responses={201: EvidenceBundleOut},
    )
    def post(self, request: Request) -> Response:
        """Writes down what is known; an end that is not over yet is now."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.COLLECT_EVIDENCE)
        asked = EvidenceIn(data=request.data)
        asked.is_valid(raise_exception=True)
        data = asked.validated_data
        pool = get_object_or_404(NodePool, slug=data["pool"])
        moves = None
        if "moves" in data:
            moves = list(Move.objects.filter(pool=pool, public_id__in=data["moves"]))
            if unknown := set(data["moves"]) - {one.public_id for one in moves}:
                words = f"This node pool has no move {', '.join(sorted(unknown))}."
                raise Invalid("Nothing was collected.", fields={"moves": words})
        now = timezone.now()

        def act() -> Response:
            made = collect(
                pool, moves, data["since"], data["until"], why=data["why"], now=now,
                request_id=request_id_of(request), person=access.user.person,
            )  # fmt: skip
            return Response(EvidenceBundleOut(made).data, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class OneBundle(EvidenceView):
    """One bundle."""

    @extend_schema(operation_id="get_evidence", responses=EvidenceBundleOut)
    def get(self, request: Request, public_id: str) -> Response:
        """What it is about, and its digest."""
        self.platform().require(PlatformAct.SEE)
        return Response(EvidenceBundleOut(_found(public_id)).data)


class BundleFile(EvidenceView):
    """The file of one bundle."""

    @extend_schema(
        operation_id="download_evidence",
        responses={(200, "application/x-tar"): OpenApiResponse(OpenApiTypes.BINARY)},
    )
    def get(self, request: Request, public_id: str) -> HttpResponseBase:
        """A tar with a manifest of digests; the same bytes each time."""
        access = self.platform()
        access.require(PlatformAct.READ_EVIDENCE)
        return sent(request._request, _found(public_id), access)


def _found(public_id: str) -> Evidence:
    return get_object_or_404(Evidence.objects.select_related("pool"), public_id=public_id)
