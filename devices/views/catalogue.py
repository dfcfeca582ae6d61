"""What is offered: classes with their figures, and a search over groups of equal devices."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.asks.searches import search_of
from devices.catalogue.browsing import Viewer, look, of_platform, of_tenant
from devices.catalogue.classes import offers_for, search
from devices.dra.hardwarefacts import nodes_of_class
from devices.dra.hardwareholders import claims_of_class
from devices.dra.restate import restated
from devices.forecasts.forecast import hit_rate
from portal.ui.htmx import wants_partial
from tenants.access import platform_access, tenant_for
from tenants.policy import Act, PlatformAct

PAGE_SIZE = 50


def viewer_of(request: HttpRequest, slug: str | None) -> Viewer:
    """Somebody of the tenant `slug`, or of the platform; 404 for whoever is neither."""
    if slug is not None:
        return of_tenant(tenant_for(request.user, slug))
    platform = platform_access(request.user)
    platform.require(PlatformAct.SEE)
    return of_platform(platform)


def framed(viewer: Viewer, **page: Any) -> dict[str, Any]:
    """What every page here needs, for somebody of a tenant or of the platform."""
    access = viewer.access
    own = {} if access is None else {"access": access, "why_not_ask": access.why_not(Act.ASK)}
    return {"viewer": viewer, "now": timezone.now(), **own, **page}


@require_safe
@login_required
def catalogue(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Cards, or with `?view=table` a dense table; `?q=` looks for groups of devices instead."""
    viewer = viewer_of(request, slug)
    query = search_of(request.GET)
    offers = offers_for(tenant=viewer.tenant)
    page = framed(
        viewer,
        offers=offers,
        query=query,
        found=search(query, offers) if query else None,
        view="table" if request.GET.get("view") == "table" else "cards",
        rate=hit_rate(timezone.now()),
    )
    fragment = wants_partial(request)
    return render(request, "devices/_offers.html" if fragment else "devices/catalogue.html", page)


@require_safe
@login_required
def one_class(request: HttpRequest, name: str, slug: str | None = None) -> HttpResponse:
    """One class: its groups of equal devices, where they are, who holds them."""
    viewer = viewer_of(request, slug)
    offer = next((one for one in offers_for(tenant=viewer.tenant) if one.name == name), None)
    if offer is None:
        raise Http404
    here = look()
    nodes = nodes_of_class(here.snapshot, name) if here is not None else {}
    known = here.snapshot.classes.get(name) if here is not None else None
    page = framed(
        viewer,
        offer=offer,
        here=here,
        nodes=Paginator(list(nodes.items()), PAGE_SIZE).get_page(request.GET.get("page")),
        holders=claims_of_class(here.snapshot, name, viewer.namespaces) if here else None,
        selectors=restated(known.selectors) if known else (),
        extended=known.extended_resource if known else "",
    )
    return render(request, "devices/class.html", page)
