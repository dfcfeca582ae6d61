"""Operations on the audit: search it page by page, or take it as a file."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponseBase, QueryDict
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.paging import CursorPaging
from portal.audit.export import KINDS, as_row
from portal.audit.models import AuditLine
from portal.audit.search import Search, found
from portal.errors import Invalid
from tenants.api.base import PlatformView, TenantView
from tenants.people import names_of
from tenants.policy import Act, PlatformAct
from tenants.views.audit import SearchForm, export

FILTERS = [
    OpenApiParameter("actor", str, description="User name."),
    OpenApiParameter("action", str, description="claim.asked, or a family: claim."),
    OpenApiParameter("subject", str, description="claim 7fq2x4m8, or a kind: claim."),
    OpenApiParameter("request_id", str),
    OpenApiParameter("source", str, enum=["berth", "cluster"]),
    OpenApiParameter("since", OpenApiTypes.DATETIME),
    OpenApiParameter("until", OpenApiTypes.DATETIME),
]
PAGING = [OpenApiParameter("cursor", str), OpenApiParameter("limit", int)]
AS = OpenApiParameter("as", str, enum=list(KINDS), description="jsonl, unless you say csv.")
FILE = {(200, "application/jsonl"): OpenApiTypes.STR, (200, "text/csv"): OpenApiTypes.STR}


class AuditLineOut(serializers.Serializer):
    """One act, or one sighting (source: cluster)."""

    number = serializers.IntegerField()
    at = serializers.DateTimeField()
    source = serializers.CharField()  # type: ignore[assignment]
    person = serializers.UUIDField(allow_null=True)
    name = serializers.CharField(help_text="What the person is called today.")
    tenant = serializers.CharField()
    action = serializers.CharField()
    subject = serializers.CharField()
    request_id = serializers.CharField()
    facts = serializers.JSONField()
    previous = serializers.CharField()
    digest = serializers.CharField()


class TenantAudit(TenantView):
    """A tenant's own audit, for its owners."""

    noun = "audit"

    @extend_schema(
        operation_id="search_tenant_audit",
        parameters=[*FILTERS, *PAGING],
        responses=AuditLineOut(many=True),
    )
    def get(self, request: Request, slug: str) -> Response:
        """Newest first, page by page."""
        self.access(slug).require(Act.READ_AUDIT)
        return _listed(self, request, _search(request.query_params, slug))


class TenantAuditExport(TenantView):
    """A tenant's own audit as a file."""

    noun = "audit"

    @extend_schema(operation_id="export_tenant_audit", parameters=[*FILTERS, AS], responses=FILE)
    def get(self, request: Request, slug: str) -> HttpResponseBase:
        """Oldest first, streamed; the export is an audit line itself."""
        self.access(slug).require(Act.READ_AUDIT)
        return _file(request, _search(request.query_params, slug))


class WholeAudit(PlatformView):
    """The audit of everything, for auditors."""

    noun = "audit"

    @extend_schema(
        operation_id="search_audit",
        parameters=[*FILTERS, OpenApiParameter("tenant", str), *PAGING],
        responses=AuditLineOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first, page by page."""
        self.platform().require(PlatformAct.READ_AUDIT)
        return _listed(self, request, _search(request.query_params, None))


class WholeAuditExport(PlatformView):
    """The audit of everything as a file."""

    noun = "audit"

    @extend_schema(
        operation_id="export_audit",
        parameters=[*FILTERS, OpenApiParameter("tenant", str), AS],
        responses=FILE,
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Oldest first, streamed; the export is an audit line itself."""
        self.platform().require(PlatformAct.READ_AUDIT)
        return _file(request, _search(request.query_params, None))


def _search(asked: QueryDict, tenant: str | None) -> Search | None:
    form = SearchForm(asked)
    if not form.is_valid():
        wrong = {name: " ".join(map(str, errors)) for name, errors in form.errors.items()}
        raise Invalid("Nothing was looked for.", fields=wrong)
    return form.search(tenant)


def _listed(view: Any, request: Request, search: Search | None) -> Response:
    paging = CursorPaging()
    rows = found(search) if search else AuditLine.objects.none()
    page: list[AuditLine] = paging.paginate_queryset(rows, request, view=view) or []
    names = names_of(line.person for line in page)
    return paging.get_paginated_response([as_row(line, names[line.person]) for line in page])


def _file(request: Request, search: Search | None) -> HttpResponseBase:
    kind = request.query_params.get("as", "jsonl")
    if kind not in KINDS:
        raise Invalid("Nothing was exported.", fields={"as": f"One of {', '.join(KINDS)}."})
    # The person may be known by their token only, which Django's own request does not see.
    request._request.user = request.user
    return export(request._request, search, kind)
