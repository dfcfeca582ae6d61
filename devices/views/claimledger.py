"""What a claim and the Pods that use it take of their node: a tenant's own lines."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.ledger.figures import by_importance, figures
from devices.ledger.moments import moment
from devices.ledger.ours import lines_of_claim
from devices.models import LedgerHead
from devices.views.claims import find
from portal.errors import Invalid
from portal.keyset import Order, cut

PAGE_SIZE: Final = 50
_ORDER: Final = Order("id", descending=True)


@require_safe
@login_required
def claim_ledger(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """Sums and lines of one claim, now or at a moment; `?which=all` with those that ended."""
    access, row = find(request, slug, public_id)
    asked, now = request.GET, timezone.now()
    when = moment(asked, now)
    every = asked.get("which") == "all"
    rows = lines_of_claim(row, when.at, all_=every)
    try:
        page = cut(rows, _ORDER, PAGE_SIZE, asked.get("cursor", ""))
    except Invalid:
        page = cut(rows, _ORDER, PAGE_SIZE)
    context = {
        "access": access,
        "claim": row,
        "figures": by_importance(figures(lines_of_claim(row, when.at).filter(act="charge"))),
        "page": page,
        "every": every,
        "when": when,
        "at": when.at,
        "head": LedgerHead.objects.first(),
        "now": now,
    }
    status = 422 if when.wrong else 200
    return render(request, "devices/claim_ledger.html", context, status=status)
