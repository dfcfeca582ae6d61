"""Lists of claims: a tenant's own and the platform's, their files, and their saved views."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from devices.asks.claimfacts import cluster_events, pod_times, reached
from devices.asks.claimfiles import claim_file
from devices.asks.claimlist import OPEN, kept
from devices.asks.savedviews import Viewer, forget_view, save_view
from devices.models import Claim
from devices.models.claim import ClaimQuerySet
from devices.views.listing import PAGE_SIZE, Listing, listing
from portal.errors import Invalid
from portal.exports import streamed
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import Access, platform_access, tenant_for
from tenants.people import names_of
from tenants.policy import Act, PlatformAct

FILTERS = "claims-filters"
"""The form's id: what it asks for becomes the address; what refreshes by itself does not."""


@require_safe
@login_required
def claims(request: HttpRequest, slug: str) -> HttpResponse:
    """What a tenant asked for. Filters stay in the address; without any, everything open."""
    access = tenant_for(request.user, slug)
    shown = listing(request, access, Claim.objects.of(access.tenant), timezone.now())
    context = {
        "access": access,
        "list_address": reverse("claims", args=[slug]),
        "why_not_ask": access.why_not(Act.ASK),
        "why_not_release": access.why_not(Act.RELEASE),
        "why_not_share": access.why_not(Act.SHARE_VIEWS),
    }
    return _page(request, shown, context)


@require_safe
@login_required
def platform_claims(request: HttpRequest) -> HttpResponse:
    """What all tenants asked for, for people of the platform."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    shown = listing(request, access, Claim.objects.all(), timezone.now())
    context = {
        "list_address": reverse("platform-claims"),
        "why_not_share": access.why_not(PlatformAct.SHARE_VIEWS),
    }
    return _page(request, shown, context)


@require_safe
@login_required
def platform_claim(request: HttpRequest, public_id: str) -> HttpResponse:
    """One claim of any tenant, for people of the platform: where it stands, why, and on what."""
    platform_access(request.user).require(PlatformAct.SEE)
    row = get_object_or_404(Claim.objects.all().whole(), public_id=public_id)
    context = {
        "claim": row,
        "events": row.events.all()[:PAGE_SIZE],
        "reached": reached(row),
        "asked_by": names_of([row.asked_by])[row.asked_by],
        "said_by_cluster": cluster_events(row),
        "times": pod_times(row, timezone.now()),
    }
    return render(request, "devices/platform_claim.html", context)


@require_safe
@login_required
def claims_file(request: HttpRequest, slug: str) -> HttpResponseBase:
    """The whole list that the address asks for, as CSV."""
    access = tenant_for(request.user, slug)
    return _file(request, access, Claim.objects.of(access.tenant), slug)


@require_safe
@login_required
def platform_claims_file(request: HttpRequest) -> HttpResponseBase:
    """The same of all tenants."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    return _file(request, access, Claim.objects.all(), "platform")


@require_POST
@login_required
def view_save(request: HttpRequest, slug: str) -> HttpResponse:
    """Keeps the list as it is under a name."""
    return _save(request, tenant_for(request.user, slug), reverse("claims", args=[slug]))


@require_POST
@login_required
def platform_view_save(request: HttpRequest) -> HttpResponse:
    """The same for the platform's list."""
    return _save(request, platform_access(request.user), reverse("platform-claims"))


@require_POST
@login_required
def view_forget(request: HttpRequest, slug: str, view: str) -> HttpResponse:
    """Removes a saved view."""
    access = tenant_for(request.user, slug)
    return _forget(request, access, view, reverse("claims", args=[slug]))


@require_POST
@login_required
def platform_view_forget(request: HttpRequest, view: str) -> HttpResponse:
    """The same for the platform's list."""
    return _forget(request, platform_access(request.user), view, reverse("platform-claims"))


def _page(request: HttpRequest, shown: Listing, context: dict[str, Any]) -> HttpResponse:
    fragment = wants_partial(request)
    context |= {"list": shown, "claims": shown.slice.rows, "fragment": fragment}
    template = "devices/_claims.html" if fragment else "devices/claims.html"
    answer = render(request, template, context, status=422 if shown.wrong else 200)
    if fragment and request.headers.get("HX-Trigger") == FILTERS and not shown.wrong:
        answer["HX-Push-Url"] = f"{request.path}?{shown.address}"
    return answer


def _file(request: HttpRequest, access: Viewer, rows: ClaimQuerySet, name: str) -> HttpResponseBase:
    now = timezone.now()
    shown = listing(request, access, rows, now)
    if shown.wrong:
        raise Invalid("There is no such list.", fields=shown.wrong)
    pieces = claim_file(
        shown.search, rows, me=access.user.person, now=now, notes=isinstance(access, Access)
    )
    return streamed(request, pieces, kind="csv", name=f"claims-{name}-{now:%Y%m%dT%H%M}")


def _save(request: HttpRequest, access: Viewer, back: str) -> HttpResponse:
    given = request.POST.dict()
    try:
        view = save_view(
            access=access,
            name=given.get("name", ""),
            query={"state": OPEN, **kept(given)},
            shared=given.get("shared") == "on",
            opens_first=given.get("opens_first") == "on",
            request_id=request_id_of(request),
            now=timezone.now(),
        )
    except Invalid as refused:
        messages.error(request, " ".join([refused.message, *refused.fields.values()]))
        return redirect(f"{back}?{given.get('back', '')[:2000]}")
    messages.success(request, f"Saved as “{view.name}”.")
    return redirect(f"{back}?view={view.slug}")


def _forget(request: HttpRequest, access: Viewer, view: str, back: str) -> HttpResponse:
    forget_view(
        access=access,
        slug=view,
        shared=request.POST.get("shared") == "yes",
        request_id=request_id_of(request),
        now=timezone.now(),
    )
    messages.success(request, "The view is removed; the claims stay.")
    return redirect(f"{back}?state={OPEN}")
