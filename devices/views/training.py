"""What became of the time that devices were held: of one claim, and by class and path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.asks.stagehistory import DAYS, question_from
from devices.asks.training import UsefulTime, claim_account, useful_time
from devices.dra.training import Sums
from devices.models import TrainingSignal
from devices.routing.routes import Path
from devices.tenancy.spending import class_names
from devices.views.claims import find
from devices.views.stagehistory import SHORT
from portal.errors import Invalid
from portal.ui import words
from portal.ui.htmx import wants_partial
from tenants.access import platform_access, tenant_for
from tenants.policy import PlatformAct

#: So many Pods and signals a claim's page shows.
MOST = 50


@dataclass(frozen=True, slots=True)
class Drawn:
    """Sums as a page shows them: parts in whole seconds for a bar, and why in words."""

    sums: Sums

    @property
    def parts(self) -> dict[str, int]:
        found = self.sums
        return {
            "used": round(found.useful),
            "unavailable": round(found.lost),
            "unknown": round(found.unknown),
        }

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    @property
    def percent(self) -> int | None:
        """Useful out of 100 that are known, rounded down."""
        share = self.sums.share
        return None if share is None else int(share * 100)

    @property
    def useful(self) -> str:
        return self._said(self.sums.useful)

    @property
    def lost(self) -> str:
        return self._said(self.sums.lost)

    @property
    def unknown(self) -> str:
        return self._said(self.sums.unknown)

    @property
    def lost_by(self) -> list[tuple[str, str]]:
        return self._by(self.sums.lost_by)

    @property
    def unknown_by(self) -> list[tuple[str, str]]:
        return self._by(self.sums.unknown_by)

    def _by(self, found: Any) -> list[tuple[str, str]]:
        most_first = sorted(found.items(), key=lambda one: -one[1])
        return [(str(why), self._said(seconds)) for why, seconds in most_first if seconds >= 0.5]

    def _said(self, seconds: float) -> str:
        return words.in_words(words.span(round(seconds), exact=True)) if seconds >= 0.5 else "0 s"


@require_safe
@login_required
def claim_training(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """One claim: how much of its time was useful, by Pod, and what the platform told."""
    access, row = find(request, slug, public_id)
    found = claim_account(row, timezone.now())
    context = {
        "access": access,
        "claim": row,
        "found": found,
        "whole": Drawn(found.sums),
        "pods": [(pod, Drawn(pod.sums)) for pod in found.pods[:MOST]],
        "signals": list(TrainingSignal.objects.filter(claim=row)[:MOST]),
        "example": _example(slug, public_id),
        "now": timezone.now(),
    }
    part = "devices/_claim_training.html"
    return render(
        request, part if wants_partial(request) else "devices/claim_training.html", context
    )


@require_safe
@login_required
def tenant_useful(request: HttpRequest, slug: str) -> HttpResponse:
    """What became of the tenant's device time."""
    access = tenant_for(request.user, slug)
    return _useful(request, {"access": access}, access.tenant.slug)


@require_safe
@login_required
def platform_useful(request: HttpRequest) -> HttpResponse:
    """The same of all tenants together."""
    platform_access(request.user).require(PlatformAct.SEE)
    return _useful(request, {}, "")


def _useful(request: HttpRequest, context: dict[str, Any], tenant: str) -> HttpResponse:
    now = timezone.now()
    names = ("days", "class", "path", "pool", "tenant")
    asked = {name: request.GET[name] for name in names if request.GET.get(name)}
    try:
        question, wrong = question_from(asked, now, tenant=tenant), ""
    except Invalid as refused:
        question, wrong = question_from({}, now, tenant=tenant), " ".join(refused.fields.values())
    found = useful_time(
        since=question.since,
        until=now,
        now=now,
        device_class=question.device_class,
        path=question.path,
        pool=question.pool,
        tenant=question.tenant,
    )
    known = class_names()
    whole = Sums()
    for one in found:
        whole = whole.plus(one.sums)
    days = str((question.until - question.since).days)
    context |= {
        "question": question,
        "rows": [_row(one, known) for one in found],
        "whole": Drawn(whole),
        "told": sum(one.told for one in found),
        "spans": [
            ("1 day" if one == 1 else f"{one} days", _address(asked, one), days == str(one))
            for one in DAYS
        ],
        "wrong": wrong,
        "now": now,
    }
    part = "devices/_useful_time.html" if wants_partial(request) else "devices/useful_time.html"
    return render(request, part, context, status=422 if wrong else 200)


def _row(one: UsefulTime, known: dict[str, str]) -> tuple[str, str, UsefulTime, Drawn]:
    name = known.get(one.device_class) or one.device_class
    return name, SHORT[Path(one.path)], one, Drawn(one.sums)


def _address(asked: dict[str, str], days: int) -> str:
    return "?" + urlencode(asked | {"days": str(days)})


def _example(slug: str, public_id: str) -> str:
    """A call that tells of this claim."""
    base = settings.PUBLIC_URL.rstrip("/")
    return f"""curl -X POST {base}/api/v1/tenants/{slug}/training-signals \\
  -H "Authorization: Bearer $BERTH_TOKEN" -H "Content-Type: application/json" \\
  -d '{{"signals": [{{"id": "run-7-step-1000", "kind": "checkpoint",
        "at": "2026-11-02T12:00:00Z", "claim": "{public_id}", "run": "run-7", "step": 1000}}]}}'
"""
