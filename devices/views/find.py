"""Finding anything by its name: a page of its own, and the palette over any page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.asks.searches import search_of
from devices.catalogue.finding import KINDS, Finder, asked_for, find
from portal.ui.htmx import wants_partial
from tenants.access import Access, platform_of, tenant_for, tenants_of
from tenants.models import User


@require_safe
@login_required
def find_anything(request: HttpRequest) -> HttpResponse:
    """What fits `q`, seen from tenant `t`; as a fragment, the palette's list of it."""
    assert isinstance(request.user, User)
    finder = finder_for(request.user, request.GET.get("t", ""))
    text = search_of(request.GET)
    asked = asked_for(text)
    context = {
        "access": finder.here,
        "query": text,
        "asked": asked,
        "groups": find(finder, asked),
        "kinds": KINDS,
    }
    fragment = wants_partial(request)
    return render(request, "portal/_find_options.html" if fragment else "portal/find.html", context)


def finder_for(user: User, slug: str) -> Finder:
    """Somebody who looks from the tenant `slug`; without one, from the only one they have.

    Raises Http404 for a tenant that is not theirs.
    """
    scopes = tenants_of(user)
    if user.viewing and all(scope.tenant.slug != user.viewing for scope in scopes):
        scopes = [*scopes, tenant_for(user, user.viewing)]
    here: Access | None = next((one for one in scopes if one.tenant.slug == slug), None)
    if slug and here is None:
        raise Http404
    if here is None and len(scopes) == 1:
        here = scopes[0]
    return Finder(user, scopes, platform_of(user), here, timezone.now())
