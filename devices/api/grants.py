"""Operations on grants: list, offer, look, accept, decline, revoke."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.budget_shapes import GrantDetailOut, GrantIn, GrantOut
from devices.tenancy.lending import touched, wrong_terms
from portal.api.etags import check_match, etag
from portal.api.idempotency import once
from portal.api.paging import CursorPaging
from portal.errors import Invalid
from portal.request_ids import request_id_of
from tenants import grants as verbs
from tenants.access import Access
from tenants.api.base import KEY, MATCH, TenantView
from tenants.models import ApiToken, Grant
from tenants.sums import used_of

DECIDED: dict[str, Any] = {
    "request": None,
    "responses": GrantDetailOut,
    "parameters": [KEY, MATCH],
}


class Grants(TenantView):
    """What a tenant gave, took, or is offered."""

    @extend_schema(
        operation_id="list_grants",
        parameters=[
            OpenApiParameter("state", str, enum=Grant.State.values),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=GrantOut(many=True),
    )
    def get(self, request: Request, slug: str) -> Response:
        """Newest first, page by page."""
        rows = verbs.visible(self.access(slug).tenant)
        rows = self.in_state(rows, Grant.State.values)
        paging = CursorPaging()
        page = paging.paginate_queryset(rows, request, view=self) or []
        used = used_of(grant.pk for grant in page)
        return paging.get_paginated_response(GrantOut(page, many=True, context={"used": used}).data)

    @extend_schema(
        operation_id="offer_grant", request=GrantIn, responses={201: GrantOut}, parameters=[KEY]
    )
    def post(self, request: Request, slug: str) -> Response:
        """Offers; the answer is the same whether such a namespace exists or not."""
        access = self.access(slug, scope=ApiToken.Scope.OPERATE)
        body = GrantIn(data=request.data)
        body.is_valid(raise_exception=True)
        terms, now = body.validated_data, timezone.now()

        def act() -> Response:
            if wrong := wrong_terms(access.tenant, terms["template"], terms["device_class"]):
                raise Invalid("Nothing was offered.", fields=wrong)
            made = verbs.offer(access=access, **terms, request_id=request_id_of(request), now=now)
            where = reverse("api:grant", args=[slug, made.public_id])
            headers = {"Location": where, "ETag": etag(made.revision)}
            data = GrantOut(made, context={"used": {}}).data
            return Response(data, status=201, headers=headers)

        return once(request, caller=self.caller(), now=now, act=act)


class OneGrant(TenantView):
    """One grant."""

    @extend_schema(operation_id="get_grant", responses=GrantDetailOut)
    def get(self, request: Request, slug: str, public_id: str) -> Response:
        """Its terms, and what ending it would leave running."""
        access = self.access(slug)
        return _answer(access, verbs.find(access, public_id))


class _Decide(TenantView):
    """One of the verbs that take nothing but the grant."""

    verb: ClassVar[Callable[..., Grant]]

    def _act(self, request: Request, slug: str, public_id: str) -> Response:
        access = self.access(slug, scope=ApiToken.Scope.OPERATE)
        now = timezone.now()

        def act() -> Response:
            before = verbs.find(access, public_id)
            if request.headers.get("If-Match") is not None:
                check_match(request, before.revision, _answer(access, before).data)
            grant = type(self).verb(
                access=access, public_id=public_id, request_id=request_id_of(request), now=now
            )
            return _answer(access, grant)

        return once(request, caller=self.caller(), now=now, act=act)


class Accept(_Decide):
    """Saying yes to an offer."""

    verb = staticmethod(verbs.accept)

    @extend_schema(operation_id="accept_grant", **DECIDED)
    def post(self, request: Request, slug: str, public_id: str) -> Response:
        """Accepts; what the giver pays for is kept free from now on."""
        return self._act(request, slug, public_id)


class Decline(_Decide):
    """Saying no to an offer."""

    verb = staticmethod(verbs.decline)

    @extend_schema(operation_id="decline_grant", **DECIDED)
    def post(self, request: Request, slug: str, public_id: str) -> Response:
        """Declines."""
        return self._act(request, slug, public_id)


class Revoke(_Decide):
    """Ending a grant, or taking an offer back."""

    verb = staticmethod(verbs.revoke)

    @extend_schema(operation_id="revoke_grant", **DECIDED)
    def post(self, request: Request, slug: str, public_id: str) -> Response:
        """Ends it; what runs stays, as `touches` says."""
        return self._act(request, slug, public_id)


def _answer(access: Access, grant: Grant) -> Response:
    seen = touched(grant, access.tenant)
    grant.touches = {  # type: ignore[attr-defined]
        "asks": seen.asks,
        "devices": seen.devices,
        "pods": seen.pods,
        "claims": [claim.public_id for claim in seen.claims],
    }
    data = GrantDetailOut(grant, context={"used": used_of([grant.pk])}).data
    return Response(data, headers={"ETag": etag(grant.revision)})
