"""Plans: the list, one with its waves and the nodes of one of them, and what people decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from devices.forecasts.warm import warm
from migrationplan.models import Gate, Plan, Wave, WaveNode
from migrationplan.phases import AT_REST, Phase, Stand
from migrationplan.plans import leave, making, running
from migrationplan.plans.lanes import heads, lanes
from migrationplan.plans.observe import moves_of
from migrationplan.plans.wishes import PlanWish, wish_of, words_of
from migrationplan.steps import Direction
from migrationplan.views.plan_forms import PlanForm, WaveForm, initial_of
from migrationplan.wave import PAUSABLE
from migrationplan.windows import about
from portal.approvals.rules import State as ApprovalState
from portal.errors import Invalid, NotPermitted, Outdated, Refused
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from portal.ui.htmx import mark_of, wants_partial
from tenants.access import PlatformAccess, platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

PAGE_SIZE: Final = 50
LOG_SIZE: Final = 40
#: The length of the ring's line, as the stylesheet draws it.
RING: Final = 238.8
SKIPPABLE: Final = frozenset(one.value for one in running.SKIPPABLE)
#: Verbs by the name that a form sends; each takes a reason.
ACTS: Final[Mapping[str, Callable[..., Any]]] = {
    "pause": running.pause,
    "resume": running.resume,
    "roll-back": running.roll_back,
    "withdraw": leave.withdraw,
}


def counted() -> Any:
    """Waves with how many nodes they have and how many are through."""
    through = Q(nodes__stand=Stand.CONVERTED.value)
    return Wave.objects.annotate(
        total=Count("nodes"), through=Count("nodes", filter=through)
    ).order_by("position")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def plans(request: HttpRequest) -> HttpResponse:
    """All plans; a POST makes one."""
    access = platform_access(request.user)
    form = PlanForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            plan = making.make(PlanWish(**_wish(form)), **_by(request, access, seen=True))
        except Invalid as refused:
            blame(form, refused.fields)
        else:
            messages.success(request, f"{plan.number} is made; its waves are drafts.")
            return redirect("plan", public_id=plan.public_id)
    page = Paginator(Plan.objects.order_by("-pk"), PAGE_SIZE).get_page(request.GET.get("page"))
    waves: dict[int, list[Wave]] = {}
    for wave in counted().filter(plan__in=[plan.pk for plan in page]):
        waves.setdefault(wave.plan_id, []).append(wave)
    context = {
        "page": page,
        "rows": [(plan, waves.get(plan.pk, []), _now(waves.get(plan.pk, []))) for plan in page],
        "form": form,
        "why_not": access.why_not(PlatformAct.CONVERT),
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    status = 422 if request.method == "POST" else 200
    part = "migrationplan/_plans.html" if wants_partial(request) else "migrationplan/plans.html"
    return render(request, part, context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def plan(request: HttpRequest, public_id: str, position: int | None = None) -> HttpResponse:
    """One plan at one of its waves, the one that counts now where none is named; a POST is what
    somebody decides about that wave.
    """
    access = platform_access(request.user)
    found = get_object_or_404(Plan.objects.select_related("strategy"), public_id=public_id)
    waves = list(counted().filter(plan=found))
    wave = next((one for one in waves if one.position == position), None)
    if position is None:
        wave = _now(waves)
    if wave is None:
        raise Http404
    wave.plan = found
    wrong = ""
    if request.method == "POST":
        try:
            _act(request, wave, access)
        except NotPermitted:
            raise
        except Invalid as refused:
            wrong = next(iter(refused.fields.values()), refused.message)
        except Refused as refused:
            wrong = refused.message
        if not wrong:
            return redirect("plan-wave", public_id=public_id, position=wave.position)
        messages.error(request, wrong)
    context = {
        "plan": found,
        "waves": waves,
        "wave": wave,
        "access_platform": access,
        **_of_wave(request, wave, access),
        "why_not": access.why_not(PlatformAct.CONVERT),
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    part = "migrationplan/_plan_live.html" if wants_partial(request) else "migrationplan/plan.html"
    return render(request, part, context, status=422 if wrong else 200)


def _of_wave(request: HttpRequest, wave: Any, access: PlatformAccess) -> dict[str, Any]:
    """What the page shows of one wave; a constant number of queries."""
    phase, direction = Phase(wave.phase), Direction(wave.plan.direction)
    page = Paginator(wave.nodes.select_related("pool"), PAGE_SIZE).get_page(request.GET.get("page"))
    rows = list(page.object_list)
    events = list(wave.events.order_by("-pk")[:LOG_SIZE])
    people = names_of(one.person for one in events)
    approval = leave.approval_of(wave)
    given, words = leave.of(wave, approval)
    may_withdraw = bool(
        leave.is_mine(approval, access.user.person)
        and approval
        and approval.state == ApprovalState.APPROVED
        and not wave.withdrawn
        and phase not in making.ENDED
    )
    return {
        "page": page,
        "lanes": lanes(rows, moves_of(wave, rows).values(), direction),
        "heads": heads(direction),
        "events": [(one, people[one.person] if one.person else "") for one in events],
        "rules": _rules(wave),
        "approval": approval,
        "leave": given.value,
        "leave_words": words,
        "soak": _soak(wave),
        "may_submit": given.value in ("not asked", "refused") and phase not in making.ENDED,
        "may_pause": phase in PAUSABLE and not wave.wish_pause,
        "may_resume": phase is Phase.PAUSED and not wave.wish_resume,
        "may_roll_back": phase not in (Phase.ROLLING_BACK, Phase.ROLLED_BACK)
        and not wave.wish_roll_back,
        "may_change": phase not in making.ENDED,
        "not_begun": phase in making.NOT_BEGUN,
        "may_withdraw": may_withdraw,
        "may_decide": any(map(access.may, (PlatformAct.CONVERT, PlatformAct.DECIDE))),
        "rests": phase in AT_REST,
        "skippable": [one for one in rows if not one.skipped and one.stand in SKIPPABLE],
        "listed": _listed(rows, phase),
        "known": request.GET.get("listed", ""),
        "chosen": request.POST.get("leave-out") or request.GET.get("leave-out", ""),
        "reason": request.POST.get("reason", ""),
        "word": wave.phase.replace(" ", "_"),
    }


def _rules(wave: Wave) -> dict[str, str]:
    """Its settings in words, its gates by their names."""
    names = dict(Gate.objects.filter(slug__in=wave.gates).values_list("slug", "name"))
    rules = words_of(wish_of(wave), [])
    return rules | {"gates": ", ".join(names.get(one, one) for one in wave.gates) or "none"}


def _listed(rows: Sequence[WaveNode], phase: Phase) -> str:
    """What an open page sends back, to be sent the nodes to choose from only when they changed."""
    listed = [(one.node, one.stand, one.skipped) for one in rows]
    return mark_of((listed, phase in making.ENDED))


def _soak(wave: Wave) -> dict[str, Any] | None:
    """How much of the soak is over, while it runs or stands still."""
    soaking = wave.phase == Phase.SOAKING
    if not wave.soak or not (soaking or wave.paused_from == Phase.SOAKING):
        return None
    over = wave.soaked + (timezone.now() - wave.since if soaking else timedelta(0))
    share = min(over / wave.soak, 1.0)
    return {
        "over": about(min(over, wave.soak)).removeprefix("about "),
        "of": about(wave.soak).removeprefix("about "),
        "left": about(max(wave.soak - over, timedelta(0))).removeprefix("about "),
        "percent": round(share * 100),
        "arc": f"{share * RING:.1f} {RING}",
        "still": not soaking,
    }


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def wave_edit(request: HttpRequest, public_id: str, position: int) -> HttpResponse:
    """Changes one wave; every approval of the plan is void by it."""
    access = platform_access(request.user)
    wave = get_object_or_404(
        Wave.objects.select_related("plan"), plan__public_id=public_id, position=position
    )
    nodes = list(wave.nodes.values_list("node", flat=True))
    wish = wish_of(wave)
    shown = {**initial_of(wish), "nodes": "\n".join(nodes)}
    form = WaveForm(request.POST or None, initial=shown, by_share=False)
    if request.method == "POST" and form.is_valid():
        try:
            making.change(
                wave, form.wish(),
                revision=int(request.POST.get("revision") or 0), **_by(request, access, seen=True),
            )  # fmt: skip
        except Invalid as refused:
            blame(form, refused.fields)
        except (Outdated, making.WaveRefused) as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, f"Wave {position} is changed.")
            return redirect("plan-wave", public_id=public_id, position=position)
    asked = wave.plan.waves.filter(submitted=True).count()
    context = {
        "plan": wave.plan,
        "wave": wave,
        "form": form,
        "voids": asked,
        "why_not": access.why_not(PlatformAct.CONVERT),
        "now": timezone.now(),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "migrationplan/plan_wave_edit.html", context, status=status)


def _act(request: HttpRequest, wave: Wave, access: PlatformAccess) -> None:
    """One of the page's buttons. Raises what the verbs raise; 404 for no verb."""
    name, reason = request.POST.get("act", ""), request.POST.get("reason", "")
    if node := request.POST.get("take-in"):
        running.take_in(wave, node, **_by(request, access))
    elif name in ACTS:
        ACTS[name](wave, reason=reason, **_by(request, access))
    elif name == "submit":
        making.submit(wave, reason=reason, **_by(request, access, seen=True))
    elif name == "skip":
        if not (chosen := request.POST.get("leave-out", "")):
            raise Invalid(
                "No node is left out.", fields={"leave-out": "Choose a node to leave out."}
            )
        running.skip(wave, chosen, reason=reason, **_by(request, access))
    else:
        raise Http404


def _by(request: HttpRequest, access: PlatformAccess, *, seen: bool = False) -> dict[str, Any]:
    by: dict[str, Any] = {
        "access": access,
        "request_id": request_id_of(request),
        "now": timezone.now(),
    }
    if seen:
        picture = warm()
        by["snapshot"] = picture.now if picture else None
    return by


def _wish(form: PlanForm) -> dict[str, Any]:
    return {**form.cleaned_data, "pools": tuple(form.cleaned_data["pools"])}


def _now(waves: list[Any]) -> Any:
    """The wave that counts now: the first that has not ended, else the last."""
    open_ones = [one for one in waves if one.phase not in (Phase.DONE, Phase.ROLLED_BACK)]
    return (open_ones or waves[-1:] or [None])[0]
