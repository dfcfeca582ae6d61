"""Claims: the list, one of them with its live parts, and releasing it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from devices.claims import release_claim
from devices.dra.lifecycle import State
from devices.models import Claim
from devices.searches import search_of
from devices.snippets import calls, manifests, wish_yaml
from devices.spending import taken_by
from devices.views.forecasts import claim_page
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import Access, tenant_for
from tenants.models import User
from tenants.policy import Act

PAGE_SIZE = 50


@require_safe
@login_required
def claims(request: HttpRequest, slug: str) -> HttpResponse:
    """Newest first; `?state=` and `?q=` filter and stay in the address."""
    access = tenant_for(request.user, slug)
    rows = Claim.objects.of(access.tenant).whole()
    state, query = request.GET.get("state", ""), search_of(request.GET)
    if state in list(State):
        rows = rows.filter(state=state)
    elif state != "all":
        state, rows = "", rows.open()
    if query:
        rows = rows.filter(name__icontains=query)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "access": access,
        "page": page,
        "claims": page.object_list,
        "state": state,
        "states": list(State),
        "query": query,
        "why_not_ask": access.why_not(Act.ASK),
    }
    fragment = wants_partial(request)
    return render(request, "devices/_claims.html" if fragment else "devices/claims.html", context)


@require_safe
@login_required
def claim(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """One claim; as a fragment, its live part alone."""
    access, row = find(request, slug, public_id)
    if wants_partial(request):
        return render(request, "devices/_claim_live.html", _live(access, row))
    wish = row.wish()
    body = {
        "template": row.version.template.slug,
        "namespace": row.namespace.name,
        "name": row.name,
        "values": row.values,
        **({"at_once": row.at_once} if row.at_once > 1 else {}),
    }
    context = {
        **_live(access, row),
        "snippets": manifests(wish),
        "calls": calls(base=settings.PUBLIC_URL, tenant=access.tenant.slug, body=body),
        "yaml": wish_yaml(wish),
        "taken": taken_by(row),
        "asked_by": User.objects.filter(person=row.asked_by).first(),
    }
    return render(request, "devices/claim.html", context)


@require_POST
@login_required
def release(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """Releases and comes back to the claim's page."""
    access, row = find(request, slug, public_id)
    release_claim(
        access=access,
        public_id=row.public_id,
        request_id=request_id_of(request),
        now=timezone.now(),
    )
    messages.success(request, f"{row.name} is being released.")
    return redirect("claim", slug, public_id)


def find(request: HttpRequest, slug: str, public_id: str) -> tuple[Access, Claim]:
    """The claim among this tenant's; 404 for everything else."""
    access = tenant_for(request.user, slug)
    rows = Claim.objects.of(access.tenant).whole()
    row = rows.filter(public_id=public_id).first()
    if row is None:
        raise Http404
    return access, row


def _live(access: Access, row: Claim) -> dict[str, Any]:
    return {
        **claim_page(access, row),
        "access": access,
        "claim": row,
        "events": row.events.all()[:50],
        "why_not_release": access.why_not(Act.RELEASE),
        # Both are final, so a page that stays open never needs what to paste again.
        "usable": row.wanted and row.state not in {State.RELEASED, State.FAILED},
        "users": [pod for pod in row.pods if pod["phase"] in {"Pending", "Running"}],
    }
