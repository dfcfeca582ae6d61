"""The page "did it pay?" of a node pool."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.asks.training import UsefulTime
from devices.forecasts.warm import warm
from devices.models import NodePool
from migrationplan.payoff import ENOUGH, Aspect, Comparison, Finding, Path, Side, Similar
from migrationplan.payoff import Row as Compared
from migrationplan.payoffs import DAYS, payoff_of
from tenants.access import platform_access

ASPECTS = {
    Aspect.ALLOCATION: ("Got devices in time", "within 10 minutes of being created"),
    Aspect.WAIT: ("Wait for devices, p95", "created to devices given"),
    Aspect.READY: ("Created to Ready, p95", "the whole way"),
    Aspect.RETRIES: ("Prepared more than once", "a preparation failed and was tried again"),
}
PATHS = {
    Path.PLUGIN: "Device plugin",
    Path.CLAIM: "Claim (DRA)",
    Path.EXTENDED: "By name, on DRA",
}
FINDINGS = {
    Finding.BETTER: ("pass", "Better"),
    Finding.WORSE: ("fail", "Worse"),
    Finding.ALIKE: ("none", "No difference seen"),
    Finding.NOT_COMPARABLE: ("unknown", "Not comparable"),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One side in words: the figure, its range, and of how many samples."""

    figure: str
    between: str
    samples: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """One path against the plugin, in words."""

    path: str
    state: str
    word: str
    why: str


@dataclass(frozen=True, slots=True)
class Line:
    """One aspect on every path."""

    title: str
    words: str
    cells: list[Cell | None]
    verdicts: list[Verdict]


@require_safe
@login_required
def node_pool_payoff(request: HttpRequest, slug: str) -> HttpResponse:
    """The same work on both paths of one pool, side by side."""
    platform_access(request.user)
    pool = get_object_or_404(NodePool, slug=slug)
    asked = request.GET.get("days", "")
    days = int(asked) if asked in {str(one) for one in DAYS} else DAYS[1]
    now, seen = timezone.now(), warm()
    found = payoff_of(pool, seen, days, now)
    context = {
        "pool": pool,
        "found": found,
        "verdict": verdict(found.similar),
        "groups": [
            (one, _size(one), [_line(row, one) for row in one.rows]) for one in found.similar
        ],
        "paths": PATHS,
        "useful": [(_path(one.path), one, _percent(one)) for one in found.useful],
        "spans": [(one, one == days) for one in DAYS],
        "days": days,
        "enough": ENOUGH,
        "as_of": seen.as_of if seen else None,
        "now": now,
    }
    return render(request, "migrationplan/payoff.html", context)


def verdict(similar: tuple[Similar, ...]) -> tuple[str, str]:
    """The sentence that stands first: what can be said of the work that is most frequent."""
    every = [one for work in similar for row in work.rows for one in row.against.values()]
    found = [one.finding for one in every if one.finding is not Finding.NOT_COMPARABLE]
    worse, better = found.count(Finding.WORSE), found.count(Finding.BETTER)
    if not found:
        return "unknown", "Nothing can be compared yet."
    of = f"of {len(found)} figures that compare"
    if worse:
        and_better = f"better in {better}" if better else "better in none"
        return "look", f"DRA is worse in {worse} {of}, and {and_better}."
    if better:
        return "pass", f"DRA is better in {better} {of}, and worse in none."
    return "none", "No difference is seen between the two paths."


def _size(one: Similar) -> str:
    return "1 device" if one.devices == 1 else f"{one.devices} devices"


def _line(row: Compared, work: Similar) -> Line:
    title, words = ASPECTS[row.aspect]
    cells = [_cell(row.aspect, row.sides.get(path)) for path in PATHS]
    verdicts = [_verdict(path, row.against[path]) for path in PATHS if path in row.against]
    return Line(title, words, cells, verdicts)


def _cell(aspect: Aspect, side: Side | None) -> Cell | None:
    if side is None or not side.samples:
        return None
    if side.bad is not None and side.bad_range is not None:
        low, high = side.bad_range
        part = side.bad / side.samples
        if aspect is Aspect.ALLOCATION:  # told as success
            part, low, high = 1 - part, 1 - high, 1 - low
        return Cell(f"{100 * part:.1f} %", f"{100 * low:.1f} to {100 * high:.1f} %", side.samples)
    bounds = side.p95_range
    low_text = f"{bounds.low:.3g}" if bounds and bounds.low is not None else "?"
    high_text = f"{bounds.high:.3g} s" if bounds and bounds.high is not None else "?"
    return Cell(
        f"{side.p95:.3g} s", f"{low_text} to {high_text}, p50 {side.p50:.3g} s", side.samples
    )


def _verdict(path: Path, one: Comparison) -> Verdict:
    state, word = FINDINGS[one.finding]
    if one.apart is None or one.low is None or one.high is None:
        return Verdict(PATHS[path], state, word, one.why)
    said = f"{100 * one.apart:+.1f} of 100 ({100 * one.low:+.1f} to {100 * one.high:+.1f})"
    return Verdict(PATHS[path], state, word, said)


def _path(name: str) -> str:
    return PATHS[Path(name)] if name in {path.value for path in Path} else name


def _percent(one: UsefulTime) -> float | None:
    """Useful out of what is known; None where nothing is."""
    return None if one.sums.share is None else round(100 * one.sums.share, 1)
