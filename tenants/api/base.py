"""What every operation of the API stands on: who calls, in which tenant, and with which scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from django.db.models import QuerySet
from django.http import Http404
from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.utils.urls import replace_query_param

from portal.api.operations import SAFE, Operation
from portal.api.paging import CursorPaging
from portal.errors import Invalid, NotPermitted
from portal.keyset import Order, cut, cut_list
from tenants.access import Access, PlatformAccess, platform_access, tenant_for, tenant_through
from tenants.models import ApiToken

Rows = TypeVar("Rows", bound=QuerySet[Any])
Item = TypeVar("Item")

KEY = OpenApiParameter(
    "Idempotency-Key", str, OpenApiParameter.HEADER, description="The same key is done once."
)
MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="The ETag you looked at."
)

PAGED = [OpenApiParameter("cursor", str), OpenApiParameter("limit", int)]


class CallerView(Operation):
    """An operation of somebody who is signed in, or of a token that acts for them."""

    noun: ClassVar[str] = "platform"

    def token(self) -> ApiToken | None:
        token = self.request.auth
        return token if isinstance(token, ApiToken) else None

    def caller(self) -> str:
        """Whose idempotency keys these are."""
        token = self.token()
        if token is not None:
            return f"token {token.prefix}"
        return str(self.request.user.person)  # type: ignore[union-attr]

    def must_rehearse(self) -> bool:
        """Whether this token acts only after a dry run, as those of agents should."""
        token = self.token()
        return token is not None and token.dry_run_first

    def in_state(self, rows: Rows, states: Iterable[str]) -> Rows:
        """Those of `?state=`, all where it is not asked for; `Invalid` for one not in `states`."""
        state = self.request.query_params.get("state")
        if state is None:
            return rows
        if state not in (known := list(states)):
            raise Invalid("No such state.", fields={"state": f"One of {', '.join(known)}."})
        return rows.filter(state=state)

    def page(self, rows: QuerySet[Any], shape: type[Serializer]) -> Response:
        """The page of `rows` that `?cursor=` and `?limit=` ask for, each in its `shape`."""
        paging = CursorPaging()
        page = paging.paginate_queryset(rows, self.request, view=self)
        return paging.get_paginated_response(shape(page, many=True).data)

    def sorted_page(
        self,
        rows: QuerySet[Any],
        order: Order,
        shape: type[Serializer],
        *,
        read: Callable[[Sequence[Any]], Sequence[Any]] = tuple,
    ) -> Response:
        """The same in any order; `read` makes of the rows what the shape is of.

        Raises `Invalid` for a cursor of another list.
        """
        request = self.request
        size = CursorPaging().get_page_size(request) or CursorPaging.page_size
        page = cut(rows, order, size, request.query_params.get("cursor", ""))
        return self._said(page.before, page.after, shape(read(page.rows), many=True).data)

    def list_page(
        self,
        items: Iterable[Item],
        key: Callable[[Item], tuple[str, ...]],
        shape: Callable[[Item], Any],
    ) -> Response:
        """The same of what is no table; `key` tells its items apart and orders them."""
        request = self.request
        size = CursorPaging().get_page_size(request) or CursorPaging.page_size
        page, before, after = cut_list(items, key, size, request.query_params.get("cursor", ""))
        return self._said(before, after, [shape(one) for one in page])

    def _said(self, before: str, after: str, results: Any) -> Response:
        here = self.request.build_absolute_uri()

        def at(cursor: str) -> str | None:
            return replace_query_param(here, "cursor", cursor) if cursor else None

        return Response({"next": at(after), "previous": at(before), "results": results})

    def demand(self, scope: str) -> frozenset[str] | None:
        """The token's scopes, none where a person is signed in; 403 where `scope` is missing."""
        token = self.token()
        if token is None:
            return None
        if scope not in token.scopes:
            raise NotPermitted(
                f"This token may {', '.join(token.scopes)}; this needs the scope {scope}.",
                scopes=token.scopes,
                needed=scope,
            )
        return frozenset(token.scopes)


class TenantView(CallerView):
    """An operation inside one tenant. A token reaches its own tenant only; others do not exist."""

    noun: ClassVar[str] = "tenants"

    def access(self, slug: str, *, scope: str = ApiToken.Scope.READ) -> Access:
        """The tenant, or 404 for strangers and for tokens of other tenants, or 403 by scope."""
        token = self.token()
        if token is not None and (token.tenant is None or token.tenant.slug != slug):
            raise Http404
        if token is not None and self.request.method in SAFE:
            access = tenant_through(token)
        else:
            access = tenant_for(self.request.user, slug)
        return access.narrowed(self.demand(scope))


class PlatformView(CallerView):
    """An operation on the platform. Tokens of tenants, and people without a role, see nothing."""

    def platform(self, *, scope: str = ApiToken.Scope.READ) -> PlatformAccess:
        """What the caller is for the platform, or 404, or 403 by scope."""
        token = self.token()
        if token is not None and token.tenant is not None:
            raise Http404
        access = platform_access(self.request.user)
        return access.narrowed(self.demand(scope))
