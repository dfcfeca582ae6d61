"""Drills: what passed where and when, one drill with its steps, and beginning one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from devices.fleet.nodepools import standings
from devices.forecasts.warm import warm
from devices.models import NodePool
from migrationplan.drills.kinds import DRILLS
from migrationplan.drills.kinds import Drill as About
from migrationplan.drills.running import NotDrillable, begin, give_up, passed_by_pool
from migrationplan.drills.words import Kind
from migrationplan.models import Drill
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Stage:
    """One step on the page: `state` is a word of the status table, `took` from the step before."""

    title: str
    state: str
    at: datetime | None = None
    took: Any = None
    said: str = ""
    evidence: tuple[str, ...] = ()


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def drills(request: HttpRequest) -> HttpResponse:
    """Each pool by kind with when it last passed, and every drill; a POST begins one."""
    access = platform_access(request.user)
    now, seen = timezone.now(), warm()
    pools = list(NodePool.objects.all())
    if request.method == "POST":
        access.require(PlatformAct.DRILL)
        pool = next((one for one in pools if one.slug == request.POST.get("pool")), None)
        kind = next((one for one in Kind if one == request.POST.get("kind")), None)
        nodes = standings(pool, seen, now) if pool and seen else []
        node = next((one for one in nodes if one.node.name == request.POST.get("node")), None)
        if pool is None or kind is None or node is None or seen is None:
            raise Http404
        try:
            made = begin(
                pool, kind, node, seen, access=access, request_id=request_id_of(request), now=now
            )
        except NotDrillable as refused:
            messages.error(request, refused.message)
            return redirect("drills")
        return redirect("drill", public_id=made.public_id)
    chosen = _chosen(request, pools)
    context = {
        "pools": pools,
        "kinds": list(DRILLS.values()),
        "table": _table(pools),
        "pool": chosen,
        "nodes": standings(chosen, seen, now) if chosen and seen else [],
        "kind": request.GET.get("kind", ""),
        "page": Paginator(Drill.objects.select_related("pool"), PAGE_SIZE).get_page(
            request.GET.get("page")
        ),
        "why_not": access.why_not(PlatformAct.DRILL),
        "stream": reverse("platform-events"),
        "now": now,
    }
    part = "_drills.html" if wants_partial(request) else "drills.html"
    return render(request, f"migrationplan/{part}", context)


def _chosen(request: HttpRequest, pools: list[NodePool]) -> NodePool | None:
    named = request.GET.get("pool", "")
    return next((one for one in pools if one.slug == named), pools[0] if pools else None)


def _table(pools: list[NodePool]) -> list[tuple[About, list[tuple[NodePool, datetime | None]]]]:
    """By kind, each pool with when it last passed there."""
    passed = passed_by_pool()
    return [
        (about, [(pool, passed.get((pool.pk, about.kind.value))) for pool in pools])
        for about in DRILLS.values()
    ]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def drill(request: HttpRequest, public_id: str) -> HttpResponse:
    """One drill; a POST gives it up."""
    access = platform_access(request.user)
    row = get_object_or_404(Drill.objects.select_related("pool"), public_id=public_id)
    if request.method == "POST":
        if request.POST.get("act") != "give-up":
            raise Http404
        try:
            give_up(row, access=access, request_id=request_id_of(request), now=timezone.now())
        except NotDrillable as refused:
            messages.error(request, refused.message)
        return redirect("drill", public_id=public_id)
    about = DRILLS[Kind(row.kind)]
    step = about.at(row.position) if row.ended_at is None else None
    context = {
        "drill": row,
        "about": about,
        "stages": stages(row, about),
        "step": step,
        "do": told(step.do, row) if step else "",
        "shell": told(step.shell, row) if step else "",
        "who": names_of([row.begun_by])[row.begun_by],
        "why_not": access.why_not(PlatformAct.DRILL),
        "stream": reverse("platform-events"),
        "now": timezone.now(),
    }
    part = "_drill.html" if wants_partial(request) else "drill.html"
    return render(request, f"migrationplan/{part}", context)


def stages(row: Drill, about: About) -> list[Stage]:
    """The steps, each with how it stands; one query."""
    marks = {one.step: one for one in row.marks.all()}
    before = marks["begun"].at if "begun" in marks else row.begun_at
    found = []
    for position, step in enumerate(about.steps):
        mark = marks.get(step.slug)
        if mark is not None:
            took = mark.at - before
            before = mark.at
            found.append(
                Stage(step.title, "done", mark.at, took, mark.text, tuple(mark.evidence[:3]))
            )
        elif position == row.position and row.ended_at is None:
            found.append(Stage(step.title, "here"))
        elif position == row.position and row.result == "failed":
            found.append(Stage(step.title, "fail", row.ended_at, None, row.why))
        else:
            found.append(Stage(step.title, "todo"))
    return found


def told(text: str, row: Drill) -> str:
    """A step's words with the names of this drill in them."""
    first = next(iter(row.baseline.get("driver_names", ())), "")
    namespace, _, pod = first.partition("/")
    names = {
        "node": row.node,
        "mark": row.mark,
        "device_class": row.pool.device_class,
        "namespace": "NAMESPACE",
        "driver_namespace": namespace or "NAMESPACE",
        "driver_pod": pod or "POD",
        "driver_container": "CONTAINER",
    }
    return text.format(**names)
