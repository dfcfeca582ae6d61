"""Operations on the paths of new work: the platform's own, and what is set for a tenant."""

from __future__ import annotations

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.models import PluginResource, RouteRule
from devices.routing.rerouting import (
    LONGEST_NAME,
    LONGEST_REASON,
    end_route,
    forget_resource,
    name_resource,
    set_route,
)
from devices.routing.routes import Path
from portal.api.bodies import Body
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.api.base import KEY, PlatformView, TenantView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE
PATHS = [(path.value, path.words) for path in Path]


class RouteRuleIn(Body):
    """What to set. `tenant` and `template` are slugs, empty for all; `starts_at` null is now."""

    device_class = serializers.CharField(max_length=LONGEST_NAME)
    path = serializers.ChoiceField(choices=PATHS)
    tenant = serializers.CharField(max_length=63, allow_blank=True, default="")
    template = serializers.CharField(max_length=63, allow_blank=True, default="")
    reason = serializers.CharField(max_length=LONGEST_REASON)
    starts_at = serializers.DateTimeField(allow_null=True, default=None)
    until = serializers.DateTimeField(allow_null=True, default=None)


class RouteRuleOut(serializers.ModelSerializer[RouteRule]):
    """One rule. `end` is empty while it is set, else `lifted` or `expired`."""

    id = serializers.CharField(source="public_id")

    class Meta:
        model = RouteRule
        fields = (
            "id",
            "device_class",
            "path",
            "tenant",
            "template",
            "reason",
            "set_at",
            "starts_at",
            "until",
            "ended_at",
            "end",
        )


class PluginResourceIn(Body):
    """Which class stands for a plugin's extended resource; `selector` is CEL that narrows it."""

    resource = serializers.CharField(max_length=LONGEST_NAME)
    device_class = serializers.CharField(max_length=LONGEST_NAME)
    selector = serializers.CharField(max_length=10_000, allow_blank=True, default="")


class PluginResourceOut(serializers.ModelSerializer[PluginResource]):
    """One name and its class."""

    class Meta:
        model = PluginResource
        fields = ("resource", "device_class", "selector", "set_at")


class ResourceName(serializers.Serializer):
    """The name of an extended resource."""

    resource = serializers.CharField(max_length=LONGEST_NAME)


class RouteRules(PlatformView):
    """Paths of new work."""

    noun = "routes"

    @extend_schema(
        operation_id="list_routes",
        parameters=[
            OpenApiParameter("standing", bool, description="Only those in force."),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=RouteRuleOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first, page by page. Of those in force the narrowest counts, then the newest."""
        self.platform().require(PlatformAct.SEE)
        rows = RouteRule.objects.all()
        if request.query_params.get("standing") == "true":
            rows = rows.standing(timezone.now())
        return self.page(rows, RouteRuleOut)

    @extend_schema(
        operation_id="set_route",
        request=RouteRuleIn,
        responses={201: RouteRuleOut},
        parameters=[KEY],
    )
    def post(self, request: Request) -> Response:
        """Sets a path. Requests without Pods follow; what runs goes on."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.ROUTE)
        body = RouteRuleIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            made = set_route(
                access=access, request_id=request_id_of(request), now=now, **body.validated_data
            )
            return Response(RouteRuleOut(made).data, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class OneRouteRule(PlatformView):
    """One rule."""

    noun = "routes"

    @extend_schema(operation_id="get_route", responses=RouteRuleOut)
    def get(self, request: Request, public_id: str) -> Response:
        """What is set, for whom, why, and until when."""
        self.platform().require(PlatformAct.SEE)
        found = RouteRule.objects.filter(public_id=public_id).first()
        if found is None:
            raise Http404
        return Response(RouteRuleOut(found).data)


class EndRoute(PlatformView):
    """The end of a rule."""

    noun = "routes"

    @extend_schema(operation_id="end_route", request=None, responses=RouteRuleOut, parameters=[KEY])
    def post(self, request: Request, public_id: str) -> Response:
        """Ends it; twice is fine. What counted before it counts again."""
        access = self.platform(scope=OPERATE)
        now = timezone.now()

        def act() -> Response:
            try:
                found = end_route(
                    access=access, public_id=public_id, request_id=request_id_of(request), now=now
                )
            except RouteRule.DoesNotExist as absent:
                raise Http404 from absent
            return Response(RouteRuleOut(found).data)

        return once(request, caller=self.caller(), now=now, act=act)


class PluginResources(PlatformView):
    """What extended resources of plugins stand for."""

    noun = "routes"

    @extend_schema(operation_id="list_plugin_resources", responses=PluginResourceOut(many=True))
    def get(self, request: Request) -> Response:
        """Those that the platform has named; device classes name others themselves."""
        self.platform().require(PlatformAct.SEE)
        return Response(PluginResourceOut(PluginResource.objects.all(), many=True).data)

    @extend_schema(
        operation_id="name_plugin_resource",
        request=PluginResourceIn,
        responses={201: PluginResourceOut},
        parameters=[KEY],
    )
    def post(self, request: Request) -> Response:
        """Says which class stands for a name; again replaces what was said."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.ROUTE)
        body = PluginResourceIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            made = name_resource(
                access=access, request_id=request_id_of(request), now=now, **body.validated_data
            )
            return Response(PluginResourceOut(made).data, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class ForgetPluginResource(PlatformView):
    """Taking back what was said of a name."""

    noun = "routes"

    @extend_schema(
        operation_id="forget_plugin_resource",
        request=ResourceName,
        responses={204: None},
        parameters=[KEY],
    )
    def post(self, request: Request) -> Response:
        """The name stands for nothing then, unless a class says so itself."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.ROUTE)
        body = ResourceName(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            try:
                forget_resource(
                    access=access, request_id=request_id_of(request), now=now, **body.validated_data
                )
            except PluginResource.DoesNotExist as absent:
                raise Http404 from absent
            return Response(status=204)

        return once(request, caller=self.caller(), now=now, act=act)


class TenantRoutes(TenantView):
    """What is set about a tenant's new work now."""

    noun = "routes"

    @extend_schema(operation_id="list_routes_of_tenant", responses=RouteRuleOut(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Rules in force that concern it, those of all tenants with them; newest first."""
        tenant = self.access(slug).tenant
        rules = RouteRule.objects.standing(timezone.now()).filter(tenant__in=["", tenant.slug])
        return Response(RouteRuleOut(rules, many=True).data)
