"""Operations of the API: get the tenant, check the shape, call one verb, answer."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.listing import FILTERS, asked_for
from devices.api.shapes import ClaimDetailOut, ClaimIn, ClaimOut, OfferOut
from devices.api.template_shapes import TemplateOut
from devices.api.versions import approved_or_invalid
from devices.asks.claimlist import refusals
from devices.asks.claims import release_claim, request_claim
from devices.asks.searches import search_of
from devices.authoring.shown import shown_to
from devices.catalogue.classes import offers_for
from devices.models import Claim
from portal.api.etags import check_match, etag
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.access import Access
from tenants.api.base import KEY, MATCH, TenantView
from tenants.models import ApiToken


class Claims(TenantView):
    """The claims of a tenant."""

    noun = "claims"
    refusals = staticmethod(refusals)

    @extend_schema(operation_id="list_claims", parameters=FILTERS, responses=ClaimOut(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Page by page, with the filters, orders and saved views of the portal's own list."""
        access = self.access(slug)
        rows, order = asked_for(request, access, Claim.objects.of(access.tenant))
        return self.sorted_page(rows, order, ClaimOut)

    @extend_schema(
        operation_id="ask_for_devices",
        request=ClaimIn,
        responses={201: ClaimOut},
        parameters=[KEY],
    )
    def post(self, request: Request, slug: str) -> Response:
        """Asks for devices. The answer comes at once; the cluster's own answer shows in `state`."""
        access = self.access(slug, scope=ApiToken.Scope.REQUEST)
        body = ClaimIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            claim = request_claim(
                access=access,
                version=approved_or_invalid(access.tenant, body.validated_data["template"]),
                namespace=body.validated_data["namespace"],
                name=body.validated_data["name"],
                values=body.validated_data["values"],
                request_id=request_id_of(request),
                now=now,
                at_once=body.validated_data["at_once"],
                grant=body.validated_data["grant"],
                days=body.validated_data["days"],
                note=body.validated_data["note"],
            )
            where = reverse("api:claim", args=[slug, claim.public_id])
            headers = {"Location": where, "ETag": etag(claim.revision)}
            return Response(ClaimOut(claim).data, status=201, headers=headers)

        return once(request, caller=self.caller(), now=now, act=act)


class OneClaim(TenantView):
    """One claim."""

    noun = "claims"

    @extend_schema(operation_id="get_claim", responses=ClaimDetailOut)
    def get(self, request: Request, slug: str, public_id: str) -> Response:
        """Where it stands and why, which devices it holds, how long stages took, its history."""
        claim = _claim(self.access(slug), public_id)
        return Response(ClaimDetailOut(claim).data, headers={"ETag": etag(claim.revision)})


class Release(TenantView):
    """Giving a claim back."""

    noun = "claims"

    @extend_schema(
        operation_id="release_claim",
        request=None,
        responses={202: ClaimOut},
        parameters=[KEY, MATCH],
    )
    def post(self, request: Request, slug: str, public_id: str) -> Response:
        """Releases it. It is gone when `state` says released; Pods that use it are not stopped."""
        access = self.access(slug, scope=ApiToken.Scope.REQUEST)
        now = timezone.now()

        def act() -> Response:
            before = _claim(access, public_id)
            check_match(request, before.revision, ClaimOut(before).data)
            claim = release_claim(
                access=access,
                public_id=public_id,
                request_id=request_id_of(request),
                now=now,
            )
            body = ClaimOut(_claim(access, claim.public_id)).data
            return Response(body, status=202, headers={"ETag": etag(claim.revision)})

        return once(request, caller=self.caller(), now=now, act=act)


class Templates(TenantView):
    """What can be asked for."""

    noun = "catalogue"

    @extend_schema(operation_id="list_templates", responses=TemplateOut(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Every approved template that this tenant sees, with its questions."""
        tenant = self.access(slug).tenant
        versions = shown_to(tenant, timezone.now())
        return Response(TemplateOut(versions, many=True, context={"tenant": tenant.slug}).data)


class Offers(TenantView):
    """What the cluster has."""

    noun = "catalogue"

    @extend_schema(
        operation_id="list_offers",
        parameters=[OpenApiParameter("q", OpenApiTypes.STR)],
        responses=OfferOut(many=True),
    )
    def get(self, request: Request, slug: str) -> Response:
        """Device classes with their figures, as old as `seen_at` says."""
        tenant = self.access(slug).tenant
        offers = offers_for(search_of(request.query_params), tenant=tenant, counts_only=True)
        return Response(OfferOut(offers, many=True).data)


def _claim(access: Access, public_id: str) -> Claim:
    rows: Any = Claim.objects.of(access.tenant).whole()
    claim = rows.filter(public_id=public_id).first()
    if claim is None:
        raise Http404
    return claim
