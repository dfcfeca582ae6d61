"""Isolations: what is proposed to be closed, what is closed, and what Berth may do by itself."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from devices.dra.codes import CODES
from devices.fleet.isolationroom import room_of
from devices.fleet.isolationwishes import NotNow, let, wish
from devices.forecasts.warm import warm
from devices.models import Isolation, IsolationPolicy
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from portal.ui.htmx import wants_partial
from tenants.access import platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

PAGE_SIZE = 50
TABS = {"open": "Open", "over": "Over"}
#: The word of the status table for each state, and for each end.
WORDS = {"proposed": "here", "tried": "open", "applied": "isolated", "ended": "none"}


class PolicyForm(forms.Form):
    """What Berth may do by itself."""

    automatic = forms.BooleanField(
        required=False,
        label="Close without asking a person",
        help_text="What the rule proposes is closed once its dry run was read, within the share.",
    )
    share = forms.IntegerField(
        min_value=1,
        max_value=100,
        label="Largest share, in per cent",
        help_text="Of a pool's devices, counted with what is closed already; it binds people too.",
    )
    least_failed = forms.IntegerField(min_value=2, max_value=1000, label="Failed Pods at least")
    window = forms.IntegerField(min_value=5, max_value=720, label="Within, in minutes")
    probe_every = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1440,
        label="Try what is closed every, in minutes",
        help_text="Empty: only when somebody asks. A trial Pod that runs opens the place.",
    )


class WhyForm(forms.Form):
    """Why somebody closes, opens or says no."""

    why = forms.CharField(max_length=240, label="Why, for the audit")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def isolations(request: HttpRequest) -> HttpResponse:
    """What is proposed and closed; `?tab=over` what was. A POST sets the policy."""
    access = platform_access(request.user)
    policy = IsolationPolicy.current()
    form = PolicyForm(request.POST or None, initial=_initial(policy))
    if request.method == "POST" and form.is_valid():
        asked = form.cleaned_data
        every = asked["probe_every"]
        try:
            let(
                access=access,
                automatic=asked["automatic"],
                share=asked["share"],
                least_failed=asked["least_failed"],
                window=timedelta(minutes=asked["window"]),
                probe_every=timedelta(minutes=every) if every else None,
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            for name, text in refused.fields.items():
                form.add_error(name, text)
        else:
            messages.success(request, "What Berth may do by itself is set.")
            return redirect("isolations")
    tab = request.GET.get("tab", "open")
    tab = tab if tab in TABS else "open"
    rows = Isolation.objects.filter(ended_at__isnull=tab == "open")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": [(row, WORDS[row.state]) for row in page],
        "tab": tab,
        "tabs": TABS,
        "form": form,
        "policy": policy,
        "policy_by": names_of([policy.changed_by])[policy.changed_by] if policy.changed_by else "",
        "why_not_policy": access.why_not(PlatformAct.LET_ISOLATE),
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    part = "devices/_isolations.html" if wants_partial(request) else "devices/isolations.html"
    status = 422 if request.method == "POST" else 200
    return render(request, part, context, status=status)


def _initial(policy: IsolationPolicy) -> dict[str, Any]:
    return {
        "automatic": policy.automatic,
        "share": policy.share,
        "least_failed": policy.least_failed,
        "window": int(policy.window.total_seconds() // 60),
        "probe_every": int(policy.probe_every.total_seconds() // 60)
        if policy.probe_every
        else None,
    }


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def isolation(request: HttpRequest, public_id: str) -> HttpResponse:
    """One of them with its evidence and its dry run; a POST wishes something done with it."""
    access = platform_access(request.user)
    row = get_object_or_404(Isolation, public_id=public_id)
    what = request.POST.get("what", "")
    form = WhyForm(request.POST if request.method == "POST" else None)
    if request.method == "POST":
        try:
            wish(
                row,
                what,
                access=access,
                why=request.POST.get("why", ""),
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            blame(form, refused.fields)
        except NotNow as refused:
            messages.error(request, refused.message)
            return redirect("isolation", public_id=public_id)
        else:
            return redirect("isolation", public_id=public_id)
    people = names_of([row.wished_by, row.applied_by, row.ended_by])
    seen = warm() if row.state in ("proposed", "tried") else None
    share = IsolationPolicy.current().share / 100
    context = {
        "row": row,
        "state": WORDS[row.state],
        "found": row.found,
        "room": room_of(row, seen.now, share) if seen is not None else None,
        "codes": [(CODES.get(name), name, count) for name, count in row.evidence["codes"].items()]
        if row.evidence
        else [],
        "form": form,
        "what": what,
        "wished_by": people[row.wished_by] if row.wished_by else "Berth",
        "applied_by": people[row.applied_by] if row.applied_by else "the policy",
        "ended_by": people[row.ended_by] if row.ended_by else "Berth",
        "why_not": access.why_not(PlatformAct.ISOLATE),
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    if wants_partial(request):
        return render(request, "devices/_isolation.html", context)
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/isolation.html", context, status=status)
