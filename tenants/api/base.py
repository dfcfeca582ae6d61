"""What every operation of the API stands on: who calls, in which tenant, and with which scope."""

from __future__ import annotations

from typing import ClassVar

from django.http import Http404
from drf_spectacular.utils import OpenApiParameter
from rest_framework.views import APIView

from portal.errors import NotPermitted
from tenants.access import Access, PlatformAccess, platform_access, tenant_for
from tenants.models import ApiToken

KEY = OpenApiParameter(
    "Idempotency-Key", str, OpenApiParameter.HEADER, description="The same key is done once."
)
MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description="The ETag you looked at."
)


class CallerView(APIView):
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
