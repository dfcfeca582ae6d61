"""The way to the company's sign-in, and what to say when it is away."""

from __future__ import annotations

import logging

from allauth.account.internal.decorators import login_not_required
from allauth.socialaccount.providers.openid_connect import views as openid
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST
from requests import RequestException

log = logging.getLogger(__name__)


@login_not_required
@require_POST
def login(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Sends the browser to the provider, or says that it does not answer (503)."""
    try:
        answer: HttpResponse = openid.login(request, provider_id)
    except RequestException as error:
        log.warning("sign-in provider away: %s", error)
        return render(request, "socialaccount/authentication_error.html", status=503)
    return answer
