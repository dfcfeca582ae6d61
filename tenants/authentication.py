"""Bearer tokens for the API. A token reaches its own tenant only, and only what its scopes say."""

from __future__ import annotations

from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

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
        token = find_token(text.strip(), timezone.now())
        if token is None:
            raise AuthenticationFailed("This token is unknown, expired or revoked; make a new one.")
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="berth"'
