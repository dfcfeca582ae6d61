"""What one can do with claims beside asking: several released at once, extended, described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from devices.asks.claims import describe_claim, extend_claim
from devices.asks.releases import MOST_AT_A_TIME, Outcome, release_several
from devices.models import Claim
from devices.templatetags.asks import users
from devices.views.claims import find
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.words import one_or_many
from tenants.access import tenant_for
from tenants.policy import Act


@dataclass(frozen=True, slots=True)
class Touched:
    """What a release would touch, in numbers."""

    claims: int
    devices: int
    pods: int
    in_use: int


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def release_chosen(request: HttpRequest, slug: str) -> HttpResponse:
    """What releasing several would touch; a POST releases, and names those that did not go."""
    access = tenant_for(request.user, slug)
    given = request.POST if request.method == "POST" else request.GET
    ids = list(dict.fromkeys(given.getlist("id")))[: MOST_AT_A_TIME + 1]
    outcomes: list[Outcome] = []
    if request.method == "POST":
        outcomes = release_several(
            access=access,
            public_ids=ids,
            request_id=request_id_of(request),
            now=timezone.now(),
        )
        if ids and all(one.released for one in outcomes):
            said = one_or_many(len(outcomes), "claim")
            messages.success(request, f"{said} released; what Pods use goes when they end.")
            return redirect("claims", slug)
    rows = Claim.objects.of(access.tenant).whole().filter(public_id__in=ids)
    context = {
        "access": access,
        "claims": list(rows),
        "touched": _touched(rows),
        "outcomes": outcomes,
        "too_many": len(ids) > MOST_AT_A_TIME,
        "most": MOST_AT_A_TIME,
        "why_not": access.why_not(Act.RELEASE),
    }
    return render(request, "devices/release_chosen.html", context)


@require_POST
@login_required
def extend(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """Sets a claim's end anew, and comes back to its page."""
    return _change(request, slug, public_id, extend_claim, {"days": _days(request)})


@require_POST
@login_required
def describe(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """Writes a note, and comes back to the claim's page."""
    return _change(request, slug, public_id, describe_claim, {"note": request.POST.get("note", "")})


def _change(
    request: HttpRequest, slug: str, public_id: str, verb: Any, asked: dict[str, Any]
) -> HttpResponse:
    access, row = find(request, slug, public_id)
    try:
        verb(
            access=access,
            public_id=row.public_id,
            request_id=request_id_of(request),
            now=timezone.now(),
            **asked,
        )
    except Invalid as refused:
        messages.error(request, " ".join([refused.message, *refused.fields.values()]))
    else:
        messages.success(request, "Saved.")
    return redirect("claim", slug, public_id)


def _days(request: HttpRequest) -> int | None:
    """The number in the form; empty takes the end away, and what is no number is out of bounds."""
    text = request.POST.get("days", "").strip()
    if not text:
        return None
    return int(text) if text.isdecimal() and len(text) < 6 else 0


def _touched(rows: Any) -> Touched:
    claims = [row for row in rows if row.wanted]
    pods = [users(row) for row in claims]
    return Touched(
        len(claims),
        sum(len(row.placed) for row in claims),
        sum(map(len, pods)),
        sum(1 for using in pods if using),
    )
