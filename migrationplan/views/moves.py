"""Moves: the list, one with its lane, and what operators decide about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import F
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from devices.fleet.nodepools import standings
from devices.forecasts.warm import warm
from devices.models import NodePool
from migrationplan.models import Move
from migrationplan.moving.moves import NotMovable, begin, look_again, turn_back
from migrationplan.steps import WAYS, Direction, Step
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

PAGE_SIZE = 50
ACTS = {"again": look_again, "back": turn_back}
WORDS = {
    Step.QUIESCING: "Closed to new Pods; those that hold devices are waited for",
    Step.PLUGIN_OFF: "The device plugin leaves",
    Step.NODE_PROOF: "The node itself says that nothing is left",
    Step.DRIVER_ON: "The driver comes and publishes every device",
    Step.SETTLING: "What the kubelet may remember runs out",
    Step.DRIVER_OFF: "The driver leaves",
    Step.SLICES_GONE: "What it published goes",
    Step.PLUGIN_ON: "The device plugin comes and offers every device",
    Step.VERIFYING: "A Pod of Berth's own gets a device and runs",
    Step.OPENING: "Open to Pods again",
    Step.DONE: "Done",
    Step.LOST: "The machine is gone",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """One step on the lane: `state` is a word of the status table."""

    step: Step
    words: str
    state: str
    at: datetime | None = None


@require_safe
@login_required
def moves(request: HttpRequest) -> HttpResponse:
    """Every move, those under way first."""
    platform_access(request.user)
    rows = Move.objects.select_related("pool").order_by(F("ended_at").desc(nulls_first=True), "-pk")
    context = {
        "page": Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page")),
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    part = "migrationplan/_moves.html" if wants_partial(request) else "migrationplan/moves.html"
    return render(request, part, context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def move(request: HttpRequest, public_id: str) -> HttpResponse:
    """One move; a POST lets it go on, or turns it back."""
    access = platform_access(request.user)
    row = get_object_or_404(Move.objects.select_related("pool"), public_id=public_id)
    if request.method == "POST":
        act = ACTS.get(request.POST.get("act", ""))
        if act is None:
            raise Http404
        try:
            act(row, access=access, request_id=request_id_of(request), now=timezone.now())
        except NotMovable as refused:
            messages.error(request, refused.message)
        return redirect("move", public_id=public_id)
    events = list(row.events.all())
    people = names_of(one.person for one in events)
    context = {
        "move": row,
        "stages": lane(row),
        "events": [(one, people[one.person] if one.person else "") for one in events],
        "why_not": access.why_not(PlatformAct.CONVERT),
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    part = "migrationplan/_move.html" if wants_partial(request) else "migrationplan/move.html"
    return render(request, part, context)


@require_POST
@login_required
def move_begin(request: HttpRequest, slug: str) -> HttpResponse:
    """Begins a move of one node of a pool."""
    access = platform_access(request.user)
    access.require(PlatformAct.CONVERT)
    pool, now = get_object_or_404(NodePool, slug=slug), timezone.now()
    direction = next((one for one in Direction if one == request.POST.get("direction")), None)
    seen = warm()
    nodes = {one.node.name: one for one in standings(pool, seen, now)} if seen else {}
    found = nodes.get(request.POST.get("node", ""))
    if found is None or direction is None:
        raise Http404
    try:
        made = begin(
            pool, found, direction, access=access, request_id=request_id_of(request), now=now
        )
    except NotMovable as refused:
        messages.error(request, refused.message)
        return redirect("node-pool", slug=slug)
    return redirect("move", public_id=made.public_id)


def lane(row: Move) -> list[Stage]:
    """The steps of its way, each with how it stands and when it began."""
    began: dict[str, datetime] = {}
    for event in row.events.all():
        if event.direction == row.direction:
            began.setdefault(event.step, event.at)
    way = WAYS[Direction(row.direction)]
    here = way.index(Step(row.step)) if row.step in way else -1
    stages = []
    for index, step in enumerate(way):
        state = "done" if index < here or row.step == Step.DONE else "todo"
        if index == here and row.step != Step.DONE:
            state = "fail" if row.called else "here"
        elif row.cancelled and step.value not in began:
            state = "spared"
        stages.append(Stage(step, WORDS[step], state, began.get(step.value)))
    return stages
