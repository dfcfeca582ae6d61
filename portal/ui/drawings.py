"""Bars, berths and funnels as inline SVG: drawn on the server, coloured by CSS classes.

No style attribute, no script, no library (strict content security policy). Widths are in per cent,
so a drawing fits any column; the numbers stand beside it and in its label, never only in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.utils.html import conditional_escape, format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.ui.words import number

#: Kind of part → how it is filled. Each differs by pattern as well as by colour.
FILLS: dict[str, str] = {
    "used": 'class="p-used"',
    "allocated": 'class="p-used"',
    "dra": 'class="p-dra"',
    "mapping": 'class="p-used"',
    "shared": 'class="p-soft"',
    "loan": 'fill="url(#pat-loan)"',
    "held": 'fill="url(#pat-held)"',
    "free": 'class="p-free"',
    "idle": 'class="p-idle"',
    "fragmented": 'fill="url(#pat-frag)"',
    "unavailable": 'fill="url(#pat-bad)"',
    "unknown": 'fill="url(#pat-hatch)"',
    "plugin": 'class="p-plugin"',
    "conflict": 'class="p-bad"',
    "overhead": 'class="p-soft"',
    "requests": 'class="p-none"',
}

#: The patterns, to stand once per page.
PATTERNS = mark_safe(
    '<pattern id="pat-hatch" width="6" height="6" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect class="hatch-ground" width="6" height="6"/>'
    '<line class="hatch-line" x1="3" x2="3" y2="6"/></pattern>'
    '<pattern id="pat-held" width="5" height="5" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect class="held-ground" width="5" height="5"/>'
    '<line class="held-line" x1="2.5" x2="2.5" y2="5"/></pattern>'
    '<pattern id="pat-bad" width="5" height="5" patternUnits="userSpaceOnUse"'
    ' patternTransform="rotate(45)"><rect class="bad-ground" width="5" height="5"/>'
    '<path class="bad-line" d="M0 2.5h5M2.5 0v5"/></pattern>'
    '<pattern id="pat-frag" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<rect class="frag-ground" width="5" height="5"/>'
    '<circle class="frag-dot" cx="2.5" cy="2.5" r="1.3"/></pattern>'
    '<pattern id="pat-loan" width="5" height="5" patternUnits="userSpaceOnUse">'
    '<rect class="loan-ground" width="5" height="5"/>'
    '<line class="loan-line" x1="2.5" x2="2.5" y2="5"/></pattern>'
)


def fill_of(kind: str) -> SafeString:
    """The attribute that fills a part of that kind; KeyError for a kind that has no look."""
    return mark_safe(FILLS[kind])


def parts_in_words(parts: Mapping[str, int | None]) -> str:
    """'2 idle, 14 allocated'; parts of nothing are left out, unknown ones say '?'.

    Where a part called unknown counts what nobody knows, the others need not say so again.
    """
    counted = bool(parts.get("unknown"))
    said = [
        f"{number(amount)} {kind}"
        for kind, amount in parts.items()
        if amount or (amount is None and not counted)
    ]
    return ", ".join(said) or "nothing"


def bar(
    label: str, total: int | None, parts: Mapping[str, int | None], size: str = ""
) -> SafeString:
    """A bar of `total`, cut into parts in the given order; what no part claims is hatched unknown.

    A total of None draws the whole bar hatched; parts over the total make the bar that much longer
    and are drawn in proportion, so nothing is clamped away.
    """
    known = {kind: amount for kind, amount in parts.items() if amount and amount > 0}
    whole = max(total or 0, sum(known.values()))
    missing = whole - sum(known.values())
    if total is None:
        known, whole, missing = {}, 1, 1
    drawn = dict(known)
    if missing:
        drawn["unknown"] = drawn.get("unknown", 0) + missing
    rects, at = [], 0.0
    for kind, amount in drawn.items():
        width = 100 * amount / whole
        rects.append((f"{at:.4g}%", f"{width:.4g}%", fill_of(kind)))
        at += width
    said = parts_in_words(parts) if total is not None else "not known"
    return format_html(
        '<svg class="bar{}" role="img" aria-label="{}: {} of {}">{}</svg>',
        f" bar-{size}" if size else "",
        label,
        said,
        number(total),
        format_html_join("", '<rect x="{}" width="{}" height="100%" {}/>', rects),
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """One device, or one place at it, moored to its node."""

    kind: str
    name: str = ""


def berths(label: str, cells: Sequence[Cell], cell_width: int = 34) -> SafeString:
    """A row of cells over a quay; kinds as in `FILLS`. The label says what the cells add up to."""
    pitch = cell_width + 4
    width = pitch * len(cells) + 2
    slots = [
        (
            fill_of(cell.kind)
            if "class=" not in FILLS[cell.kind]
            else mark_safe(FILLS[cell.kind].replace('class="', 'class="slot ')),
            2 + pitch * index,
            cell_width,
            format_html("<title>{}</title>", cell.name) if cell.name else "",
        )
        for index, cell in enumerate(cells)
    ]
    return format_html(
        '<svg class="berths" viewBox="0 0 {} 20" width="{}" height="20" role="img" aria-label="{}">'
        '<line class="quay" x1="0" y1="18" x2="{}" y2="18"/>{}</svg>',
        width,
        width,
        label,
        width - 2,
        format_html_join(
            "", '<rect {} x="{}" y="1" width="{}" height="14" rx="2.5">{}</rect>', slots
        ),
    )


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """What is left after a step, what it is, and what the next step lost by which clause."""

    count: int
    what: str
    lost: str = ""
    clause: str = ""


def funnel(steps: Iterable[FunnelStep], slim: bool = False) -> SafeString:
    """Bar widths are true to the counts; each step names what was lost and by which clause."""
    rows = list(steps)
    top = max((step.count for step in rows), default=0) or 1
    items = []
    for index, step in enumerate(rows):
        here = max(100 * step.count / top, 1.2)
        following = rows[index + 1] if index + 1 < len(rows) else None
        below = max(100 * following.count / top, 1.2) if following else here
        fall = (
            format_html(
                '<polygon class="fall" points="0,22 {},22 {},66 0,66"/>',
                f"{here:.4g}",
                f"{below:.4g}",
            )
            if following
            else ""
        )
        lost = following and step.count - following.count
        items.append(
            (
                66 if following else 22,
                fall,
                "step" if step.count else "empty-step",
                f"{here:.4g}",
                "" if step.count else " zero",
                number(step.count),
                step.what,
                format_html("<b>−{}</b> ", number(lost)) if lost else "",
                step.lost,
                format_html(' <span class="mono">{}</span>', step.clause) if step.clause else "",
            )
        )
    return format_html(
        '<ol class="funnel{}">{}</ol>',
        " funnel-slim" if slim else "",
        format_html_join(
            "",
            '<li><svg viewBox="0 0 100 {}" preserveAspectRatio="none" aria-hidden="true">{}'
            '<rect class="{}" width="{}" height="22" rx="0.6"/></svg><span class="n{}">{}</span>'
            '<div><p class="what">{}</p><p class="why">{}{}{}</p></div></li>',
            items,
        ),
    )


def text_with_lights(text: str, lights: Iterable[str] = ()) -> SafeString:
    """A snippet to paste: comments dimmed, lines that hold one of `lights` lit; all escaped."""
    wanted = [light for light in lights if light]
    lines = []
    for line in text.rstrip("\n").split("\n"):
        escaped = conditional_escape(line)
        if line.lstrip().startswith("#"):
            lines.append(format_html('<span class="c">{}</span>', line))
        elif any(light in line for light in wanted):
            lines.append(format_html('<span class="h">{}</span>', line))
        else:
            lines.append(escaped)
    return mark_safe("\n".join(lines))
