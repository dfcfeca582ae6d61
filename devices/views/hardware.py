"""Slice pools, nodes and devices, as somebody of a tenant or of the platform may see them."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from devices.asks.searches import search_of
from devices.catalogue import holdings
from devices.catalogue.browsing import (
    NODE_STATES,
    POOL_STATES,
    Viewer,
    device_of,
    drivers_of,
    health_of,
    look,
    node_of,
    node_rows,
    nodes_listed,
    pool_of,
    pool_rows,
    pools_listed,
)
from devices.dra.claims import DeviceKey
from devices.dra.hardwarefacts import devices_of_node, devices_of_pool, pool_facts
from devices.views.catalogue import PAGE_SIZE, framed, viewer_of


@require_safe
@login_required
def pools(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Every slice pool, those of one driver, or those that nothing is given from."""
    viewer, here, query = viewer_of(request, slug), look(), search_of(request.GET)
    if here is None:
        return not_seen(request, viewer, "Pools")
    driver, state = request.GET.get("driver", ""), request.GET.get("state", "")
    found = pools_listed(here, driver=driver, state=state, text=query)
    page = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    context = framed(
        viewer, here=here, page=page, rows=pool_rows(here, list(page)), query=query,
        driver=driver, state=state, drivers=drivers_of(here), states=POOL_STATES,
    )  # fmt: skip
    return render(request, "devices/pools.html", context)


@require_safe
@login_required
def pool(request: HttpRequest, driver: str, pool: str, slug: str | None = None) -> HttpResponse:
    """One pool: whether anything is given from it and why not, and its devices."""
    viewer, here = viewer_of(request, slug), look()
    if here is None:
        return not_seen(request, viewer, pool)
    found = pool_of(here, driver, pool)
    if found is None:
        raise Http404
    devices = Paginator(list(devices_of_pool(here.snapshot, found)), PAGE_SIZE)
    context = framed(
        viewer, here=here, pool=pool_facts(here.snapshot, found),
        page=devices.get_page(request.GET.get("page")), health=health_of([driver]).get(driver),
    )  # fmt: skip
    return render(request, "devices/pool.html", context)


@require_safe
@login_required
def nodes(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Nodes, by default those with devices."""
    viewer, here, query = viewer_of(request, slug), look(), search_of(request.GET)
    if here is None:
        return not_seen(request, viewer, "Nodes")
    state = request.GET.get("state", "devices")
    page = Paginator(nodes_listed(here, state=state, text=query), PAGE_SIZE)
    shown = page.get_page(request.GET.get("page"))
    context = framed(
        viewer, here=here, page=shown, rows=node_rows(here, list(shown)), query=query,
        state=state, states=NODE_STATES,
    )  # fmt: skip
    return render(request, "devices/nodes.html", context)


@require_safe
@login_required
def node(request: HttpRequest, name: str, slug: str | None = None) -> HttpResponse:
    """One node: its devices, taints in words, drivers' health, what plugins offer."""
    viewer, here = viewer_of(request, slug), look()
    if here is None:
        return not_seen(request, viewer, name)
    found = node_of(here, name)
    if found is None:
        raise Http404
    by_pool = devices_of_node(here.snapshot, found)
    drivers = sorted({driver for driver, _ in found.pools})
    context = framed(
        viewer, here=here, node=found, pools=by_pool, health=list(health_of(drivers).values())
    )
    return render(request, "devices/node.html", context)


@require_safe
@login_required
def device(
    request: HttpRequest, driver: str, pool: str, device: str, slug: str | None = None
) -> HttpResponse:
    """One device: what it is, how it stands, and who held it when."""
    viewer, here = viewer_of(request, slug), look()
    key: DeviceKey = (driver, pool, device)
    found = device_of(here, key) if here is not None else None
    rows = holdings.of_device(key)
    if found is None and not rows.exists():
        raise Http404
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    tenant = viewer.tenant.slug if viewer.tenant is not None else None
    context = framed(
        viewer, here=here, device=found, key=key, page=page,
        lines=holdings.lines(page, tenant), health=health_of([driver]).get(driver),
    )  # fmt: skip
    return render(request, "devices/device.html", context)


def not_seen(request: HttpRequest, viewer: Viewer, title: str) -> HttpResponse:
    """The page while nobody knows what there is."""
    return render(request, "devices/not_seen.html", framed(viewer, title=title))
