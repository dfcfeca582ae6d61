"""Operations on tenants: make, change, their namespaces, closing, and the receipt."""

from __future__ import annotations

from django.http import Http404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.tenant_shapes import (
    ClosingAskIn,
    ClosingIn,
    ClosureOut,
    NamespaceIn,
    PlaceOut,
    SurveyOut,
    TenantChange,
    TenantIn,
    TenantOut,
)
from devices.models import Closure
from devices.tenancy import closures
from devices.tenancy.adoption import add_namespace, remove_namespace, survey_of
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.access import PlatformAccess, closed_tenant_for
from tenants.api.base import KEY, CallerView, PlatformView, TenantView
from tenants.founding import change_tenant, make_tenant
from tenants.models import ApiToken, Tenant, TenantNamespace
from tenants.policy import Act, PlatformAct

ADMIN = ApiToken.Scope.ADMIN
PAGES = [OpenApiParameter("cursor", str), OpenApiParameter("limit", int)]


class OfPlatform(PlatformView):
    """An operation of the platform on one tenant."""

    noun = "tenants"

    def seen(self, slug: str) -> Tenant:
        """The tenant, for whoever may see the platform."""
        self.platform().require(PlatformAct.SEE)
        return _tenant(slug)

    def run(self) -> PlatformAccess:
        """The caller, who may make and close tenants."""
        access = self.platform(scope=ADMIN)
        access.require(PlatformAct.RUN_TENANTS)
        return access


class Tenants(OfPlatform):
    """All tenants."""

    @extend_schema(
        operation_id="list_tenants",
        parameters=[OpenApiParameter("state", str, enum=Tenant.State.values), *PAGES],
        responses=TenantOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first, page by page; also closed ones."""
        self.platform().require(PlatformAct.SEE)
        return self.page(self.in_state(Tenant.objects.all(), Tenant.State.values), TenantOut)

    @extend_schema(
        operation_id="make_tenant", request=TenantIn, responses={201: TenantOut}, parameters=[KEY]
    )
    def post(self, request: Request) -> Response:
        """Makes one with its first owner; it may use nothing until limits are set."""
        access = self.run()
        body = TenantIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            made = make_tenant(
                access=access, request_id=request_id_of(request), now=now, **body.validated_data
            )
            return Response(TenantOut(made).data, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class OneTenant(OfPlatform):
    """One tenant."""

    @extend_schema(operation_id="get_tenant", responses=TenantOut)
    def get(self, request: Request, slug: str) -> Response:
        """Its name, state and priority policy."""
        return Response(TenantOut(self.seen(slug)).data)

    @extend_schema(operation_id="change_tenant", request=TenantChange, responses=TenantOut)
    def patch(self, request: Request, slug: str) -> Response:
        """Renames it or sets its priority policy; what is left out stays."""
        access = self.run()
        body = TenantChange(data=request.data)
        body.is_valid(raise_exception=True)
        changed = change_tenant(
            access=access,
            tenant=_tenant(slug),
            request_id=request_id_of(request),
            now=timezone.now(),
            **body.validated_data,
        )
        return Response(TenantOut(changed).data)


class Namespaces(OfPlatform):
    """Namespaces of a tenant."""

    @extend_schema(operation_id="list_namespaces", parameters=PAGES, responses=PlaceOut(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Those it has now, with how far the cluster agrees."""
        places = TenantNamespace.objects.filter(tenant=self.seen(slug)).select_related("standing")
        return self.page(places, PlaceOut)

    @extend_schema(
        operation_id="add_namespace",
        request=NamespaceIn,
        responses={201: PlaceOut},
        parameters=[KEY],
    )
    def post(self, request: Request, slug: str) -> Response:
        """Has a new one made, or (`adopt`) takes one that is there; look at its survey first."""
        access = self.run()
        body = NamespaceIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            place = add_namespace(
                access=access,
                tenant=_tenant(slug),
                request_id=request_id_of(request),
                now=now,
                **body.validated_data,
            )
            return Response(PlaceOut(place).data, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class OneNamespace(OfPlatform):
    """One namespace of a tenant."""

    @extend_schema(operation_id="remove_namespace", responses={202: PlaceOut})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        """Lets it leave: Berth's quota and names go, all else in it stays."""
        place = remove_namespace(
            access=self.run(),
            tenant=_tenant(slug),
            name=name,
            request_id=request_id_of(request),
            now=timezone.now(),
        )
        return Response(PlaceOut(place).data, status=202)


class NamespaceSurvey(OfPlatform):
    """What is in a namespace of the cluster."""

    @extend_schema(operation_id="survey_namespace", responses=SurveyOut)
    def get(self, request: Request, slug: str, name: str) -> Response:
        """Claims, templates, quotas and Pods with devices, and what would be refused from then on
        if this tenant adopted it.
        """
        self.platform().require(PlatformAct.RUN_TENANTS)
        return Response(SurveyOut(survey_of(_tenant(slug), name, timezone.now())).data)


class Closing(OfPlatform):
    """The closing of a tenant."""

    @extend_schema(operation_id="get_closing", responses=ClosureOut)
    def get(self, request: Request, slug: str) -> Response:
        """How far the newest one is, and what it waits for; 404 where there was none."""
        return Response(ClosureOut(_closure(self.seen(slug))).data)

    @extend_schema(
        operation_id="begin_closing",
        request=ClosingIn,
        responses={201: ClosureOut},
        parameters=[KEY],
    )
    def post(self, request: Request, slug: str) -> Response:
        """Stops new work at once; the rest follows by itself. Nothing is evicted."""
        access = self.run()
        body = ClosingIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            closure = closures.begin(
                access=access,
                tenant=_tenant(slug),
                request_id=request_id_of(request),
                now=now,
                **body.validated_data,
            )
            return Response(ClosureOut(closure).data, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class CancelClosing(OfPlatform):
    """The end of a closing before anything is taken away."""

    @extend_schema(operation_id="cancel_closing", request=None, responses=ClosureOut)
    def post(self, request: Request, slug: str) -> Response:
        """The tenant is active again; CLOSING_TOO_FAR once claims are reclaimed."""
        closure = closures.cancel(
            access=self.run(),
            tenant=_tenant(slug),
            request_id=request_id_of(request),
            now=timezone.now(),
        )
        return Response(ClosureOut(closure).data)


class Receipt(OfPlatform):
    """The receipt of a closed tenant."""

    @extend_schema(operation_id="get_receipt", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str) -> Response:
        """As it was written, with its digests; `manage.py verifyreceipt` proves it."""
        closure = _closure(self.seen(slug))
        if closure.receipt is None:
            raise Http404
        return Response(closure.receipt)


class TenantClosing(TenantView):
    """The closing of one's own tenant."""

    noun = "tenants"

    @extend_schema(operation_id="get_closing_of_tenant", responses=ClosureOut)
    def get(self, request: Request, slug: str) -> Response:
        """How far it is, and what it waits for; 404 where nobody asked for one."""
        return Response(ClosureOut(_closure(self.access(slug).tenant)).data)

    @extend_schema(operation_id="ask_to_close", request=ClosingAskIn, responses={201: ClosureOut})
    def post(self, request: Request, slug: str) -> Response:
        """An owner asks; an admin of the platform decides in an approval."""
        access = self.access(slug, scope=ADMIN)
        access.require(Act.ASK_CLOSING)
        body = ClosingAskIn(data=request.data)
        body.is_valid(raise_exception=True)
        closure = closures.ask_to_close(
            access=access,
            request_id=request_id_of(request),
            now=timezone.now(),
            **body.validated_data,
        )
        return Response(ClosureOut(closure).data, status=201)


class TenantReceipt(CallerView):
    """The receipt of a tenant that one owned to the end."""

    noun = "tenants"

    @extend_schema(operation_id="get_receipt_of_tenant", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, slug: str) -> Response:
        """As it was written, with its digests. Signed in only: a closed tenant has no tokens."""
        if self.token() is not None:
            raise Http404
        closure = _closure(closed_tenant_for(request.user, slug))
        if closure.receipt is None:
            raise Http404
        return Response(closure.receipt)


def _tenant(slug: str) -> Tenant:
    found = Tenant.objects.filter(slug=slug).first()
    if found is None:
        raise Http404
    return found


def _closure(tenant: Tenant) -> Closure:
    found = closures.newest(tenant)
    if found is None:
        raise Http404
    return found
