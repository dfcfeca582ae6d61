"""Every address of Berth; the only place that knows all floors' pages."""

from __future__ import annotations

from allauth.account import views as account
from allauth.mfa.base import views as mfa
from allauth.mfa.totp import views as totp
from allauth.socialaccount import views as social
from allauth.socialaccount.providers.openid_connect import views as openid
from django.contrib.auth.decorators import login_required
from django.urls import include, path
from drf_spectacular.views import SpectacularJSONAPIView, SpectacularSwaggerSplitView

from devices.api import browsing_urls as browsing_api
from devices.api import urls as devices_api
from devices.views import ask, events, home, learn
from migrationplan.api import urls as migration_api
from portal.api.agents import llms_txt
from tenants.api import urls as tenants_api
from tenants.views import accounts, company, tokens

handler403 = "portal.ui.refusals.forbidden"
handler404 = "portal.ui.refusals.not_found"
handler500 = "portal.ui.refusals.broken"

api_console = SpectacularSwaggerSplitView.as_view(
    url_name="openapi", template_name="portal/api_console.html"
)

# Not all of allauth: accounts are made by administrators, and nothing here sends mail, so there is
# no registration, no mail address to confirm and no password reset by mail.
account_pages = [
    path("login/", account.login, name="account_login"),
    path("logout/", account.logout, name="account_logout"),
    path("inactive/", account.account_inactive, name="account_inactive"),
    path("reauthenticate/", account.reauthenticate, name="account_reauthenticate"),
    path("password/change/", accounts.password_change, name="account_change_password"),
    path("sessions/<int:pk>/end/", accounts.end_session, name="session-end"),
    path("company/cancelled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("company/error/", social.login_error, name="socialaccount_login_error"),
    path("oidc/<slug:provider_id>/login/", company.login, name="openid_connect_login"),
    path(
        "oidc/<slug:provider_id>/login/callback/", openid.callback, name="openid_connect_callback"
    ),
]

# The company's provider asks for its own second factor; its people need none here.
second_factor = [
    path("", accounts.local_account(mfa.index), name="mfa_index"),
    path("authenticate/", mfa.authenticate, name="mfa_authenticate"),
    path("reauthenticate/", mfa.reauthenticate, name="mfa_reauthenticate"),
    path("totp/activate/", accounts.local_account(totp.activate_totp), name="mfa_activate_totp"),
    path("totp/deactivate/", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path("recovery-codes/", include("allauth.mfa.recovery_codes.urls")),
]

urlpatterns = [
    path("", home.home, name="home"),
    path("account/tokens/", tokens.tokens, name="tokens"),
    path("account/tokens/<slug:prefix>/revoke/", tokens.revoke, name="token-revoke"),
    path("account/sessions/", include("allauth.usersessions.urls")),
    path("account/", include(account_pages)),
    path("account/2fa/", include(second_factor)),
    path("t/<slug:slug>/", home.tenant_home, name="tenant-home"),
    path("t/<slug:slug>/ask/<slug:template>/", ask.ask, name="request-new"),
    path("t/<slug:slug>/ask/<slug:template>/preview/", ask.preview, name="request-preview"),
    path(
        "t/<slug:slug>/how-allocation-works/",
        learn.how_allocation_works,
        name="how-allocation-works",
    ),
    path("t/<slug:slug>/events/", events.events, name="events"),
    path("api/v1/", include((devices_api.urlpatterns, "api"))),
    path("api/v1/", include((browsing_api.urlpatterns, "catalogue-api"))),
    path("api/v1/", include((tenants_api.urlpatterns, "tenants-api"))),
    path("api/v1/", include((migration_api.urlpatterns, "migration-api"))),
    path("llms.txt", llms_txt, name="llms-txt"),
    path("api/v1/openapi.json", SpectacularJSONAPIView.as_view(), name="openapi"),
    path("api/", login_required(api_console), name="api-console"),
    path("", include("tenants.urls")),
    path("", include("devices.urls")),
    path("", include("migrationplan.urls")),
    path("", include("devices.catalogue.urls")),
    path("", include("portal.ui.urls")),
]
