"""Operations on limits: reading them with their lines, sharing out, asking for others, setting."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.budget_shapes import (
    BudgetLineOut,
    LimitIn,
    LimitOut,
    LimitsOut,
    SharesIn,
    WhatIn,
    WishIn,
    WishOut,
    limit_out,
    line_out,
)
from devices.tenancy.spending import Budget, budget_of, capacity_effects, lines_behind
from portal.api.etags import check_match, etag
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.api.base import KEY, MATCH, PAGED, PlatformView, TenantView
from tenants.limit_setting import ask_for_limit, remove_limit, set_limit, share_out
from tenants.limits import Line, What, strip
from tenants.models import ApiToken, Limit, LimitWish, Tenant
from tenants.policy import PlatformAct

WHICH = [
    OpenApiParameter("measure", str, required=True, enum=["devices", "capacity", "claims"]),
    OpenApiParameter("device_class", str),
    OpenApiParameter("capacity", str),
]


class Limits(TenantView):
    """What a tenant may have."""

    @extend_schema(operation_id="list_limits", responses=LimitsOut)
    def get(self, request: Request, slug: str) -> Response:
        """Every limit in four parts: used, reserved, granted, free."""
        return Response(_limits(self.access(slug).tenant))


class LimitLines(TenantView):
    """The lines behind the figures of one limit."""

    @extend_schema(
        operation_id="list_limit_lines",
        parameters=[*WHICH, *PAGED],
        responses=BudgetLineOut(many=True),
    )
    def get(self, request: Request, slug: str) -> Response:
        """They add up to used, reserved and granted; page by page, by kind, namespace, source."""
        access = self.access(slug)
        which = WhatIn(data=request.query_params.dict())
        which.is_valid(raise_exception=True)
        lines = lines_behind(access.tenant, which.what(), timezone.now())
        return self.list_page(lines, key_of, line_out)


class LimitWishes(TenantView):
    """Limits that owners ask the platform for."""

    @extend_schema(
        operation_id="list_limit_wishes",
        parameters=[OpenApiParameter("cursor", str), OpenApiParameter("limit", int)],
        responses=WishOut(many=True),
    )
    def get(self, request: Request, slug: str) -> Response:
        """Newest first, page by page; `done_at` is set once it holds."""
        rows = LimitWish.objects.filter(tenant=self.access(slug).tenant)
        return self.page(rows, WishOut)

    @extend_schema(
        operation_id="ask_for_limit", request=WishIn, responses={201: WishOut}, parameters=[KEY]
    )
    def post(self, request: Request, slug: str) -> Response:
        """Asks; nothing changes until an approver or an admin of the platform says yes."""
        access = self.access(slug, scope=ApiToken.Scope.OPERATE)
        body = WishIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            wish = ask_for_limit(
                access=access,
                what=body.what(),
                amount=body.validated_data["amount"],
                reason=body.validated_data["reason"],
                capacity=capacity_effects(body.what()),
                request_id=request_id_of(request),
                now=now,
            )
            return Response(WishOut(wish).data, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class LimitShares(TenantView):
    """How a limit is shared out over namespaces."""

    compares_itself = True

    @extend_schema(
        operation_id="share_limit_out",
        request=SharesIn,
        responses=LimitOut,
        parameters=[KEY, MATCH],
    )
    def put(self, request: Request, slug: str) -> Response:
        """All shares at once; an empty object lets every namespace draw on the whole."""
        access = self.access(slug, scope=ApiToken.Scope.OPERATE)
        body = SharesIn(data=request.data)
        body.is_valid(raise_exception=True)
        now, what = timezone.now(), body.what()

        def act() -> Response:
            _check_match(request, access.tenant, what)
            share_out(
                access=access,
                what=what,
                shares=body.validated_data["shares"],
                request_id=request_id_of(request),
                now=now,
            )
            return _one(access.tenant, what)

        return once(request, caller=self.caller(), now=now, act=act)


class PlatformLimits(PlatformView):
    """A tenant's limits as the platform sets them."""

    compares_itself = True

    @extend_schema(operation_id="list_limits_of_tenant", responses=LimitsOut)
    def get(self, request: Request, slug: str) -> Response:
        """The same figures as the tenant sees."""
        self.platform().require(PlatformAct.SEE)
        return Response(_limits(get_object_or_404(Tenant, slug=slug)))

    @extend_schema(
        operation_id="set_limit", request=LimitIn, responses=LimitOut, parameters=[KEY, MATCH]
    )
    def put(self, request: Request, slug: str) -> Response:
        """Sets one limit. Below what is in use it shows as overdrawn; nothing is taken away."""
        platform = self.platform(scope=ApiToken.Scope.OPERATE)
        platform.require(PlatformAct.SET_LIMITS)
        tenant = get_object_or_404(Tenant, slug=slug)
        body = LimitIn(data=request.data)
        body.is_valid(raise_exception=True)
        now, what = timezone.now(), body.what()

        def act() -> Response:
            _check_match(request, tenant, what)
            set_limit(
                platform=platform,
                tenant=tenant,
                what=what,
                amount=body.validated_data["amount"],
                request_id=request_id_of(request),
                now=now,
            )
            return _one(tenant, what)

        return once(request, caller=self.caller(), now=now, act=act)

    @extend_schema(operation_id="remove_limit", parameters=[*WHICH, MATCH], responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Takes one away: a class is then not allowed; claims and capacities are not limited."""
        platform = self.platform(scope=ApiToken.Scope.OPERATE)
        platform.require(PlatformAct.SET_LIMITS)
        tenant = get_object_or_404(Tenant, slug=slug)
        which = WhatIn(data=request.query_params.dict())
        which.is_valid(raise_exception=True)
        _check_match(request, tenant, which.what())
        remove_limit(
            platform=platform,
            tenant=tenant,
            what=which.what(),
            request_id=request_id_of(request),
            now=timezone.now(),
        )
        return Response(status=204)


def key_of(line: Line) -> tuple[str, ...]:
    """What tells one line of a limit from the others."""
    return line.kind.value, line.namespace, line.source


def _rows(tenant: Tenant) -> dict[What, Limit]:
    return {row.what: row for row in Limit.objects.filter(tenant=tenant)}


def _limits(tenant: Tenant) -> dict[str, Any]:
    budget, rows = budget_of(tenant, timezone.now()), _rows(tenant)
    return {
        "any_class": budget.any_class,
        "limits": [limit_out(one, budget, rows) for one in budget.strips],
    }


def _one(tenant: Tenant, what: What) -> Response:
    budget, rows = budget_of(tenant, timezone.now()), _rows(tenant)
    return Response(_body(budget, rows, what), headers={"ETag": etag(rows[what].revision)})


def _body(budget: Budget, rows: dict[What, Limit], what: What) -> dict[str, Any]:
    return limit_out(strip(what, budget.limits[what].amount, budget.lines), budget, rows)


def _check_match(request: Request, tenant: Tenant, what: What) -> None:
    """If-Match against the row's revision; a row that is not there has none and matches nothing."""
    if request.headers.get("If-Match") is None:
        return
    rows = _rows(tenant)
    row = rows.get(what)
    present = _body(budget_of(tenant, timezone.now()), rows, what) if row else {}
    check_match(request, row.revision if row else 0, present)
