"""Template tags about forecasts and stage times: `{% load forecasts %}`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from devices.asks.claimfacts import StageTook
from devices.asks.history import Usual
from devices.forecasts.telling import Row, job_of, next_step
from devices.forecasts.whatif import Fate, Outlook
from portal.ui import words
from portal.ui.drawings import FunnelStep

register = template.Library()

_TONES = {
    Fate.NOW: ("ok", "ok"),
    Fate.TAKEN: ("wait", "wait"),
    Fate.CLOSED: ("wait", "warn"),
    Fate.NODE: ("wait", "warn"),
    Fate.NEVER: ("fail", "fail"),
    Fate.UNKNOWN: ("none", "unknown"),
}


@register.filter
def fate_tone(found: Outlook) -> str:
    """`class="card st-{{ found|fate_tone }}"`."""
    return _TONES[found.fate][0]


@register.filter
def fate_shape(found: Outlook) -> str:
    """`{% icon found|fate_shape %}`."""
    return _TONES[found.fate][1]


@register.filter
def job(found: Outlook) -> str:
    """Whose job it is, as the page says it."""
    return job_of(found.who).value


@register.filter
def step(found: Outlook) -> str:
    """What that somebody does next, or what happens by itself."""
    return next_step(found)


@register.filter
def drawn(rows: Iterable[Row]) -> list[FunnelStep]:
    """`{% funnel told.rows|drawn %}`."""
    return [FunnelStep(row.count, row.what, row.lost, row.clause) for row in rows]


@register.filter
def usually(usual: Usual) -> str:
    """'usually 4 s, 95 of 100 within 20 s' or 'too few to say'."""
    if usual.p50 is None or usual.p95 is None:
        return "too few to say"
    middle = words.in_words(words.span(usual.p50))
    late = words.in_words(words.span(usual.p95))
    return f"usually {middle}, 95 of 100 within {late}"


@register.filter
def of_samples(usual: Usual) -> str:
    """'of 34 Pods in 30 days', or how many there were so far."""
    if usual.enough:
        return f"of {words.one_or_many(usual.samples, 'Pod')} in 30 days"
    return f"of {words.one_or_many(usual.samples, 'Pod')} so far" if usual.samples else "no Pod yet"


@register.filter
def took(stage: StageTook) -> str:
    """'1 min 4 s'; tenths where Berth timed it, else whole seconds, as the cluster's stamps are."""
    if stage.took is None:
        return ""
    if stage.observed or stage.took >= 60:
        return _said(stage.took)
    return words.in_words(words.span(stage.took)) if stage.took >= 1 else "under 1 s"


@register.simple_tag
def in_range(took: float | None, usual: Usual) -> SafeString:
    """A measure against the usual: pale to p50, track to p95, a tick for this one (red: late)."""
    if usual.p50 is None or usual.p95 is None:
        return SafeString("")
    most = max(usual.p95, took or 0.0, 0.001) * 1.12
    late = took is not None and took > usual.p95
    said = f"p50 {_said(usual.p50)}, p95 {_said(usual.p95)}"
    if took is not None:
        said = f"{_said(took)}, {said}{', later than 95 of 100' if late else ''}"
    tick = (
        format_html(
            '<line class="mark{}" x1="{}%" x2="{}%" y1="1" y2="17"/>',
            " late" if late else "",
            *(f"{100 * took / most:.4g}",) * 2,
        )
        if took is not None
        else ""
    )
    return format_html(
        '<svg class="range" role="img" aria-label="{}"><rect class="p95" y="5" height="8" rx="2" '
        'width="{}%"/><rect class="p50" y="5" height="8" rx="2" width="{}%"/>{}</svg>',
        said,
        f"{100 * usual.p95 / most:.4g}",
        f"{100 * usual.p50 / most:.4g}",
        tick,
    )


def _said(seconds: float) -> str:
    return words.in_words(words.span(seconds, exact=True))


@register.filter
def clock(moment: datetime) -> str:
    """'14:06:02', with the day where it is another one than now's would be read from a list."""
    return f"{moment:%H:%M:%S}"
