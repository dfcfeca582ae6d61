"""How long devices took and how often they came, over a span of time."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.asks.stagehistory import DAYS, By, Figure, Group, History, history_of, question_from
from devices.models import NodePool, Offer
from devices.routing.routes import Path
from devices.tenancy.spending import class_names
from devices.views.listing import Filter
from portal.errors import Invalid
from portal.ui import charts, words
from portal.ui.htmx import wants_partial
from tenants.access import platform_access, tenant_for
from tenants.models import Tenant
from tenants.policy import PlatformAct

WORDS = {By.CLASS: "Class", By.PATH: "Path", By.POOL: "Node pool", By.TENANT: "Tenant"}
SHORT = {
    Path.CLAIM: "Claim (DRA)",
    Path.PLUGIN: "Device plugin",
    Path.EXTENDED: "Extended resource by DRA",
}
ASKED = ("days", "from", "to", "by", "class", "path", "pool", "tenant")


@require_safe
@login_required
def stage_history(request: HttpRequest, slug: str) -> HttpResponse:
    """What became of the tenant's own Pods."""
    access = tenant_for(request.user, slug)
    return _page(request, {"access": access}, tenant=access.tenant.slug)


@require_safe
@login_required
def platform_stage_history(request: HttpRequest) -> HttpResponse:
    """The same of all tenants together, or of one of them."""
    platform_access(request.user).require(PlatformAct.SEE)
    return _page(request, {})


def _page(request: HttpRequest, context: dict[str, Any], *, tenant: str = "") -> HttpResponse:
    now = timezone.now()
    asked = {name: request.GET[name] for name in ASKED if request.GET.get(name)}
    wrong: dict[str, str] = {}
    try:
        question = question_from(asked, now, tenant=tenant)
    except Invalid as refused:
        wrong = dict(refused.fields)
        question = question_from({}, now, tenant=tenant)
    found = history_of(question)
    known = _names(platform=not tenant)
    exact = asked.get("from") or asked.get("to")
    context |= {
        "found": found,
        "rows": [(_named(question.by, group, known), group) for group in found.groups],
        "by_word": WORDS[question.by],
        "bys": [
            (WORDS[by], "?" + urlencode(asked | {"by": by}), by is question.by)
            for by in By
            if not (tenant and by is By.TENANT)
        ],
        "spans": [
            (_days(one), "?" + urlencode(_without(asked, "from", "to") | {"days": one}), here)
            for one in DAYS
            for here in [not exact and asked.get("days", "7") == str(one)]
        ],
        "filters": _filters(asked, known, platform=not tenant),
        "kept": [(name, value) for name, value in asked.items() if name in {"days", "by"}],
        "asked": asked,
        "wrong": wrong,
        "parts": [(one.start, one.group) for one in found.parts if one.group.pods],
        "waits": _waits(found),
        "outcomes": _outcomes(found),
        "now": now,
    }
    part = "devices/_stage_history.html" if wants_partial(request) else "devices/stage_history.html"
    return render(request, part, context, status=422 if wrong else 200)


def _classes() -> list[str]:
    """Classes that the cluster has, also those without words of Berth's."""
    return list(Offer.objects.values_list("device_class", flat=True))


def _names(*, platform: bool) -> dict[By, dict[str, str]]:
    """What each key of a group is called."""
    return {
        By.CLASS: dict.fromkeys(_classes(), "") | class_names(),
        By.PATH: {path.value: SHORT[path] for path in Path},
        By.POOL: dict(NodePool.objects.values_list("slug", "name")),
        By.TENANT: dict(Tenant.objects.values_list("slug", "name")) if platform else {},
    }


def _named(by: By, group: Group, known: dict[By, dict[str, str]]) -> str:
    if by is By.POOL and not group.key:
        return "In no node pool"
    return known[by].get(group.key) or group.key


def _filters(
    asked: dict[str, str], known: dict[By, dict[str, str]], *, platform: bool
) -> list[Filter]:
    questions = [("class", By.CLASS, "Any class"), ("path", By.PATH, "Any path")]
    questions.append(("pool", By.POOL, "Any node pool"))
    if platform:
        questions.append(("tenant", By.TENANT, "Any tenant"))
    filters = []
    for name, by, anything in questions:
        value = asked.get(name, "")
        options = sorted(((key, word or key) for key, word in known[by].items()), key=_second)
        if value and value not in known[by]:
            options.append((value, value))
        filters.append(Filter(name, WORDS[by], anything, options, value))
    return filters


def _second(option: tuple[str, str]) -> str:
    return option[1]


def _waits(found: History) -> Any:
    """The wait over time, titled by what it was altogether; None where there is nothing to draw."""
    figure = found.whole.figures["wait"]
    said = (
        f"Half waited at most {_seconds(figure.p50)}, 95 of 100 at most {_seconds(figure.p95)}"
        if figure.p50 is not None and figure.p95 is not None
        else f"{words.one_or_many(figure.samples, 'wait')}: too few to say how long it usually is"
    )
    samples = []
    for part in found.parts:
        one = part.group.figures.get("wait", Figure())
        samples.append(charts.Sample(_label(found, part.start), one.p50, one.p95))
    return charts.lines(said, samples) if any(one.p95 is not None for one in samples) else None


def _outcomes(found: History) -> Any:
    whole = found.whole
    said = (
        f"{words.number(whole.ran)} of {words.number(whole.ran + whole.never_ran)} came to run"
        if whole.percent is not None
        else "Nothing is over yet"
    )
    return charts.columns(
        said,
        [
            charts.Column(_label(found, part.start), part.group.ran, part.group.never_ran)
            for part in found.parts
        ],
    )


def _label(found: History, start: Any) -> str:
    length = found.question.until - found.question.since
    return f"{start:%H:%M}" if length.total_seconds() <= 2 * 86_400 else f"{start:%-d %b}"


def _seconds(value: float) -> str:
    return words.in_words(words.span(value, exact=True))


def _days(number: int) -> str:
    return "1 day" if number == 1 else f"{number} days"


def _without(asked: dict[str, str], *names: str) -> dict[str, Any]:
    return {name: value for name, value in asked.items() if name not in names}
