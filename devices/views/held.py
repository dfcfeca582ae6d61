"""The queue of asks that wait before they are sent: a tenant's own, and all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.asks.line import LINE, Place, places
from devices.asks.verdicts import Verdict, verdict
from devices.models import Claim
from portal.ui.htmx import wants_partial
from tenants.access import platform_access, tenant_for

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Row:
    """One that waits, with the words for its reason."""

    place: Place
    said: Verdict

    @property
    def claim(self) -> Claim:
        return self.place.claim


@require_safe
@login_required
def held(request: HttpRequest, slug: str) -> HttpResponse:
    """What of a tenant waits, and its place among everybody's."""
    access = tenant_for(request.user, slug)
    now = timezone.now()
    line = places()
    page = page_of(request, [one for one in line if one.claim.tenant_id == access.tenant.pk])
    context = {
        "access": access,
        "page": page,
        "rows": rows(page, now),
        "full": len(line) >= LINE,
        "stream": reverse("events", args=[slug]),
        "now": now,
    }
    part = "devices/_held.html" if wants_partial(request) else "devices/held.html"
    return render(request, part, context)


@require_safe
@login_required
def platform_held(request: HttpRequest) -> HttpResponse:
    """Everything that waits."""
    platform_access(request.user)
    now = timezone.now()
    line = places()
    page = page_of(request, line)
    context = {
        "page": page,
        "rows": rows(page, now),
        "full": len(line) >= LINE,
        "whole": True,
        "stream": reverse("platform-events"),
        "now": now,
    }
    part = "devices/_held.html" if wants_partial(request) else "devices/held.html"
    return render(request, part, context)


def page_of(request: HttpRequest, line: Sequence[Place]) -> Page[Place]:
    """The page of the line that is asked for."""
    return Paginator(line, PAGE_SIZE).get_page(request.GET.get("page"))


def rows(line: Iterable[Place], now: datetime) -> list[Row]:
    """Places with the words for what keeps each back."""
    return [
        Row(one, verdict(one.claim.code, one.claim.state, now - one.claim.since)) for one in line
    ]
