"""Gates: the list with the form for a new one, and one with its settings and newest readings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from migrationplan.gating.definitions import Wish, change, define, retire, take_standard
from migrationplan.measures import ABOUT, Kind, Measure
from migrationplan.models import Gate, Reading
from portal.errors import Invalid, Outdated
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import platform_access
from tenants.policy import PlatformAct

SHOWN = 20


class GateForm(forms.Form):
    """What a gate allows. What does not concern its measure is left as it is."""

    name = forms.CharField(max_length=80)
    trial = forms.BooleanField(
        required=False, label="Trial", help_text="It is measured and shown, and does not vote."
    )
    margin = forms.FloatField(
        min_value=0.1,
        max_value=99.9,
        initial=10,
        label="Margin, in points",
        help_text="How many more of 100 may be bad on moved nodes than on the others.",
    )
    tolerance = forms.FloatField(
        min_value=1,
        max_value=10,
        initial=1.25,
        label="Tolerance of times",
        help_text="Slow is beyond the others' 95th percentile times this.",
    )
    slack = forms.FloatField(
        min_value=0,
        max_value=3600,
        initial=2,
        label="Slack of times, in seconds",
        help_text="And at least so much longer: stamps are whole seconds.",
    )
    least = forms.IntegerField(
        min_value=1,
        max_value=2000,
        initial=20,
        label="Samples of each side",
        help_text="Fewer never pass.",
    )
    patience = forms.IntegerField(
        min_value=1,
        max_value=86_400,
        initial=600,
        label="Patience, in seconds",
        help_text="A Pod that waits longer for devices got none.",
    )
    limit = forms.FloatField(
        min_value=0,
        max_value=86_400,
        initial=0,
        label="Limit, in seconds",
        help_text="Of a driver's restart only.",
    )
    url = forms.CharField(
        max_length=500,
        required=False,
        label="Address",
        help_text="Of a webhook, or of a Prometheus server.",
    )
    query = forms.CharField(
        required=False,
        label="Query",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false"}),
        help_text="PromQL; above 0 passes, 0 fails. $nodes, $pool and $class are filled in.",
    )

    def wish(self, measure: Measure) -> Wish:
        asked = {key: value for key, value in self.cleaned_data.items() if key in Wish.__slots__}
        asked["margin"] /= 100
        asked["patience"] = timedelta(seconds=asked["patience"])
        asked["measure"] = measure
        return Wish(**asked)


class NewGateForm(GateForm):
    """A new one has a name for waves, and says what it measures."""

    slug = forms.SlugField(max_length=63, label="Name in plans", help_text="It stays.")
    measure = forms.ChoiceField(
        choices=[(one.value, ABOUT[one].title) for one in Measure], label="Measures"
    )
    field_order = ("slug", "name", "measure", "trial")


#: Fields that a gate of some kind does not use.
UNUSED = {
    Kind.SHARE: ("tolerance", "slack", "limit", "url", "query"),
    Kind.SLOW: ("limit", "patience", "url", "query"),
    Kind.NONE_ALLOWED: (
        "margin", "tolerance", "slack", "least", "patience", "limit", "url", "query",
    ),
    Kind.WITHIN: ("margin", "tolerance", "slack", "patience", "url", "query"),
    Kind.OUTSIDE: ("margin", "tolerance", "slack", "least", "patience", "limit"),
}  # fmt: skip


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def gates(request: HttpRequest) -> HttpResponse:
    """All of them; a POST makes one."""
    access = platform_access(request.user)
    form = NewGateForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            gate = define(
                form.cleaned_data["slug"],
                form.wish(Measure(form.cleaned_data["measure"])),
                access=access,
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            say(form, refused)
        else:
            messages.success(request, f"{gate.name} is a gate now; waves may name it.")
            if gate.secret:
                return _secret(request, gate)
            return redirect("gate", slug=gate.slug)
    context = {
        "rows": [(gate, ABOUT[Measure(gate.measure)], allows(gate)) for gate in Gate.objects.all()],
        "form": form,
        "why_not": access.why_not(PlatformAct.RUN_POOLS),
        "now": timezone.now(),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "migrationplan/gates.html", context, status=status)


def _secret(request: HttpRequest, gate: Gate) -> HttpResponse:
    """The one page that shows a webhook's secret; it is kept by nobody's browser."""
    answer = render(
        request, "migrationplan/gate_secret.html", {"gate": gate, "now": timezone.now()}, status=201
    )
    answer["Cache-Control"] = "no-store"
    return answer


@require_POST
@login_required
def gates_standard(request: HttpRequest) -> HttpResponse:
    """Defines the set that most platforms want."""
    access = platform_access(request.user)
    made = take_standard(access=access, request_id=request_id_of(request), now=timezone.now())
    messages.success(request, f"{made} gates were defined." if made else "They are all there.")
    return redirect("gates")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def gate(request: HttpRequest, slug: str) -> HttpResponse:
    """One of them with what it said lately; a POST changes it."""
    access = platform_access(request.user)
    row = get_object_or_404(Gate, slug=slug)
    measure = Measure(row.measure)
    form = _form_of(row, request.POST or None)
    if request.method == "POST" and form.is_valid():
        kept = {name: form.initial[name] for name in UNUSED[ABOUT[measure].kind]}
        form.cleaned_data |= kept
        try:
            change(
                row,
                form.wish(measure),
                revision=_number(request.POST.get("revision")),
                access=access,
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except (Invalid, Outdated) as refused:
            say(form, refused)
        else:
            messages.success(request, "The gate is changed; it is read anew.")
            return redirect("gate", slug=slug)
    readings = Reading.objects.filter(gate=slug).select_related("pool").defer("samples")
    context = {
        "gate": row,
        "about": ABOUT[measure],
        "allows": allows(row),
        "readings": readings[:SHOWN],
        "form": form,
        "why_not": access.why_not(PlatformAct.RUN_POOLS),
        "now": timezone.now(),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "migrationplan/gate.html", context, status=status)


@require_POST
@login_required
def gate_retire(request: HttpRequest, slug: str) -> HttpResponse:
    """It is measured no more."""
    access = platform_access(request.user)
    row = get_object_or_404(Gate, slug=slug)
    retire(row, access=access, request_id=request_id_of(request), now=timezone.now())
    messages.success(request, f"{row.name} is retired; its readings stay.")
    return redirect("gates")


def allows(gate: Gate) -> str:
    """What a gate allows, in a clause."""
    points = f"{gate.margin * 100:g} points more"
    match ABOUT[Measure(gate.measure)].kind:
        case Kind.SHARE:
            return points
        case Kind.SLOW:
            return f"{points} beyond {gate.tolerance:g} × p95"
        case Kind.NONE_ALLOWED:
            return "none"
        case Kind.WITHIN:
            return f"{gate.limit:g} s each"
        case Kind.OUTSIDE:
            return "what others say"


def _form_of(row: Gate, posted: Any) -> GateForm:
    initial = {name: getattr(row, name) for name in GateForm.base_fields}
    initial["margin"] = round(row.margin * 100, 4)
    initial["patience"] = int(row.patience.total_seconds())
    form = GateForm(posted, initial=initial)
    for name in UNUSED[ABOUT[Measure(row.measure)].kind]:
        del form.fields[name]
    return form


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0


def say(form: forms.Form, refused: Invalid | Outdated) -> None:
    """A refusal beside the fields that it is about."""
    if isinstance(refused, Invalid):
        blame(form, refused.fields)
    else:
        form.add_error(None, refused.message)
