"""Charts over time as inline SVG: measures as lines, counts as columns; drawn on the server.

No script, no style attribute, no library. The finding stands in the title, and the numbers stand in
a table beside the chart: nothing is told by the drawing alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.ui import words

WIDTH, HEIGHT = 560, 168
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 8, 10, 22
#: Tops of an axis of seconds, each a round time.
_ROUND = (
    *(1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200),
    *(86_400, 172_800, 345_600, 604_800, 1_209_600, 2_592_000, 7_776_000),
)


@dataclass(frozen=True, slots=True)
class Sample:
    """One part of the span: p50 and p95 in seconds, None where too few say."""

    label: str
    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Column:
    """One part of the span: how many went well, and how many did not."""

    label: str
    good: int
    bad: int


def lines(title: str, samples: Sequence[Sample]) -> SafeString:
    """p95 as a grey line, p50 as the coloured one; where nobody knows, a gap, never zero."""
    highest = max((one.p95 for one in samples if one.p95 is not None), default=0.0)
    top = next((one for one in _ROUND if one >= highest), highest) or 1
    step = (WIDTH - _LEFT - _RIGHT) / max(len(samples), 1)

    def at(index: int, value: float) -> tuple[float, float]:
        high = HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / top
        return round(_LEFT + step * (index + 0.5), 1), round(high, 1)

    def drawn(name: str, values: Sequence[float | None]) -> SafeString:
        runs: list[list[tuple[float, float]]] = [[]]
        for index, value in enumerate(values):
            if value is None:
                runs.append([])
            else:
                runs[-1].append(at(index, value))
        return format_html_join(
            "",
            '<polyline class="{}" points="{}"/>{}',
            ((name, " ".join(f"{x},{y}" for x, y in run), _dot(run, name)) for run in runs if run),
        )

    ticks = (0, top / 2, top) if top > 1 else (0, top)  # the middle of a second is no whole one
    return _chart(
        title,
        [(at(0, part)[1], words.in_words(words.span(part))) for part in ticks],
        samples,
        step,
        drawn("base", [one.p95 for one in samples]) + drawn("line", [one.p50 for one in samples]),
    )


def columns(title: str, parts: Sequence[Column]) -> SafeString:
    """Counts from the ground up: what went well below, what did not above it, crossed."""
    top = _whole(max((one.good + one.bad for one in parts), default=0))
    step = (WIDTH - _LEFT - _RIGHT) / max(len(parts), 1)
    room = HEIGHT - _TOP - _BOTTOM
    rects = []
    for index, one in enumerate(parts):
        ground = float(HEIGHT - _BOTTOM)
        for amount, fill in ((one.good, 'class="p-used"'), (one.bad, 'fill="url(#pat-bad)"')):
            if amount:
                tall = room * amount / top
                ground -= tall
                left = _LEFT + step * index + step * 0.15
                rects.append(
                    (
                        mark_safe(fill),
                        round(left, 1),
                        round(ground, 1),
                        round(step * 0.7, 1),
                        round(tall, 1),
                        f"{one.label}: {one.good:,} ran, {one.bad:,} did not",
                    )
                )
    grid = [(round(HEIGHT - _BOTTOM - room * one / top, 1), words.number(one)) for one in {0, top}]
    return _chart(
        title,
        sorted(grid, reverse=True),
        parts,
        step,
        format_html_join(
            "",
            '<rect {} x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>',
            rects,
        ),
    )


def _chart(
    title: str,
    grid: Sequence[tuple[float, str]],
    parts: Sequence[Sample | Column],
    step: float,
    inside: SafeString,
) -> SafeString:
    named = sorted({0, len(parts) // 2, len(parts) - 1}) if parts else []
    anchors = ("start", "middle", "end")
    labels = [
        (round(_LEFT + step * (n + 0.5), 1), HEIGHT - 6, anchors[i], parts[n].label)
        for i, n in enumerate(named)
    ]
    return format_html(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>'
        "{}{}{}</svg>",
        WIDTH,
        HEIGHT,
        title,
        title,
        format_html_join(
            "",
            '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
            '<text x="{}" y="{}" text-anchor="end">{}</text>',
            ((_LEFT, WIDTH - _RIGHT, y, y, _LEFT - 6, y + 4, said) for y, said in grid),
        ),
        inside,
        format_html_join("", '<text x="{}" y="{}" text-anchor="{}">{}</text>', labels),
    )


def _dot(run: Sequence[tuple[float, float]], name: str) -> SafeString:
    """A lonely point would not be seen as a line."""
    if len(run) > 1:
        return SafeString("")
    ((x, y),) = run
    return format_html(
        '<circle class="{}" cx="{}" cy="{}" r="3"/>', "dot" if name == "line" else "base", x, y
    )


def _whole(highest: int) -> int:
    """The next round number at or above it: 1, 2, 5, 10, 20, …"""
    size = 1
    while True:
        for factor in (1, 2, 5):
            if factor * size >= highest:
                return factor * size
        size *= 10
