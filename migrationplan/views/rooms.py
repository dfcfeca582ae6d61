"""Making room: who waits, the ways to make room for one of them, and how one of those stands."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from devices.dra.lifecycle import State as AskState
from devices.forecasts.warm import warm
from devices.models import Claim
from migrationplan.makingroom.choosing import UTILISATION, Found
from migrationplan.makingroom.rooms import (
    NoRoom,
    find,
    latency,
    propose,
    rivals,
    waiting_asks,
)
from migrationplan.models import MakeRoom
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

PAGE_SIZE = 50


@require_safe
@login_required
def rooms(request: HttpRequest) -> HttpResponse:
    """Asks whose Pods wait, oldest first, and the rooms that were made."""
    platform_access(request.user)
    context = {
        "waiting": Paginator(waiting_asks(), PAGE_SIZE).get_page(request.GET.get("page")),
        "rooms": MakeRoom.objects.select_related("claim__tenant")[:PAGE_SIZE],
        "utilisation": UTILISATION,
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    part = "_rooms.html" if wants_partial(request) else "rooms.html"
    return render(request, f"migrationplan/{part}", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def room_for(request: HttpRequest, public_id: str) -> HttpResponse:
    """The ways to make room for one ask; a POST takes one."""
    access = platform_access(request.user)
    claim = get_object_or_404(Claim.objects.whole(), public_id=public_id)
    seen, now, wrong = warm(), timezone.now(), ""
    if request.method == "POST":
        access.require(PlatformAct.MAKE_ROOM)
        try:
            if seen is None:
                raise NoRoom("The cluster has not been seen yet.")
            made = propose(
                claim,
                request.POST.get("choice", ""),
                seen,
                reason=request.POST.get("reason", ""),
                access=access,
                request_id=request_id_of(request),
                now=now,
            )
        except NoRoom as refused:
            messages.error(request, refused.message)
            return redirect("room-for", public_id=public_id)
        except Invalid as refused:
            wrong = refused.fields.get("reason", refused.message)
        else:
            return redirect("room", public_id=made.public_id)
    context: dict[str, Any] = {
        "claim": claim,
        "pending": claim.state == AskState.PENDING,
        "found": find(claim, seen, now) if seen else Found(why_not="The cluster is not seen yet."),
        "as_of": seen.as_of if seen else None,
        "latency": latency(claim.classes, now),
        "rivals": rivals(claim),
        "open": MakeRoom.objects.filter(claim=claim, ended_at=None).first(),
        "wrong": wrong,
        "chosen": request.POST.get("choice", ""),
        "reason": request.POST.get("reason", ""),
        "why_not": access.why_not(PlatformAct.MAKE_ROOM),
        "now": now,
    }
    return render(request, "migrationplan/room_for.html", context, status=422 if wrong else 200)


@require_safe
@login_required
def room(request: HttpRequest, public_id: str) -> HttpResponse:
    """One room: who ends for whom, who said yes, how far it is."""
    platform_access(request.user)
    row = get_object_or_404(MakeRoom.objects.select_related("claim__tenant"), public_id=public_id)
    context = {
        "room": row,
        "pods": list(row.pods.all()),
        "who": names_of([row.asked_by])[row.asked_by],
        "rivals": rivals(row.claim),
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    part = "_room.html" if wants_partial(request) else "room.html"
    return render(request, f"migrationplan/{part}", context)
