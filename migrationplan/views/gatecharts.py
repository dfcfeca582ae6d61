"""Both sides of a reading as small inline SVG: times as the share that was done by then, shares as
bars with the range that so few samples allow. Coloured by CSS classes, no script, no library.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from migrationplan.gates import Samples
from migrationplan.intervals import percentile, share

WIDTH, HEIGHT = 180, 44
#: Points of a line of shares: each says which part of the samples was done by then.
POINTS = 24


def times(title: str, samples: Samples, limit: float | None) -> SafeString:
    """How many of each side were done after so many seconds; dashes where slow begins."""
    sides = [[one.value for one in side] for side in (samples.others, samples.moved)]
    most = max((max(values) for values in sides if values), default=0.0)
    top = max(most, limit or 0.0) * 1.05 or 1.0

    def at(seconds: float) -> float:
        return round(WIDTH * seconds / top, 1)

    lines = format_html_join(
        "",
        '<polyline class="{}" points="{}"/>',
        (
            (name, _steps(values, top))
            for name, values in zip(("base", "line"), sides, strict=True)
            if values
        ),
    )
    mark = (
        format_html('<line class="limit" x1="{}" x2="{}" y1="0" y2="{}"/>', x, x, HEIGHT)
        if limit is not None and (x := at(limit)) is not None
        else SafeString("")
    )
    return _svg(title, lines + mark)


def shares(title: str, moved: tuple[int, int], others: tuple[int, int]) -> SafeString:
    """A bar for each side, and a thin line from the least to the most that it may truly be."""
    rows = []
    ranges = [share(bad, of) if of else (0.0, 0.0) for bad, of in (moved, others)]
    top = max(0.2, *(high for _, high in ranges)) * 1.05
    for number, ((bad, of), (low, high)) in enumerate(zip((moved, others), ranges, strict=True)):
        if of:
            rows.append(
                (
                    "p-used" if number == 0 else "p-none",
                    6 + 20 * number,
                    round(WIDTH * bad / of / top, 1),
                    round(WIDTH * low / top, 1),
                    round(WIDTH * high / top, 1),
                    12 + 20 * number,
                    12 + 20 * number,
                )
            )
    bars = format_html_join(
        "",
        '<rect class="{}" x="0" y="{}" width="{}" height="12"/>'
        '<line class="now" x1="{}" x2="{}" y1="{}" y2="{}"/>',
        rows,
    )
    return _svg(title, bars)


def _steps(values: Sequence[float], top: float) -> str:
    """From nothing at 0 seconds to all of them at the last one."""
    room = HEIGHT - 4
    points = [(0.0, float(HEIGHT - 2))]
    for number in range(POINTS + 1):
        part = number / POINTS
        points.append((WIDTH * percentile(values, part) / top, HEIGHT - 2 - room * part))
    points.append((float(WIDTH), 2.0))
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _svg(title: str, inside: SafeString) -> SafeString:
    return format_html(
        '<svg class="chart spark" viewBox="0 0 {} {}" role="img" aria-label="{}">'
        '<line class="axis" x1="0" x2="{}" y1="{}" y2="{}"/>{}</svg>',
        WIDTH,
        HEIGHT,
        title,
        WIDTH,
        HEIGHT - 1,
        HEIGHT - 1,
        inside,
    )
