"""The leak board: what is held and should not be, and what people decide about it."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from devices.dra.cleanup import CLEANABLE
from devices.dra.codes import CODES
from devices.fleet.leakboard import NotCleanable, clean, keep
from devices.models import LeakRow
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

PAGE_SIZE = 50
TABS = {"open": "Open", "kept": "Kept", "gone": "Gone"}


class KeepForm(forms.Form):
    """Why a finding may stay."""

    why = forms.CharField(max_length=240, label="Why it may stay")


class CleanForm(forms.Form):
    """Why a claim goes, and a proof that the right one is meant."""

    reason = forms.CharField(max_length=240, label="Reason, kept in the audit")
    typed = forms.CharField(
        max_length=5,
        label="The last five characters of the claim's name",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


@require_safe
@login_required
def leaks(request: HttpRequest) -> HttpResponse:
    """The board; `?tab=` says which part of it."""
    platform_access(request.user)
    tab = request.GET.get("tab", "open")
    tab = tab if tab in TABS else "open"
    rows = {
        "open": LeakRow.objects.filter(gone_at=None, kept_at=None),
        "kept": LeakRow.objects.filter(gone_at=None, kept_at__isnull=False),
        "gone": LeakRow.objects.filter(gone_at__isnull=False).order_by("-gone_at"),
    }[tab]
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "page": page,
        "rows": [(row, CODES[row.code]) for row in page],
        "tab": tab,
        "tabs": TABS,
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    part = "devices/_leaks.html" if wants_partial(request) else "devices/leaks.html"
    return render(request, part, context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def leak(request: HttpRequest, public_id: str) -> HttpResponse:
    """One finding with its proof; a POST keeps it, or wishes its claim away."""
    access = platform_access(request.user)
    row = get_object_or_404(LeakRow, public_id=public_id)
    act = request.POST.get("act", "")
    keeping = KeepForm(request.POST if act == "keep" else None)
    cleaning = CleanForm(request.POST if act == "clean" else None)
    form = {"keep": keeping, "clean": cleaning}.get(act)
    if request.method == "POST" and form is not None and form.is_valid():
        wish = {**form.cleaned_data, "request_id": request_id_of(request), "now": timezone.now()}
        try:
            keep(row, access=access, **wish) if form is keeping else clean(
                row, access=access, **wish
            )
        except Invalid as refused:
            for name, text in refused.fields.items():
                form.add_error(name, text)
        except NotCleanable as refused:
            messages.error(request, refused.message)
            return redirect("leak", public_id=public_id)
        else:
            return redirect("leak", public_id=public_id)
    people = names_of([row.kept_by, row.wanted_by])
    context = {
        "row": row,
        "code": CODES[row.code],
        "cleanable": row.code in CLEANABLE and bool(row.uid) and row.gone_at is None,
        "ending": row.claims[0][-5:],
        "keeping": keeping,
        "cleaning": cleaning,
        "kept_by": people[row.kept_by] if row.kept_by else "",
        "wanted_by": people[row.wanted_by] if row.wanted_by else "",
        "why_not": access.why_not(PlatformAct.CLEAN_UP),
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    if wants_partial(request):
        return render(request, "devices/_leak_answer.html", context)
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/leak.html", context, status=status)
