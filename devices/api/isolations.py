"""Operations on isolations: read them, wish something done, and set what Berth may do by itself."""

from __future__ import annotations

from typing import Any, ClassVar

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.fleet.isolationwishes import let, wish
from devices.models import Isolation, IsolationPolicy
from portal.api.bodies import Body
from portal.request_ids import request_id_of
from tenants.api.base import PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE, ADMIN = ApiToken.Scope.OPERATE, ApiToken.Scope.ADMIN


class IsolationOut(serializers.ModelSerializer[Isolation]):
    """An isolation. `dry_run` is what closing the place would touch, `code` and `answer` what stood
    in the way of the last wish, `end` how it ended.
    """

    id = serializers.CharField(source="public_id")

    class Meta:
        model = Isolation
        fields: ClassVar = [
            "id", "driver", "pool", "node", "device", "state", "since", "why", "evidence",
            "proposed_at", "node_taint", "dry_run", "dry_run_at", "wish", "wished_at", "code",
            "answer", "trial", "trial_at", "applied_at", "ended_at", "end", "end_why",
        ]  # fmt: skip
        read_only_fields = fields


class IsolationWishIn(Body):
    """What to do: `look` anew at what it would touch, `apply`, `probe`, or `lift` (which says no to
    what is not closed yet). `why` is needed to close and to open.
    """

    what = serializers.ChoiceField(choices=[one for one in Isolation.Wish.values if one])
    why = serializers.CharField(max_length=240, allow_blank=True, default="")


class IsolationPolicyOut(serializers.ModelSerializer[IsolationPolicy]):
    """What Berth may do by itself; `share` in per cent, durations in ISO 8601 or seconds."""

    class Meta:
        model = IsolationPolicy
        fields: ClassVar = [
            "automatic", "share", "least_failed", "window", "probe_every", "changed_at",
        ]  # fmt: skip
        read_only_fields: ClassVar = ["changed_at"]


class Isolations(PlatformView):
    """Places that are proposed to be closed, are closed, or were."""

    noun = "isolations"

    @extend_schema(
        operation_id="list_isolations",
        parameters=[
            OpenApiParameter("state", str, enum=Isolation.State.values),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=IsolationOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        rows = self.in_state(Isolation.objects.all(), Isolation.State.values)
        return self.page(rows, IsolationOut)


class OneIsolation(PlatformView):
    """One isolation."""

    noun = "isolations"

    @extend_schema(operation_id="get_isolation", responses=IsolationOut)
    def get(self, request: Request, public_id: str) -> Response:
        """It, with its evidence and its dry run."""
        self.platform().require(PlatformAct.SEE)
        return Response(IsolationOut(get_object_or_404(Isolation, public_id=public_id)).data)


class WishIsolation(PlatformView):
    """Having something done with an isolation."""

    noun = "isolations"

    @extend_schema(
        operation_id="wish_isolation", request=IsolationWishIn, responses={202: IsolationOut}
    )
    def post(self, request: Request, public_id: str) -> Response:
        """202: a worker does it, or says why not in `answer`; the same twice is one wish."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.ISOLATE)
        row = get_object_or_404(Isolation, public_id=public_id)
        asked = IsolationWishIn(data=request.data)
        asked.is_valid(raise_exception=True)
        by: dict[str, Any] = {"request_id": request_id_of(request), "now": timezone.now()}
        wished = wish(row, access=access, **asked.validated_data, **by)
        return Response(IsolationOut(wished).data, status=202)


class IsolationPolicies(PlatformView):
    """What Berth may do by itself."""

    noun = "isolations"

    @extend_schema(operation_id="get_isolation_policy", responses=IsolationPolicyOut)
    def get(self, request: Request) -> Response:
        """What holds now."""
        self.platform().require(PlatformAct.SEE)
        return Response(IsolationPolicyOut(IsolationPolicy.current()).data)

    @extend_schema(
        operation_id="set_isolation_policy",
        request=IsolationPolicyOut,
        responses=IsolationPolicyOut,
    )
    def put(self, request: Request) -> Response:
        """All of it anew; what is left out is as it was at first."""
        access = self.platform(scope=ADMIN)
        access.require(PlatformAct.LET_ISOLATE)
        asked = IsolationPolicyOut(data=request.data)
        asked.is_valid(raise_exception=True)
        at_first = IsolationPolicyOut(IsolationPolicy()).instance
        given = {
            name: asked.validated_data.get(name, getattr(at_first, name))
            for name in ("automatic", "share", "least_failed", "window", "probe_every")
        }
        by: dict[str, Any] = {"request_id": request_id_of(request), "now": timezone.now()}
        return Response(IsolationPolicyOut(let(access=access, **given, **by)).data)
