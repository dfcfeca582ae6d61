"""Readings: the newest of each gate of a node pool or wave, and one with its samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_safe

from devices.cluster.capabilities import DENIED, State, facts_of
from devices.models import ClusterState, NodePool
from migrationplan.gates import Samples
from migrationplan.gating import asking
from migrationplan.gating.judging import kept
from migrationplan.measures import ABOUT, About, Kind, Measure
from migrationplan.models import Gate, Reading
from migrationplan.views import gatecharts
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import platform_access
from tenants.policy import PlatformAct

SAMPLES_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Row:
    """A reading as a table shows it."""

    reading: Reading
    about: About
    moved: str
    others: str
    allowed: str
    drawing: SafeString

    @property
    def state(self) -> str:
        """A word of the status table; a trial gate is shown as such, with its verdict in words."""
        return "trial" if self.reading.trial else self.reading.verdict

    @property
    def apart(self) -> str:
        """How much more often moved nodes were bad, with its range."""
        figures = self.reading.figures
        if figures.get("apart") is None:
            return ""
        apart, low, high = (100 * figures[name] for name in ("apart", "low", "high"))
        return f"{apart:+.1f} ({low:+.1f} to {high:+.1f})"

    @property
    def samples(self) -> str:
        figures = self.reading.figures
        sides = (figures.get(name) or {} for name in ("moved", "others"))
        return " and ".join(str(side.get("samples", 0)) for side in sides)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def node_pool_readings(request: HttpRequest, slug: str) -> HttpResponse:
    """The newest reading of each gate; a POST has them all read now."""
    access = platform_access(request.user)
    pool = get_object_or_404(NodePool, slug=slug)
    now = timezone.now()
    if request.method == "POST":
        try:
            asking.ask(pool, access=access, request_id=request_id_of(request), now=now)
        except asking.NothingMoved as refused:
            messages.error(request, refused.message)
        else:
            messages.success(request, "The gates are being read; the table follows.")
        return redirect("node-pool-readings", slug=slug)
    wave = request.GET.get("wave", "")
    rows = [row_of(one) for one in newest(pool, wave)]
    context = {
        "pool": pool,
        "wave": wave,
        "rows": rows,
        "verdict": verdict(rows),
        "gates": Gate.objects.filter(retired_at=None).exists(),
        "why_not": access.why_not(PlatformAct.CONVERT),
        "stream": reverse("platform-events"),
        "now": now,
    }
    part = "_readings.html" if wants_partial(request) else "readings.html"
    return render(request, f"migrationplan/{part}", context)


@require_safe
@login_required
def reading(request: HttpRequest, public_id: str) -> HttpResponse:
    """One reading: the verdict, its numbers, its samples."""
    platform_access(request.user)
    row = get_object_or_404(Reading.objects.select_related("pool"), public_id=public_id)
    samples = kept(row)
    every = [
        *(("moved", one) for one in samples.moved),
        *(("others", one) for one in samples.others),
    ]
    context = {
        "row": row_of(row, samples),
        "reading": row,
        "page": Paginator(every, SAMPLES_SHOWN).get_page(request.GET.get("page")),
        "settings": settings_in_words(row),
        "seconds": row_is_time(row),
        "denied": denied() if row.measure == Measure.VIOLATIONS else None,
        "now": timezone.now(),
    }
    return render(request, "migrationplan/reading.html", context)


def denied() -> str:
    """How many attempts the policies denied, as the API server counts; empty where it is not known.

    It counts from its own start and of all node pools, so it stands beside a gate and never votes.
    """
    state = ClusterState.objects.first()
    fact = facts_of(state.capabilities if state is not None else ()).get(DENIED)
    return fact.detail if fact is not None and fact.state is State.ON else ""


def newest(pool: NodePool, wave: str) -> list[Reading]:
    """The newest reading of each gate, the bad ones first; one query."""
    rows = Reading.objects.filter(pool=pool, **({"wave": wave} if wave else {}))
    found = list(rows.order_by("gate", "-pk").distinct("gate"))
    order = {"fail": 0, "inconclusive": 1, "none": 1, "pass": 2}
    return sorted(found, key=lambda one: (one.trial, order[one.verdict], one.name))


def verdict(rows: list[Row]) -> tuple[str, str]:
    """The sentence that stands first, and its state."""
    voting = [row.reading for row in rows if not row.reading.trial]
    if not voting:
        return "unknown", "No gate that votes has been read."
    failed = [one.name for one in voting if one.verdict == "fail"]
    if failed:
        return "fail", f"{_and(failed)} failed on moved nodes."
    unsure = [one.name for one in voting if one.verdict != "pass"]
    if unsure:
        few = "one gate" if len(unsure) == 1 else f"{len(unsure)} gates"
        return "inconclusive", f"Nothing failed, and {few} cannot say yet: a person decides."
    return "pass", "Moved nodes are no worse than the others."


def row_of(one: Reading, samples: Samples | None = None) -> Row:
    """A reading with its numbers in words and its drawing."""
    about = ABOUT[Measure(one.measure)]
    sides = {name: one.figures.get(name) or {} for name in ("moved", "others")}
    limit = one.figures.get("slow_from")
    return Row(
        reading=one,
        about=about,
        moved=_side(sides["moved"], about),
        others=_side(sides["others"], about) if about.kind is not Kind.WITHIN else "–",
        allowed=_allowed(one, about, limit),
        drawing=_drawing(one, about, samples or kept(one), sides, limit),
    )


def _side(side: dict[str, Any], about: About) -> str:
    if not side.get("samples"):
        return "–"
    match about.kind:
        case Kind.SLOW | Kind.WITHIN:
            return f"{side['p95']:.3g} {about.unit}"
        case Kind.SHARE:
            return f"{100 * side['bad'] / side['samples']:.1f} %"
        case _:
            return str(side.get("bad") or 0)


def _allowed(one: Reading, about: About, limit: float | None) -> str:
    match about.kind:
        case Kind.SLOW | Kind.WITHIN:
            return f"≤ {limit:.3g} {about.unit}" if limit is not None else "–"
        case Kind.SHARE:
            return f"+{100 * one.settings['margin']:g} points"
        case Kind.NONE_ALLOWED:
            return "0"
        case Kind.OUTSIDE:
            return "–"


def _drawing(
    one: Reading, about: About, samples: Samples, sides: dict[str, Any], limit: float | None
) -> SafeString:
    if not samples.moved and not samples.others:
        return SafeString("")
    match about.kind:
        case Kind.SLOW | Kind.WITHIN:
            said = (
                f"Moved nodes: 95 of 100 within {_side(sides['moved'], about)}; "
                f"others {_side(sides['others'], about)}; slow from {limit or 0:.3g} {about.unit}"
            )
            return gatecharts.times(said, samples, limit)
        case Kind.SHARE:
            pairs = [
                (sides[name].get("bad") or 0, sides[name].get("samples") or 0)
                for name in ("moved", "others")
            ]
            moved, others = (_side(sides[name], about) for name in ("moved", "others"))
            return gatecharts.shares(f"Moved nodes {moved}, others {others}", *pairs)
        case _:
            return SafeString("")


def row_is_time(one: Reading) -> str:
    """The unit of its samples; empty where they are counts."""
    about = ABOUT[Measure(one.measure)]
    return about.unit if about.kind in (Kind.SLOW, Kind.WITHIN) else ""


def settings_in_words(one: Reading) -> list[tuple[str, str]]:
    """The settings that were in force, as far as the measure uses them."""
    kept_settings, kind = one.settings, ABOUT[Measure(one.measure)].kind
    found = [("Gate's revision", str(kept_settings.get("revision", "")))]
    if kind in (Kind.SHARE, Kind.SLOW):
        found.append(("Margin", f"{100 * kept_settings['margin']:g} points"))
        found.append(("Samples of each side", str(kept_settings["least"])))
    if kind is Kind.SLOW:
        found.append(("Tolerance", f"{kept_settings['tolerance']:g} × p95 of the others"))
        found.append(("Slack", f"{kept_settings['slack']:g}"))
    if one.measure == Measure.ALLOCATION:
        found.append(("Patience", f"{kept_settings['patience']:g} s"))
    if kind is Kind.WITHIN:
        found.append(("Limit", f"{kept_settings['limit']:g} s"))
    if kept_settings.get("query"):
        found.append(("Query", kept_settings["query"]))
    return found


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
