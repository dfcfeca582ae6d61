"""How people sign in: local accounts made by administrators, and the company's OpenID Connect.

Lock-out counts failures per account *and* address, so that whoever guesses somebody's password from
elsewhere locks out only themselves. A valid session goes on; the company's sign-in is not counted.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from portal.addresses import client_address
from portal.request_ids import request_id_of
from tenants.models import User
from tenants.signin import follow_groups, groups_in

log = logging.getLogger(__name__)


class ClosedAccounts(DefaultAccountAdapter):
    """allauth's account rules, with self-registration closed."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def post_login(
        self, request: HttpRequest, user: User, *, signal_kwargs: Any = None, **rest: Any
    ) -> HttpResponse:
        """After a sign-in with the company's account, roles follow the groups of this moment."""
        login = (signal_kwargs or {}).get("sociallogin")
        if login is not None:
            follow_groups(
                user=user,
                groups=groups_in(claims_of(login), settings.OIDC_GROUPS_CLAIM),
                now=timezone.now(),
                request_id=request_id_of(request),
            )
        return super().post_login(request, user, signal_kwargs=signal_kwargs, **rest)

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Which failures are counted together: those for one account from one address."""
        account = super()._get_login_attempts_cache_key(request, **credentials)
        address = client_address(request, proxies=settings.ALLAUTH_TRUSTED_PROXY_COUNT)
        return f"{account}@{address}"


class CompanyAccounts(DefaultSocialAccountAdapter):
    """The company's sign-in: whoever it vouches for comes in, without a role."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True

    def is_auto_signup_allowed(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return True

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """An account is the provider's or local, never both.

        A mail address that a local account has already proves nothing here, so it is left out
        instead of joining the two.
        """
        if sociallogin.state.get("process") == "connect":
            raise PermissionDenied("Local accounts are not joined with the company's.")
        taken = User.objects.filter(email__iexact=sociallogin.user.email or "-")
        if not sociallogin.is_existing and taken.exists():
            sociallogin.user.email = ""
            sociallogin.email_addresses = []

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> None:
        """People are told little; whoever reads the log with their request id is told why."""
        log.warning("company sign-in failed: %s %r", error, exception)

    def populate_user(
        self, request: HttpRequest, sociallogin: SocialLogin, data: Mapping[str, Any]
    ) -> User:
        user: User = super().populate_user(request, sociallogin, data)
        user.display_name = str(data.get("name") or "")[:120]
        return user


def claims_of(login: SocialLogin) -> dict[str, Any]:
    """What the provider says of a person now; userinfo comes first, the id token fills gaps."""
    data = login.account.extra_data
    return {**(data.get("id_token") or {}), **(data.get("userinfo") or {})}
