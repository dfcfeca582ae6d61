"""The node ledger: the cluster at a glance, one node with its zones and lines, and any lines."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.asks.searches import search_of
from devices.dra.ledgerreport import Feature, Met, feature_of, report, shapes_of
from devices.dra.snapshot import Snapshot
from devices.fleet.ownershipbook import moment_of
from devices.forecasts.warm import warm
from devices.ledger.drawing import MOST_CELLS, heat_map, steps_chart
from devices.ledger.exports import export, shape_of
from devices.ledger.figures import Figure, by_importance, figures, kept, shown_first, zones
from devices.ledger.figures import steps as changes_of
from devices.ledger.lists import WHICH, chosen_lines
from devices.ledger.moments import Moment, moment
from devices.ledger.promotion import record_of
from devices.models import (
    ClusterState,
    LedgerDifference,
    LedgerHead,
    LedgerLine,
    LedgerNode,
    LedgerPolicy,
    LedgerUpgrade,
)
from devices.models.ledger import STATES
from devices.views.ledgerrollout import objectives_form, policy_form
from portal.errors import Invalid
from portal.keyset import Order, cut
from portal.ui.htmx import wants_partial
from tenants.access import platform_access
from tenants.policy import PlatformAct

PAGE_SIZE: Final = 50
NODES: Final = 100
DAY: Final = timedelta(hours=24)
_ORDER: Final = Order("id", descending=True)


@require_safe
@login_required
def ledger(request: HttpRequest) -> HttpResponse:
    """Every node; `?resource=` is drawn, `?state=` and `?q=` narrow, `?at=` is a moment."""
    access = platform_access(request.user)
    asked, query, now = request.GET, search_of(request.GET), timezone.now()
    when = moment(asked, now)
    at, wrong = when.at, when.wrong
    states = {row.node: row for row in LedgerNode.objects.all()}
    by_node = _figures(states, at)
    names = {name for found in by_node.values() for name in found}
    resources = shown_first([name for name in names if name != "pods"])
    resource = asked.get("resource", "cpu")
    cells = sorted(
        (found[resource] for found in by_node.values() if resource in found), key=_fullness
    )
    known = states if at is None else {}  # how safe nodes were then is not kept
    rows = [
        (node, states.get(node), [found.get(name) for name in resources[:3]])
        for node, found in sorted(by_node.items(), key=lambda item: _order(item, known, resource))
        if (not query or query.lower() in node.lower())
        and (not asked.get("state") or _state(states.get(node)) == asked["state"])
    ]
    counts = {state: 0 for state, _ in STATES}
    for row in states.values():
        counts[row.state] += 1
    context = {
        "head": LedgerHead.objects.first(),
        "policy": LedgerPolicy.current(),
        "policy_form": policy_form(),
        "why_not": access.why_not(PlatformAct.ASSUME),
        "counts": counts,
        "page": Paginator(rows, NODES).get_page(asked.get("page")),
        "columns": resources[:3],
        "resources": resources,
        "resource": resource,
        "state": asked.get("state", ""),
        "states": STATES,
        "query": query,
        "cells": len(cells),
        "most": MOST_CELLS,
        "map": heat_map(f"Nodes by how much of their {resource} is charged", cells[:MOST_CELLS]),
        "diverging": LedgerDifference.objects.filter(until=None).exclude(verdict="later").count(),
        "at": at,
        "when": when,
        "keep": {name: asked[name] for name in ("q", "resource", "state") if asked.get(name)},
        "wrong": wrong,
        "stream": reverse("platform-events"),
        "now": now,
    }
    part = "devices/_ledger.html" if wants_partial(request) else "devices/ledger.html"
    return render(request, part, context, status=422 if wrong else 200)


@require_safe
@login_required
def ledger_node(request: HttpRequest, node: str) -> HttpResponse:
    """One node: what it has left, by zone, over a day, and its newest lines."""
    platform_access(request.user)
    now = timezone.now()
    when = moment(request.GET, now)
    at, wrong = when.at, when.wrong
    rows = LedgerLine.objects.filter(node=node)
    state = LedgerNode.objects.filter(node=node).first()
    found = by_importance(figures(LedgerLine.objects.charges(at).filter(node=node)))
    if not found and state is None and not rows.exists():
        raise Http404
    main = [one for one in found if one.resource != "pods"]
    chosen = request.GET.get("resource") or (main[0].resource if main else "cpu")
    differences = LedgerDifference.objects.filter(node=node)
    context: dict[str, Any] = {
        "node": node,
        "state": state,
        "head": LedgerHead.objects.first(),
        "figures": main,
        "resource": chosen,
        "zones": zones(node, at),
        "differences": differences.filter(until=None),
        "past": differences.exclude(until=None)[:5],
        "lines": (rows.filter(at__lte=at) if at else rows).order_by("-pk")[:12],
        "shape": _shape(),
        "chart": _chart(node, chosen, found, when, now),
        "at": at,
        "when": when,
        "keep": {"resource": chosen},
        "then": f"&at={quote(at.isoformat())}" if at else "",
        "wrong": wrong,
        "stream": reverse("platform-events"),
        "now": now,
    }
    part = "devices/_ledger_node.html" if wants_partial(request) else "devices/ledger_node.html"
    return render(request, part, context, status=422 if wrong else 200)


@require_safe
@login_required
def ledger_lines(request: HttpRequest) -> HttpResponse:
    """Lines, newest first: of a node, a resource, a Pod, a claim; all of them, or what stands."""
    platform_access(request.user)
    asked = request.GET
    at, wrong = moment_of(asked.get("at", ""))
    rows, given, which = chosen_lines(asked, at)
    try:
        page = cut(rows, _ORDER, PAGE_SIZE, asked.get("cursor", ""))
    except Invalid:
        page = cut(rows, _ORDER, PAGE_SIZE)
    context = {
        "page": page,
        "given": given,
        "which": which,
        "whiches": WHICH,
        "figures": by_importance(figures(LedgerLine.objects.charges(at).filter(**given)))
        if given.keys() & {"pod", "claim"}
        else [],
        "at": at,
        "wrong": wrong,
        "now": timezone.now(),
    }
    return render(request, "devices/ledger_lines.html", context, status=422 if wrong else 200)


#: What pages call the ways in which a node has the feature, or has it not.
FEATURES: Final = {
    Feature.DECLARED: "declare it",
    Feature.USED: "do not say; a driver publishes the field of 1.36",
    Feature.ABSENT: "do not declare it",
    Feature.UNKNOWN: "do not say, and nothing is published",
}


@require_safe
@login_required
def ledger_promotion(request: HttpRequest) -> HttpResponse:
    """Whether the accounting may be promoted: each criterion with its evidence; made to print."""
    access, now = platform_access(request.user), timezone.now()
    seen = warm()
    snapshot = seen.now if seen is not None else Snapshot()
    criteria = report(snapshot, record_of(snapshot, now), now)
    shapes = shapes_of(snapshot)
    nodes: dict[Feature, list[str]] = {}
    for node in snapshot.nodes.values():
        nodes.setdefault(feature_of(node, shapes), []).append(node.name)
    context = {
        "criteria": criteria,
        "counts": {met.name.lower(): sum(one.met is met for one in criteria) for met in Met},
        "features": [(FEATURES[one], nodes[one]) for one in FEATURES if one in nodes],
        "mixed": len(nodes) > 1,
        "upgrades": LedgerUpgrade.objects.all()[:8],
        "form": objectives_form(),
        "why_not": access.why_not(PlatformAct.ASSUME),
        "now": now,
    }
    return render(request, "devices/ledger_promotion.html", context)


@require_safe
@login_required
def ledger_file(request: HttpRequest) -> HttpResponse | StreamingHttpResponse:
    """The log as JSON lines, for `manage.py replayledger`; `?from=` and `?to=` are moments."""
    platform_access(request.user)
    moments = []
    for name in ("from", "to"):
        moment, wrong = moment_of(request.GET.get(name, ""))
        if wrong:
            raise Invalid("No such moment.", fields={name: wrong})
        moments.append(moment)
    answer = StreamingHttpResponse(export(*moments), content_type="application/x-ndjson")
    answer["Content-Disposition"] = 'attachment; filename="berth-ledger.jsonl"'
    return answer


def _figures(states: dict[str, LedgerNode], at: Any) -> dict[str, dict[str, Figure]]:
    """Figures by node and resource: as the last look left them, or as of a moment."""
    found: dict[str, dict[str, Figure]] = {}
    if at is None:
        for node, row in states.items():
            found[node] = {one.resource: one for one in kept(node, row.figures)}
        return found
    for one in figures(LedgerLine.objects.charges(at)):
        found.setdefault(one.node, {})[one.resource] = one
    return found


def _fullness(figure: Figure) -> tuple[object, ...]:
    share = figure.share
    return (share is not None, -(share or 0), figure.node)


def _state(row: LedgerNode | None) -> str:
    return row.state if row is not None else ""


def _order(
    item: tuple[str, dict[str, Figure]], states: dict[str, LedgerNode], resource: str
) -> tuple[object, ...]:
    node, found = item
    worst = ("unsafe", "rebuilding").index(state) if (state := _state(states.get(node))) in (
        "unsafe", "rebuilding"
    ) else 2  # fmt: skip
    share = found[resource].share if resource in found else None
    return (worst, -(share or 0), node)


def _shape() -> str:
    cluster = ClusterState.objects.first()
    return shape_of(cluster.release) if cluster else "unknown"


def _chart(node: str, resource: str, found: list[Figure], when: Moment, now: datetime) -> Any:
    """The day that the slider stands in, with a mark where it stands; else the day before."""
    offered = next((one.offered for one in found if one.resource == resource), None)
    until = when.at if when.at is not None and when.earlier else now
    since = until - DAY
    first, changes = changes_of(node, resource, since, until)
    if not first and not changes:
        return ""
    title = f"{resource} charged on {node} over 24 hours, from the log"
    mark = when.at if until is now else None
    return steps_chart(title, resource, first, changes, since, until, offered, mark)
