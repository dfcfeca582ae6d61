"""What is offered: classes with their figures from the mirror."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.catalogue import offers_for
from devices.forecast import hit_rate
from devices.searches import search_of
from portal.ui.htmx import wants_partial
from tenants.access import tenant_for
from tenants.policy import Act


@require_safe
@login_required
def catalogue(request: HttpRequest, slug: str) -> HttpResponse:
    """Cards, or with `?view=table` a dense table; `?q=` searches names and words."""
    access = tenant_for(request.user, slug)
    query = search_of(request.GET)
    view = "table" if request.GET.get("view") == "table" else "cards"
    page = {
        "access": access,
        "offers": offers_for(query),
        "query": query,
        "view": view,
        "why_not_ask": access.why_not(Act.ASK),
        "rate": hit_rate(timezone.now()),
    }
    fragment = wants_partial(request)
    return render(request, "devices/_offers.html" if fragment else "devices/catalogue.html", page)
