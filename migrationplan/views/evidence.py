"""Evidence: the list with the form to collect some, one bundle, and its download."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from devices.models import NodePool
from migrationplan.evidence.collecting import collect
from migrationplan.evidence.download import sent
from migrationplan.models import Evidence, Move, Sighting
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from portal.ui.htmx import wants_partial
from tenants.access import PlatformAccess, platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

PAGE_SIZE = 50
#: Groups of files on the page, by the beginning of their names.
SEEN = ("sightings/", "objects/")


class EvidenceForm(forms.Form):
    """What is collected."""

    pool = forms.ModelChoiceField(
        NodePool.objects.all(), label="Node pool", to_field_name="slug", empty_label=None
    )
    move = forms.CharField(
        max_length=12,
        required=False,
        label="Move",
        help_text="Its id; empty: every move of the pool in that time.",
    )
    since = forms.DateTimeField(
        label="From, UTC", widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )
    until = forms.DateTimeField(
        label="To, UTC",
        required=False,
        help_text="Empty: now.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
    )
    why = forms.CharField(max_length=240, label="What it is for")

    def moves(self) -> list[Move] | None:
        """The move that was named; adds an error where the pool has none of that name."""
        named = self.cleaned_data["move"].strip()
        if not named:
            return None
        found = list(Move.objects.filter(pool=self.cleaned_data["pool"], public_id=named))
        if not found:
            self.add_error("move", "This node pool has no such move.")
        return found


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def evidence_list(request: HttpRequest) -> HttpResponse:
    """Every bundle, newest first; a POST collects one."""
    access = platform_access(request.user)
    now = timezone.now()
    form = EvidenceForm(request.POST or None, initial=_initial(request))
    if request.method == "POST":
        access.require(PlatformAct.COLLECT_EVIDENCE)
        made = _collect(request, form, access) if form.is_valid() else None
        if made is not None:
            return redirect("evidence", public_id=made.public_id)
    rows = Evidence.objects.select_related("pool")
    context = {
        "page": Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page")),
        "form": form,
        "pools": NodePool.objects.exists(),
        "why_not": access.why_not(PlatformAct.COLLECT_EVIDENCE),
        "stream": reverse("platform-events"),
        "now": now,
    }
    part = "evidence_list.html"
    part = f"_{part}" if wants_partial(request) else part
    status = 422 if request.method == "POST" else 200
    return render(request, f"migrationplan/{part}", context, status=status)


def _collect(request: HttpRequest, form: EvidenceForm, access: PlatformAccess) -> Evidence | None:
    moves = form.moves()
    if form.errors:
        return None
    try:
        return collect(
            form.cleaned_data["pool"],
            moves,
            form.cleaned_data["since"],
            form.cleaned_data["until"],
            why=form.cleaned_data["why"],
            now=timezone.now(),
            request_id=request_id_of(request),
            person=access.user.person,
        )
    except Invalid as refused:
        blame(form, refused.fields)
        return None


def _initial(request: HttpRequest) -> dict[str, Any]:
    """A link from a move fills the form in; one query at most."""
    named = request.GET.get("move", "")
    move = Move.objects.select_related("pool").filter(public_id=named).first() if named else None
    if move is None:
        return {"pool": request.GET.get("pool", "")}
    return {
        "pool": move.pool.slug,
        "move": move.public_id,
        "since": move.begun_at.strftime("%Y-%m-%dT%H:%M"),
        "why": f"{move.node} {move.direction}",
    }


@require_safe
@login_required
def evidence(request: HttpRequest, public_id: str) -> HttpResponse:
    """One bundle: what is in it, and how it is checked."""
    access = platform_access(request.user)
    row = get_object_or_404(Evidence.objects.select_related("pool"), public_id=public_id)
    sightings = Sighting.objects.filter(pool=row.pool, at__gte=row.since, at__lte=row.until)
    if row.moves:
        sightings = sightings.filter(moves__overlap=row.moves)
    context = {
        "evidence": row,
        "files": [(name, size) for name, _, size in row.files if not name.startswith(SEEN)],
        "objects": [size for name, _, size in row.files if name.startswith("objects/")],
        "sightings": [
            (one, len(one.objects_seen)) for one in sightings.order_by("at", "pk")[:PAGE_SIZE]
        ],
        "who": names_of([row.made_by])[row.made_by] if row.made_by else "",
        "why_not": access.why_not(PlatformAct.READ_EVIDENCE),
        "now": timezone.now(),
    }
    return render(request, "migrationplan/evidence.html", context)


@require_safe
@login_required
def evidence_file(request: HttpRequest, public_id: str) -> HttpResponseBase:
    """The tar, while it is made."""
    access = platform_access(request.user)
    row = get_object_or_404(Evidence.objects.select_related("pool"), public_id=public_id)
    return sent(request, row, access)
