"""Operations on claims beside asking: extend, describe, release several, and their histories."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.listing import FILTERS, asked_for
from devices.api.shapes import ClaimOut, EventOut
from devices.asks.claimfacts import said_about, told
from devices.asks.claimlist import refusals
from devices.asks.claims import describe_claim, extend_claim
from devices.asks.releases import MOST_AT_A_TIME, release_several
from devices.models import Claim
from portal.api.bodies import Body
from portal.api.etags import check_match, etag
from portal.api.idempotency import once
from portal.keyset import Order
from portal.request_ids import request_id_of
from tenants.access import Access
from tenants.api.base import KEY, MATCH, PlatformView, TenantView
from tenants.longest import set_longest_days
from tenants.models import ApiToken, Tenant
from tenants.policy import PlatformAct

PAGING = [OpenApiParameter("cursor", str), OpenApiParameter("limit", int)]


class ExtendIn(Body):
    """For how many days from now on."""

    days = serializers.IntegerField(
        allow_null=True, help_text="null: without an end, where that is allowed."
    )


class NoteIn(Body):
    """What a claim is for."""

    note = serializers.CharField(allow_blank=True)


class ReleaseIn(Body):
    """Which claims to release."""

    ids = serializers.ListField(
        child=serializers.CharField(), help_text=f"1 to {MOST_AT_A_TIME} ids."
    )


class OutcomeOut(serializers.Serializer):
    """What became of one of several; `code` is empty where it is released."""

    id = serializers.CharField(source="public_id")
    name = serializers.CharField()
    state = serializers.CharField()
    code = serializers.CharField()
    message = serializers.CharField()


class ToldOut(serializers.Serializer):
    """An event of the cluster, kept for 7 days; `forgotten`: the cluster has it no more."""

    reason = serializers.CharField(source="event.reason")
    message = serializers.CharField(source="event.message")
    warning = serializers.BooleanField(source="event.warning")
    kind = serializers.CharField(source="event.kind")
    name = serializers.CharField(source="event.name")
    count = serializers.IntegerField(source="event.count")
    last = serializers.DateTimeField(source="event.last", allow_null=True)
    forgotten = serializers.BooleanField()


class PlatformClaimOut(ClaimOut):
    """An ask of any tenant: without its answers and its note, which are the tenant's."""

    class Meta(ClaimOut.Meta):
        fields = [name for name in ClaimOut.Meta.fields if name not in {"values", "note"}]
        read_only_fields = fields


class Extend(TenantView):
    """Setting a claim's end anew."""

    noun = "claims"

    @extend_schema(
        operation_id="extend_claim", request=ExtendIn, responses=ClaimOut, parameters=[KEY, MATCH]
    )
    def post(self, request: Request, slug: str, public_id: str) -> Response:
        """So many days from now; earlier than before is fine. Refused once it is released."""
        access = self.access(slug, scope=ApiToken.Scope.REQUEST)
        body = ExtendIn(data=request.data)
        body.is_valid(raise_exception=True)
        return _changed(self, access, public_id, extend_claim, body.validated_data)


class Note(TenantView):
    """Writing what a claim is for."""

    noun = "claims"

    @extend_schema(
        operation_id="describe_claim", request=NoteIn, responses=ClaimOut, parameters=[KEY, MATCH]
    )
    def put(self, request: Request, slug: str, public_id: str) -> Response:
        """Replaces the note; empty takes it away."""
        access = self.access(slug, scope=ApiToken.Scope.REQUEST)
        body = NoteIn(data=request.data)
        body.is_valid(raise_exception=True)
        return _changed(self, access, public_id, describe_claim, body.validated_data)


class ReleaseSeveral(TenantView):
    """Giving several claims back."""

    noun = "claims"

    @extend_schema(
        operation_id="release_claims",
        request=ReleaseIn,
        responses={202: OutcomeOut(many=True)},
        parameters=[KEY],
    )
    def post(self, request: Request, slug: str) -> Response:
        """Each by itself: those that cannot go are named with a code, the others are released."""
        access = self.access(slug, scope=ApiToken.Scope.REQUEST)
        body = ReleaseIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            outcomes = release_several(
                access=access,
                public_ids=list(dict.fromkeys(body.validated_data["ids"])),
                request_id=request_id_of(request),
                now=now,
            )
            return Response(OutcomeOut(outcomes, many=True).data, status=202)

        return once(request, caller=self.caller(), now=now, act=act)


class ClaimEvents(TenantView):
    """The history of a claim."""

    noun = "claims"

    @extend_schema(
        operation_id="list_claim_events", parameters=PAGING, responses=EventOut(many=True)
    )
    def get(self, request: Request, slug: str, public_id: str) -> Response:
        """All that happened to it, newest first, page by page."""
        claim = _claim(self.access(slug), public_id)
        return self.sorted_page(claim.events.all(), Order("pk", descending=True), EventOut)


class ClaimSaid(TenantView):
    """What the cluster said about a claim."""

    noun = "claims"

    @extend_schema(
        operation_id="list_cluster_events", parameters=PAGING, responses=ToldOut(many=True)
    )
    def get(self, request: Request, slug: str, public_id: str) -> Response:
        """Events about it and its Pods, newest first, also those that the cluster forgot."""
        claim = _claim(self.access(slug), public_id)
        return self.sorted_page(
            said_about(claim), Order("seen_at", descending=True), ToldOut, read=told
        )


class PlatformClaims(PlatformView):
    """The claims of all tenants."""

    noun = "platform"
    refusals = staticmethod(refusals)

    @extend_schema(
        operation_id="list_platform_claims",
        parameters=[OpenApiParameter("tenant", str), *FILTERS],
        responses=PlatformClaimOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Page by page, with the filters, orders and saved views of the portal's own list."""
        access = self.platform()
        access.require(PlatformAct.SEE)
        rows, order = asked_for(request, access, Claim.objects.all())
        return self.sorted_page(rows, order, PlatformClaimOut)


class LongestDays(PlatformView):
    """How long the claims of a tenant may last."""

    noun = "platform"

    @extend_schema(
        operation_id="set_longest_days", request=ExtendIn, responses=ExtendIn, parameters=[KEY]
    )
    def put(self, request: Request, slug: str) -> Response:
        """Sets how many days ahead their end may lie; null: they need none. Open claims keep
        theirs.
        """
        platform = self.platform(scope=ApiToken.Scope.OPERATE)
        platform.require(PlatformAct.SET_LIMITS)
        tenant = get_object_or_404(Tenant, slug=slug)
        body = ExtendIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            changed = set_longest_days(
                platform=platform,
                tenant=tenant,
                days=body.validated_data["days"],
                request_id=request_id_of(request),
                now=now,
            )
            return Response({"days": changed.longest_days})

        return once(request, caller=self.caller(), now=now, act=act)


def _claim(access: Access, public_id: str) -> Claim:
    claim = Claim.objects.of(access.tenant).whole().filter(public_id=public_id).first()
    if claim is None:
        raise Http404
    return claim


def _changed(
    view: TenantView, access: Access, public_id: str, verb: Any, asked: dict[str, Any]
) -> Response:
    """One verb on one claim: If-Match first, done once, answered with what it is now."""
    request, now = view.request, timezone.now()

    def act() -> Response:
        before = _claim(access, public_id)
        check_match(request, before.revision, ClaimOut(before).data)
        claim = verb(
            access=access,
            public_id=public_id,
            request_id=request_id_of(request),
            now=now,
            **asked,
        )
        return Response(ClaimOut(claim).data, headers={"ETag": etag(claim.revision)})

    return once(request, caller=view.caller(), now=now, act=act)
