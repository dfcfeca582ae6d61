"""Drift and inventories: the overview, one node pool's record with its versions, and its file."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from devices.dra.codes import CODES
from devices.dra.inventories import file_of
from devices.fleet.driftbook import Drifts, drift_now, overview
from devices.fleet.inventory import NothingSeen, bring, record_now
from devices.forecasts.warm import warm
from devices.models import DriftLine, Inventory, InventoryLine, NodePool
from portal.approvals.asks import AlreadyAsked
from portal.approvals.models import Approval
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

PAGE_SIZE = 100
TABS = {"open": "Now", "over": "Over"}
#: The word of the status table for each verdict.
WORDS = {Drifts.NONE: "pass", Drifts.DRIFT: "look", Drifts.UNKNOWN: "unknown"}
SAID = {Drifts.NONE: "As recorded", Drifts.DRIFT: "Drifts", Drifts.UNKNOWN: "Unknown"}
LARGEST_FILE = 2 * 1024 * 1024


class RecordForm(forms.Form):
    """What this version is."""

    note = forms.CharField(max_length=240, label="What this version is")


class BringForm(forms.Form):
    """A file, or its text."""

    upload = forms.FileField(required=False, label="File")
    text = forms.CharField(
        required=False,
        label="Or its lines",
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        help_text="node,driver,model,count; the first line names the columns.",
    )
    file_note = forms.CharField(max_length=240, label="What this version is")

    def lines(self) -> str:
        """The file's text, in UTF-8; Invalid (file) for anything else."""
        upload = self.cleaned_data["upload"]
        if upload is None:
            return str(self.cleaned_data["text"])
        if upload.size > LARGEST_FILE:
            raise Invalid("Nothing was put to review.", fields={"file": "At most 2 MiB."})
        try:
            return str(upload.read().decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            raise Invalid("Nothing was put to review.", fields={"file": "It is not UTF-8."}) from (
                error
            )


@require_safe
@login_required
def drift(request: HttpRequest) -> HttpResponse:
    """How each node pool stands against its record, and every finding."""
    platform_access(request.user)
    now, seen = timezone.now(), warm()
    pools = list(NodePool.objects.all())
    stands = overview(seen, now, pools)
    tab = request.GET.get("tab", "open")
    tab = tab if tab in TABS else "open"
    rows = DriftLine.objects.filter(gone_at__isnull=tab == "open").select_related("pool")
    page = Paginator(rows if tab == "open" else rows.order_by("-gone_at"), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    context = {
        "pools": [
            (pool, stand, WORDS[stand.verdict], SAID[stand.verdict])
            for pool in pools
            for stand in (stands[pool.pk],)
        ],
        "page": page,
        "rows": [(row, CODES[row.code]) for row in page],
        "tab": tab,
        "tabs": TABS,
        "stream": reverse("platform-events"),
        "as_of": seen.as_of if seen else None,
        "now": now,
    }
    part = "devices/_drift.html" if wants_partial(request) else "devices/drift.html"
    return render(request, part, context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def inventory(request: HttpRequest, slug: str) -> HttpResponse:
    """What the nodes of a pool should have; a POST puts a new version to review."""
    access = platform_access(request.user)
    pool = get_object_or_404(NodePool, slug=slug)
    now, seen = timezone.now(), warm()
    act = request.POST.get("act", "")
    recording = RecordForm(request.POST if act == "record" else None)
    bringing = BringForm(*((request.POST, request.FILES) if act == "bring" else ()))
    form = {"record": recording, "bring": bringing}.get(act)
    if request.method == "POST" and form is not None and form.is_valid():
        by: dict[str, Any] = {
            "access": access,
            "snapshot": seen.now if seen else None,
            "request_id": request_id_of(request),
            "now": now,
        }
        try:
            if form is bringing:
                made = bring(pool, bringing.lines(), note=form.cleaned_data["file_note"], **by)
            else:
                made = record_now(pool, note=form.cleaned_data["note"], **by)
        except Invalid as refused:
            _say(form, refused)
        except (NothingSeen, AlreadyAsked) as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, f"Version {made.number} waits for an approver.")
            return redirect("inventory", slug=slug)
    stand = drift_now(pool, seen, now)
    page, versions = _page(request, stand.inventory), list(pool.inventories.all()[:20])
    approvals = Approval.objects.in_bulk([one.approval for one in versions if one.approval])
    people = names_of(one.made_by for one in versions)
    context = {
        "pool": pool,
        "stand": stand,
        "word": WORDS[stand.verdict],
        "said": SAID[stand.verdict],
        "findings": [(row, CODES[row.code]) for row in (*stand.counts, *stand.watched)][:PAGE_SIZE],
        "page": page,
        "versions": [
            (one, people[one.made_by], approvals.get(one.approval or 0)) for one in versions
        ],
        "recording": recording,
        "bringing": bringing,
        "why_not": access.why_not(PlatformAct.RUN_POOLS),
        "stream": reverse("platform-events"),
        "as_of": seen.as_of if seen else None,
        "now": now,
    }
    if wants_partial(request):
        return render(request, "devices/_inventory_drift.html", context)
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/inventory.html", context, status=status)


def _page(request: HttpRequest, version: Inventory | None) -> Any:
    found = InventoryLine.objects.filter(inventory=version) if version is not None else None
    lines = found if found is not None else InventoryLine.objects.none()
    return Paginator(lines, PAGE_SIZE).get_page(request.GET.get("page"))


def _say(form: forms.Form, refused: Invalid) -> None:
    places = {"file": "text", "note": "file_note" if "file_note" in form.fields else "note"}
    for name, text in refused.fields.items():
        place = places.get(name, name)
        form.add_error(place if place in form.fields else None, text)


@require_safe
@login_required
def inventory_file(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """One version as comma-separated values."""
    platform_access(request.user)
    version = get_object_or_404(Inventory, pool__slug=slug, number=number)
    text = file_of(line.value() for line in version.lines.all())
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="inventory-{slug}-{number}.csv"'
    return response
