"""The parameters of claim lists, the same as in an address of the portal."""

from __future__ import annotations

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from devices.asks.claimlist import ALL, OPEN, ORDERS, PARAMETERS, found, search_from
from devices.asks.savedviews import Viewer, named, visible
from devices.dra.lifecycle import State
from devices.models.claim import ClaimQuerySet
from portal.keyset import Order
from tenants.access import Access

FILTERS = [
    OpenApiParameter("q", str, description="Part of a name or a note, or an id."),
    OpenApiParameter(
        "state", str, enum=[*map(str, State), OPEN, ALL], description="Without it: all."
    ),
    OpenApiParameter("class", str, description="A device class that it asks for."),
    OpenApiParameter("namespace", str),
    OpenApiParameter("template", str, description="Slug of its template."),
    OpenApiParameter("by", str, description="User name of who asked; `me` is the caller."),
    OpenApiParameter("age", str, description="`under-24h` or `over-7d` since it was asked for."),
    OpenApiParameter("ends", str, description="`7d`: within that time; `never`: not by itself."),
    OpenApiParameter(
        "attention", str, enum=["yes", "no"], description="Failed, pending, held or ending soon."
    ),
    OpenApiParameter("sort", str, enum=list(ORDERS)),
    OpenApiParameter(
        "view", str, description="Name of a saved view; what else is given goes before it."
    ),
    OpenApiParameter("cursor", str),
    OpenApiParameter("limit", int),
]


def asked_for(request: Request, access: Viewer, rows: ClaimQuerySet) -> tuple[ClaimQuerySet, Order]:
    """The claims that a call asks for, and in which order. Raises `Invalid` by parameter."""
    given = {
        name: request.query_params[name] for name in PARAMETERS if name in request.query_params
    }
    if slug := request.query_params.get("view", ""):
        given = {**named(list(visible(access)), slug).query, **given}
    search = search_from(given, state=ALL)
    notes = isinstance(access, Access)
    fitting = found(search, rows, me=access.user.person, now=timezone.now(), notes=notes)
    return fitting.listed(), search.order
