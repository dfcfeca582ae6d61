"""Operations on leaks: read the board, keep a finding, clean one away."""

from __future__ import annotations

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.dra.codes import CODES
from devices.fleet.leakboard import clean, keep
from devices.models import LeakRow
from portal.api.bodies import Body
from portal.errors import Invalid
from portal.request_ids import request_id_of
from tenants.api.base import PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE


class LeakOut(serializers.ModelSerializer[LeakRow]):
    """A finding; `words` and `next_step` are those of its code."""

    id = serializers.CharField(source="public_id")
    words = serializers.SerializerMethodField()
    next_step = serializers.SerializerMethodField()

    def get_words(self, row: LeakRow) -> str:
        return CODES[row.code].words

    def get_next_step(self, row: LeakRow) -> str:
        return CODES[row.code].next_step

    class Meta:
        model = LeakRow
        fields: ClassVar = [
            "id", "code", "words", "next_step", "claims", "tenant", "devices", "proof", "node",
            "since", "first_seen_at", "seen_at", "believed_at", "gone_at", "kept_at", "kept_why",
            "wanted_at", "answer_code", "answer", "answered_at",
        ]  # fmt: skip
        read_only_fields = fields


class KeepIn(Body):
    """Why it may stay."""

    why = serializers.CharField(max_length=240)


class CleanIn(Body):
    """Why it goes; `typed` are the last five characters of the claim's name."""

    reason = serializers.CharField(max_length=240)
    typed = serializers.CharField(max_length=5)


class Leaks(PlatformView):
    """The board."""

    noun = "leaks"

    @extend_schema(
        operation_id="list_leaks",
        parameters=[
            OpenApiParameter("state", str, enum=["open", "kept", "gone"]),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=LeakOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """The oldest first."""
        self.platform().require(PlatformAct.SEE)
        states: dict[str, dict[str, Any]] = {
            "open": {"gone_at": None, "kept_at": None},
            "kept": {"gone_at": None, "kept_at__isnull": False},
            "gone": {"gone_at__isnull": False},
        }
        state = request.query_params.get("state")
        if state is not None and state not in states:
            raise Invalid("No such state.", fields={"state": f"One of {', '.join(states)}."})
        return self.page(LeakRow.objects.filter(**states.get(state or "", {})), LeakOut)


class OneLeak(PlatformView):
    """One finding."""

    noun = "leaks"

    @extend_schema(operation_id="get_leak", responses=LeakOut)
    def get(self, request: Request, public_id: str) -> Response:
        """It, with what came of the last cleanup."""
        self.platform().require(PlatformAct.SEE)
        return Response(LeakOut(get_object_or_404(LeakRow, public_id=public_id)).data)


class KeepLeak(PlatformView):
    """Leaving a finding as it is."""

    noun = "leaks"

    @extend_schema(operation_id="keep_leak", request=KeepIn, responses=LeakOut)
    def post(self, request: Request, public_id: str) -> Response:
        """It rings no more; saying so again replaces the reason."""
        access = self.platform(scope=OPERATE)
        row = get_object_or_404(LeakRow, public_id=public_id)
        asked = KeepIn(data=request.data)
        asked.is_valid(raise_exception=True)
        by: dict[str, Any] = {"request_id": request_id_of(request), "now": timezone.now()}
        return Response(LeakOut(keep(row, access=access, **asked.validated_data, **by)).data)


class CleanLeak(PlatformView):
    """Cleaning a finding away."""

    noun = "leaks"

    @extend_schema(operation_id="clean_leak", request=CleanIn, responses={202: LeakOut})
    def post(self, request: Request, public_id: str) -> Response:
        """202: a worker looks anew and does it, or says why not in `answer`; twice is one wish."""
        access = self.platform(scope=OPERATE)
        row = get_object_or_404(LeakRow, public_id=public_id)
        asked = CleanIn(data=request.data)
        asked.is_valid(raise_exception=True)
        by: dict[str, Any] = {"request_id": request_id_of(request), "now": timezone.now()}
        wished = clean(row, access=access, **asked.validated_data, **by)
        return Response(LeakOut(wished).data, status=202)
