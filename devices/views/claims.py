"""One claim: its page with its live parts, its history, and releasing it."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from devices.asks.claimfacts import reached, said_about, told
from devices.asks.claimlist import COUNTED
from devices.asks.claims import longest_days, release_claim
from devices.asks.lifetimes import lasts
from devices.asks.snippets import calls, joining, manifests, wish_yaml
from devices.asks.tries import tries_of
from devices.dra.lifecycle import State
from devices.models import Claim
from devices.templatetags.asks import users
from devices.tenancy.spending import taken_by
from devices.views.forecasts import claim_page
from portal.keyset import Order, Slice, counted, cut
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import Access, tenant_for
from tenants.models import User
from tenants.policy import Act

#: Entries of the history that the claim's own page shows; the history's page has all of them.
NEWEST = 10
PAGE_SIZE = 50
LISTS = ("berth", "cluster")


@require_safe
@login_required
def claim(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """One claim; as a fragment, its live part alone."""
    access, row = find(request, slug, public_id)
    if wants_partial(request):
        # What to paste is another thing once it was rerouted; else an open tab there is left alone.
        rerouted = request.GET.get("path", row.path) != row.path
        use = _use(request, access, row) if rerouted else {}
        return render(request, "devices/_claim_live.html", {**_live(access, row), **use})
    context = {
        **_live(access, row),
        **_use(request, access, row),
        "taken": taken_by(row),
        "asked_by": User.objects.filter(person=row.asked_by).first(),
        "longest": longest_days(access.tenant, row.version),
    }
    return render(request, "devices/claim.html", context)


def _use(request: HttpRequest, access: Access, row: Claim) -> dict[str, Any]:
    """What to paste, the same ask as calls, and how to share it."""
    wish = row.wish()
    body = {
        "template": row.version.template.slug,
        "namespace": row.namespace.name,
        "name": row.name,
        "values": row.values,
        **({"at_once": row.at_once} if row.at_once > 1 else {}),
        **({"days": lasts(row.requested_at, row.expires_at)} if row.expires_at else {}),
    }
    return {
        "snippets": manifests(wish),
        "calls": calls(base=settings.PUBLIC_URL, tenant=access.tenant.slug, body=body),
        "yaml": wish_yaml(wish),
        "joining": joining(wish),
        "address": request.build_absolute_uri(request.path),
        "lendable": access.may(Act.GRANT),
    }


@require_safe
@login_required
def history(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """All that happened to a claim, page by page; `of=cluster` is what the cluster said."""
    access, row = find(request, slug, public_id)
    of = request.GET.get("of", "")
    of, cursor = of if of in LISTS else "berth", request.GET.get("cursor", "")
    context: dict[str, Any] = {"access": access, "claim": row, "of": of}
    if of == "berth":
        rows: Any = row.events.all()
        page: Slice[Any] = cut(rows, Order("pk", descending=True), PAGE_SIZE, cursor)
        context["events"] = page.rows
    else:
        rows = said_about(row)
        page = cut(rows, Order("seen_at", descending=True), PAGE_SIZE, cursor)
        context["said_by_cluster"] = told(page.rows)
    context |= {"slice": page, "total": counted(rows, COUNTED), "counted": COUNTED}
    return render(request, "devices/claim_history.html", context)


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
        "events": list(row.events.all()[: NEWEST + 1]),
        "newest": NEWEST,
        "reached": reached(row),
        "tries": tries_of(row),
        "why_not_release": access.why_not(Act.RELEASE),
        "why_not_extend": access.why_not(Act.EXTEND),
        # Both are final, so a page that stays open never needs what to paste again.
        "usable": row.wanted and row.state not in {State.RELEASED, State.FAILED},
        "users": users(row),
    }
