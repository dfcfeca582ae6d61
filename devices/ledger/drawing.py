"""The ledger's drawings as inline SVG: a heat map of nodes, and what was charged over a day.

No script, no style attribute; the numbers stand in the tables beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from devices.ledger.figures import Figure, in_unit
from portal.ui.drawings import fill_of
from portal.ui.words import number

#: A map with more cells than these shows the fullest; all of them are in the table.
MOST_CELLS = 1200
_ACROSS, _CELL = 40, 18
_OPACITY = ("0.12", "0.3", "0.48", "0.66", "0.84", "1")
_LEFT, _TOP, _WIDTH, _HEIGHT = 52, 12, 1100, 168


def heat_map(title: str, cells: Sequence[Figure]) -> SafeString:
    """One cell a node, fuller ones darker; overcommitted ones red, unknown ones hatched."""
    rows = -(-len(cells) // _ACROSS)
    drawn = format_html_join(
        "",
        '<rect x="{}" y="{}" width="{}" height="{}" rx="2" {}><title>{}</title></rect>',
        (
            (
                index % _ACROSS * _CELL, index // _ACROSS * _CELL, _CELL - 3, _CELL - 3,
                _fill(cell), f"{cell.node}: {said(cell)}",
            )
            for index, cell in enumerate(cells)
        ),
    )  # fmt: skip
    return format_html(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>',
        _ACROSS * _CELL, max(rows, 1) * _CELL, title, drawn,
    )  # fmt: skip


def said(figure: Figure) -> str:
    """How full a node is, in words."""
    if figure.charged is None:
        return "not known"
    if figure.share is None:
        return "it offers none"
    return f"{round(figure.share * 100)} % charged"


def _fill(figure: Figure) -> SafeString:
    if figure.share is None:
        return fill_of("unknown") if figure.charged is None else fill_of("free")
    if figure.share > 1:
        return fill_of("conflict")
    bucket = min(int(figure.share * len(_OPACITY)), len(_OPACITY) - 1)
    return format_html('{} fill-opacity="{}"', fill_of("used"), _OPACITY[bucket])


def steps_chart(
    title: str,
    resource: str,
    first: int,
    changes: Sequence[tuple[datetime, int]],
    since: datetime,
    until: datetime,
    offered: int | None,
    mark: datetime | None = None,
) -> SafeString:
    """What was charged from one moment to another, as steps; what is offered as a dashed line, and
    an upright one at a moment.
    """
    amounts = [first, *(amount for _, amount in changes)]
    top = max([*amounts, offered or 0, 1])
    span = max((until - since).total_seconds(), 1.0)

    def x(at: datetime) -> float:
        return round(_LEFT + (_WIDTH - _LEFT) * (at - since).total_seconds() / span, 1)

    def y(amount: int) -> float:
        return round(_TOP + (_HEIGHT - _TOP) * (1 - amount / top), 1)

    points = [(x(since), y(first))]
    for at, amount in changes:
        points += [(x(at), points[-1][1]), (x(at), y(amount))]
    points.append((x(until), points[-1][1]))
    line = " ".join(f"{left},{high}" for left, high in points)
    ground = y(0)
    grid = format_html_join(
        "",
        '<line class="{}" x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<text x="{}" y="{}" text-anchor="end">{}</text>',
        (
            ("axis" if not part else "grid", _LEFT, _WIDTH, y(part), y(part), _LEFT - 8,
             y(part) + 4, number(in_unit(part, resource)))
            for part in (0, top // 2, top)
        ),
    )  # fmt: skip
    limit: str = ""
    if offered is not None:
        limit = format_html(
            '<line class="limit" x1="{}" x2="{}" y1="{}" y2="{}"/>',
            _LEFT, _WIDTH, y(offered), y(offered),
        )  # fmt: skip
    stands: str = ""
    if mark is not None and since <= mark <= until:
        stands = format_html(
            '<line class="now" x1="{}" x2="{}" y1="{}" y2="{}"/>', x(mark), x(mark), _TOP, ground
        )
    return format_html(
        '<svg class="chart chart-wide" viewBox="0 0 {} {}" role="img" aria-label="{}">{}'
        '<polygon class="area" points="{},{} {} {},{}"/><polyline class="line" points="{}"/>{}{}'
        '<text x="{}" y="{}">{}</text><text x="{}" y="{}" text-anchor="end">{}</text></svg>',
        _WIDTH, _HEIGHT + 24, title, grid, _LEFT, ground, line, _WIDTH, ground, line, limit, stands,
        _LEFT, _HEIGHT + 18, f"{since:%-d %b %H:%M}", _WIDTH, _HEIGHT + 18, f"{until:%-d %b %H:%M}",
    )  # fmt: skip
