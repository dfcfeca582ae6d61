"""Bearer tokens for the API. A token reaches one tenant or the platform, as its scopes say."""

from __future__ import annotations

from django.conf import settings
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.addresses import client_address
from portal.request_ids import request_id_of
from tenants.models import ApiToken, User
from tenants.tokens import find_token


class TokenScheme(OpenApiAuthenticationExtension):
    """How the OpenAPI document tells of tokens."""

    target_class = "tenants.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "berth_…"}


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer berth_…`"""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, text = get_authorization_header(request).decode("latin-1").partition(" ")
        if scheme.lower() != "bearer":
            return None
        token = find_token(
            text.strip(),
            timezone.now(),
            address=client_address(request, proxies=settings.ALLAUTH_TRUSTED_PROXY_COUNT),
            request_id=request_id_of(request),
        )
        if token is None:
            raise AuthenticationFailed(
                "This token is unknown, expired, revoked, or not for this address."
            )
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="berth"'
