"""Who gives out the devices of each node, now or as of a moment, and the history of one node."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.asks.searches import search_of
from devices.dra.atrisk import at_risk
from devices.dra.ownership import Owner
from devices.fleet.ownershipbook import as_of, by_type, moment_of
from devices.forecasts.warm import warm
from devices.models import OwnershipLine
from portal.ui.htmx import wants_partial
from tenants.access import platform_access

PAGE_SIZE = 100


@require_safe
@login_required
def ownership(request: HttpRequest) -> HttpResponse:
    """Every node and type of device; `?at=` is a moment in UTC, `?owner=`, `?type=` and `?q=`
    narrow the list.
    """
    platform_access(request.user)
    asked, query = request.GET, search_of(request.GET)
    at, wrong = moment_of(asked.get("at", ""))
    lines = as_of(at)
    types = by_type(lines)
    rows = lines.order_by("node", "type")
    for name, value in (("owner", asked.get("owner", "")), ("type", asked.get("type", ""))):
        if value:
            rows = rows.filter(**{name: value})
    if query:
        rows = rows.filter(node__icontains=query)
    context = {
        "types": types,
        "page": Paginator(rows, PAGE_SIZE).get_page(asked.get("page")),
        "owners": [one.value for one in Owner],
        "owner": asked.get("owner", ""),
        "type": asked.get("type", ""),
        "query": query,
        "at": at,
        "wrong": wrong,
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    part = "devices/_ownership.html" if wants_partial(request) else "devices/ownership.html"
    return render(request, part, context, status=422 if wrong else 200)


@require_safe
@login_required
def ownership_node(request: HttpRequest, node: str) -> HttpResponse:
    """What one node's devices were, newest first, and who may sit on the same hardware now."""
    platform_access(request.user)
    lines = OwnershipLine.objects.filter(node=node)
    page = Paginator(lines, PAGE_SIZE).get_page(request.GET.get("page"))
    if not page.paginator.count:
        raise Http404
    seen = warm()
    risks = at_risk(seen.now) if seen is not None else {}
    context = {
        "node": node,
        "now_lines": lines.filter(until=None).order_by("type"),
        "page": page,
        "risks": [(place[1], who) for place, who in risks.items() if place[0] == node],
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    return render(request, "devices/ownership_node.html", context)
