"""Operations on freezes: the platform's own, and what concerns a tenant."""

from __future__ import annotations

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.models import Freeze
from devices.tenancy.freezes import LONGEST_REASON, LONGEST_TARGET, freeze, frozen_for, lift
from portal.api.bodies import Body
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.api.base import KEY, PlatformView, TenantView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE


class FreezeIn(Body):
    """What to freeze. `target` is the name of a class or a driver, or the slug of a tenant or a
    node pool (`pool`, and `change` for driver changes); empty for `all`. `path` closes only those
    nodes of a node pool that take it. Only freezes of requests may be `strict`.
    """

    scope = serializers.ChoiceField(choices=Freeze.Scope.choices)
    target = serializers.CharField(max_length=LONGEST_TARGET, allow_blank=True, default="")
    path = serializers.ChoiceField(choices=Freeze.Path.choices, allow_blank=True, default="")
    strict = serializers.BooleanField(default=False)
    reason = serializers.CharField(max_length=LONGEST_REASON)
    until = serializers.DateTimeField(allow_null=True, default=None)


class FreezeOut(serializers.ModelSerializer[Freeze]):
    """One freeze. `end` is empty while it is in force, else `lifted`, `expired` or `done`. Of a
    node pool or driver `held` says how far the cluster holds it; null: nothing is to be closed.
    """

    id = serializers.CharField(source="public_id")
    held = serializers.CharField(source="hold.words", default=None, allow_null=True)

    class Meta:
        model = Freeze
        fields = (
            "id",
            "scope",
            "target",
            "path",
            "strict",
            "reason",
            "frozen_at",
            "until",
            "ended_at",
            "end",
            "held",
        )


class Freezes(PlatformView):
    """Freezes of the platform."""

    noun = "freezes"

    @extend_schema(
        operation_id="list_freezes",
        parameters=[
            OpenApiParameter("standing", bool, description="Only those in force."),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=FreezeOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first, page by page."""
        self.platform().require(PlatformAct.SEE)
        rows = Freeze.objects.select_related("hold")
        if request.query_params.get("standing") == "true":
            rows = rows.standing(timezone.now())
        return self.page(rows, FreezeOut)

    @extend_schema(
        operation_id="freeze", request=FreezeIn, responses={201: FreezeOut}, parameters=[KEY]
    )
    def post(self, request: Request) -> Response:
        """Stops new work; what runs goes on. Requests wait and are sent when it ends."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.FREEZE)
        body = FreezeIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            made = freeze(
                access=access, request_id=request_id_of(request), now=now, **body.validated_data
            )
            return Response(FreezeOut(made).data, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class OneFreeze(PlatformView):
    """One freeze."""

    noun = "freezes"

    @extend_schema(operation_id="get_freeze", responses=FreezeOut)
    def get(self, request: Request, public_id: str) -> Response:
        """What is frozen, why, and until when."""
        self.platform().require(PlatformAct.SEE)
        found = Freeze.objects.select_related("hold").filter(public_id=public_id).first()
        if found is None:
            raise Http404
        return Response(FreezeOut(found).data)


class Lift(PlatformView):
    """The end of a freeze."""

    noun = "freezes"

    @extend_schema(operation_id="lift_freeze", request=None, responses=FreezeOut, parameters=[KEY])
    def post(self, request: Request, public_id: str) -> Response:
        """Ends it; twice is fine. What it held is sent in the order of asking."""
        access = self.platform(scope=OPERATE)
        now = timezone.now()

        def act() -> Response:
            try:
                found = lift(
                    access=access, public_id=public_id, request_id=request_id_of(request), now=now
                )
            except Freeze.DoesNotExist as absent:
                raise Http404 from absent
            return Response(FreezeOut(found).data)

        return once(request, caller=self.caller(), now=now, act=act)


class TenantFreezes(TenantView):
    """What keeps a tenant's new work back now."""

    noun = "freezes"

    @extend_schema(operation_id="list_freezes_of_tenant", responses=FreezeOut(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The widest first; empty where nothing is frozen."""
        tenant = self.access(slug).tenant
        return Response(FreezeOut(frozen_for(tenant, timezone.now()), many=True).data)
