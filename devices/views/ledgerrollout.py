"""Rolling the accounting out, what it is held to, and what drivers may do: the ledger's acts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from devices.dra.ledgerrollout import MOVES, Phase
from devices.ledger.closures import set_policy
from devices.ledger.objectives import LONGEST, set_objectives
from devices.ledger.rollouts import LONGEST_WHY, RolloutNotNow, act, current, start
from devices.models import DriverRights, LedgerObjectives, LedgerPolicy, LedgerRollout
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from portal.ui.htmx import wants_partial
from tenants.access import PlatformAccess, platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

#: Which phase each act of a person leads to, by its word in the address.
ACTS: Final = {"stop": Phase.STOPPED, "resume": Phase.CANARY, "end": Phase.ENDED}
#: The row of the status table and the word for each phase.
WORDS: Final = {
    Phase.CANARY: ("here", "Canaries"),
    Phase.SOAKING: ("soaking", "Soaking"),
    Phase.WIDE: ("here", "The other nodes"),
    Phase.DONE: ("done", "Done"),
    Phase.STOPPED: ("held", "Stopped"),
    Phase.REPAIRED: ("paused", "Repaired, to be resumed"),
    Phase.ENDED: ("todo", "Ended"),
}
_WAY: Final = (Phase.CANARY, Phase.SOAKING, Phase.WIDE, Phase.DONE)
_PAST: Final = 20


class StartForm(forms.Form):
    """Which nodes come first."""

    canaries = forms.CharField(
        label="Canary nodes",
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Names, one a line. Turn the gate on in their kubelets; Berth watches.",
    )
    soak = forms.IntegerField(
        label="Soak, in hours",
        min_value=0,
        max_value=720,
        initial=24,
        help_text="For so long nothing may differ on them before the other nodes follow.",
    )


class WhyForm(forms.Form):
    """Why somebody stops, resumes or ends it."""

    why = forms.CharField(max_length=LONGEST_WHY, label="Why, for the audit")


class ObjectivesForm(forms.Form):
    """What capacity and pending Pods are held to."""

    most_charged = forms.IntegerField(
        label="Charged at most, in per cent",
        min_value=1,
        max_value=100,
        help_text="Of what a node offers of CPU, memory or huge pages.",
    )
    most_pending = forms.IntegerField(
        label="Waiting at most, in minutes",
        min_value=1,
        max_value=LONGEST,
        help_text="A Pod with devices that waits for want of them.",
    )


class PolicyForm(forms.Form):
    """Whether Pods that nobody asked Berth for wait as well."""

    closes = forms.BooleanField(
        required=False,
        label="Every Pod waits, also those made outside of Berth",
        help_text="Berth sets a DeviceTaintRule on the slice pools of such nodes and removes it "
        "when they are safe. What runs keeps its devices.",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def rollout(request: HttpRequest) -> HttpResponse:
    """Where the rollout stands, and those before it. A POST starts one."""
    access = platform_access(request.user)
    form = StartForm(request.POST or None)
    if request.method == "POST":
        access.require(PlatformAct.FREEZE)
        if form.is_valid():
            try:
                start(
                    access=access,
                    canaries=form.cleaned_data["canaries"].replace(",", "\n").splitlines(),
                    soak=timedelta(hours=form.cleaned_data["soak"]),
                    request_id=request_id_of(request),
                    now=timezone.now(),
                )
            except Invalid as refused:
                blame(form, refused.fields)
            except RolloutNotNow as refused:
                form.add_error(None, refused.message)
            else:
                messages.success(request, "The rollout has begun; it waits for its canaries.")
                return redirect("ledger-rollout")
    return _page(request, access, form, WhyForm())


@require_POST
@login_required
def rollout_act(request: HttpRequest, public_id: str, what: str) -> HttpResponse:
    """Stops, resumes or ends a rollout."""
    access = platform_access(request.user)
    access.require(PlatformAct.FREEZE)
    row = get_object_or_404(LedgerRollout, public_id=public_id)
    if what not in ACTS:
        raise Http404
    form = WhyForm(request.POST)
    if form.is_valid():
        try:
            act(
                row, ACTS[what], access=access, why=form.cleaned_data["why"],
                request_id=request_id_of(request), now=timezone.now(),
            )  # fmt: skip
        except Invalid as refused:
            blame(form, refused.fields)
        except RolloutNotNow as refused:
            form.add_error(None, refused.message)
        else:
            return redirect("ledger-rollout")
    return _page(request, access, StartForm(), form)


def _page(
    request: HttpRequest, access: PlatformAccess, form: StartForm, why: WhyForm
) -> HttpResponse:
    row = current()
    past = LedgerRollout.objects.filter(phase=Phase.ENDED.value)[:_PAST]
    moves = list(row.moves.all()[:_PAST]) if row else []
    people = names_of([*(one.person for one in moves), *(one.started_by for one in past)])
    phase = Phase(row.phase) if row else None
    context: dict[str, Any] = {
        "row": row,
        "stages": _stages(row) if row else [],
        "word": WORDS[phase] if phase else None,
        "may": [
            name
            for name, to in ACTS.items()
            if phase and to in MOVES[phase] and (name != "resume" or phase is Phase.REPAIRED)
        ],
        "moves": [(one, *WORDS[Phase(one.to)], people[one.person]) for one in moves],
        "past": [(one, people[one.started_by]) for one in past],
        "form": form,
        "why": why,
        "why_not": access.why_not(PlatformAct.FREEZE),
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    wrong = any(one.is_bound and bool(one.errors) for one in (form, why))
    part = "_ledger_rollout" if wants_partial(request) else "ledger_rollout"
    return render(request, f"devices/{part}.html", context, status=422 if wrong else 200)


def _stages(row: LedgerRollout) -> list[dict[str, Any]]:
    phase = Phase(row.phase)
    stopped = phase not in _WAY
    at = Phase.WIDE if row.wide else Phase.CANARY
    here = _WAY.index(at if stopped else phase)
    return [
        {
            "state": "done" if n < here or phase is Phase.DONE else "here" if n == here else "todo",
            "word": WORDS[one][1],
            "note": "",
            "tone": "hold" if stopped and n == here else "",
        }
        for n, one in enumerate(_WAY)
    ]


@require_POST
@login_required
def objectives(request: HttpRequest) -> HttpResponse:
    """Sets what capacity and pending Pods are held to."""
    access = platform_access(request.user)
    access.require(PlatformAct.ASSUME)
    form = ObjectivesForm(request.POST)
    if not form.is_valid():
        found = form.errors.as_text()
        messages.error(request, f"Nothing was set. {' '.join(found.split())}")
        return redirect("ledger-promotion")
    set_objectives(
        access=access, **form.cleaned_data, request_id=request_id_of(request), now=timezone.now()
    )
    messages.success(request, "The objectives are set.")
    return redirect("ledger-promotion")


@require_POST
@login_required
def policy(request: HttpRequest) -> HttpResponse:
    """Sets whether every Pod waits while a ledger cannot be relied on."""
    access = platform_access(request.user)
    form = PolicyForm(request.POST)
    closes = form.is_valid() and form.cleaned_data["closes"]
    set_policy(access=access, closes=closes, request_id=request_id_of(request), now=timezone.now())
    messages.success(request, "Every Pod waits from now on." if closes else "Only requests wait.")
    return redirect("ledger")


def policy_form() -> PolicyForm:
    """The form with what is set now."""
    return PolicyForm(initial={"closes": LedgerPolicy.current().closes})


def objectives_form() -> ObjectivesForm:
    """The form with what is set now."""
    row = LedgerObjectives.objects.first()
    set_ = {"most_charged": row.most_charged, "most_pending": row.most_pending} if row else None
    return ObjectivesForm(initial=set_)


@require_safe
@login_required
def driver_rights(request: HttpRequest) -> HttpResponse:
    """What the last `manage.py checkrights` found of drivers' rights."""
    platform_access(request.user)
    row = DriverRights.objects.first()
    context = {"row": row, "stream": reverse("platform-events"), "now": timezone.now()}
    return render(request, "devices/ledger_rights.html", context)
