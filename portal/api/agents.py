"""`/llms.txt`: what an agent has to know before it uses this Berth. Says nothing that is secret."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from portal.api.confirming import GOOD_FOR


@require_GET
def llms_txt(request: HttpRequest) -> HttpResponse:
    """Plain text, the same for everybody."""
    page = {
        "base": settings.PUBLIC_URL,
        "rates": settings.API_RATES,
        "minutes": int(GOOD_FOR.total_seconds() // 60),
    }
    return render(request, "portal/llms.txt", page, content_type="text/markdown; charset=utf-8")
