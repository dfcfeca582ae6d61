"""The parts as template tags: each renders one part; numbers and words come from the view.

Built into every template (settings), so no page loads them. What a part looks like is decided in
`static/berth.css`, what a state is called in `portal/ui/statuses.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import template
from django.template import Context
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from portal.ui import drawings, icons, words
from portal.ui.statuses import Status, shapes, status_of

register = template.Library()

_USED = "berth.icons"


def _used(context: Context) -> set[str]:
    """The icons drawn so far on this page."""
    # The lowest dict of the render context is one per rendered page, shared by all its includes.
    page: dict[str, Any] = context.render_context.dicts[0]  # type: ignore[assignment]
    used: set[str] = page.setdefault(_USED, set())
    return used


def _draw(context: Context, name: str) -> SafeString:
    _used(context).add(name)
    return icons.draw(name)


def now_of(context: Context) -> datetime:
    """The view's own moment where it gave one, so that a page agrees with itself."""
    return context.get("now") or timezone.now()


@register.simple_tag(takes_context=True)
def icon(context: Context, name: str) -> SafeString:
    """`{% icon "plus" %}`: decoration before a word."""
    return _draw(context, name)


@register.simple_tag(takes_context=True)
def fetched_icons(context: Context, *names: str) -> str:
    """`{% fetched_icons "home" "key" %}`: defines icons for what a fragment brings later."""
    _used(context).update(names)
    return ""


@register.simple_tag(takes_context=True)
def icon_defs(context: Context) -> SafeString:
    """The last thing in the body: defines the icons that the page used, and the patterns."""
    return format_html(
        '<svg class="defs" aria-hidden="true" focusable="false">{}<defs>{}</defs></svg>',
        icons.definitions(_used(context) | icons.ALWAYS | shapes()),
        drawings.PATTERNS,
    )


@register.filter
def device_icon(name: object) -> str:
    """`{% icon offer.name|device_icon %}`: the icon for a device of that class or driver."""
    return icons.kind_of_device(str(name))


@register.filter
def blind(cluster: Any) -> bool:
    """`{% if cluster|blind %}`: old figures would mislead now, so they are hatched."""
    return getattr(cluster, "state", "") in {"stale", "unreachable"}


@register.filter
def known_icon(name: str) -> str:
    """`{% icon template.icon|known_icon %}`: an icon that an admin chose, or the plain device."""
    return name if name in icons.symbols() else "device"


@register.filter
def tone(state: str) -> str:
    """`class="card st-{{ claim.state|tone }}"`: the colour that a state lends to a block."""
    return status_of(state).tone


@register.filter
def shape(state: str) -> str:
    """`{% icon claim.state|shape %}`: the state's icon without its word."""
    return status_of(state).icon


@register.simple_tag(takes_context=True)
def status(context: Context, state: str, word: str = "") -> SafeString:
    """`{% status "in_use" %}`: shape and word in a row; `word` replaces the usual one."""
    return _status(context, status_of(state), word, "st")


@register.filter
def state_word(state: str) -> str:
    """`{{ state|state_word }}`: a state's word alone, for options and sentences."""
    return status_of(state).word


@register.simple_tag(takes_context=True)
def pill(context: Context, state: str, word: str = "", explain: str = "") -> SafeString:
    """`{% pill claim.state explain="state-tip" %}`: tinted, once, beside the title.

    With `explain`, an id of its own, the pill opens a tip that says what enters and ends the state.
    """
    found = status_of(state)
    if not explain or not found.enters:
        return _status(context, found, word, "st pill")
    return format_html(
        '<button class="st pill st-{}" type="button" popovertarget="{}">{}{}'
        '<span class="sr">: what this means</span></button>'
        '<div class="tip" id="{}" popover><b>{}</b><p>{}</p>{}</div>',
        found.tone,
        explain,
        _draw(context, found.icon),
        word or found.word,
        explain,
        found.word,
        format_html("Enters: {}", found.enters),
        format_html("<p>Ends: {}</p>", found.ends) if found.ends else "",
    )


def _status(context: Context, found: Status, word: str, classes: str) -> SafeString:
    return format_html(
        '<span class="{} st-{}">{}{}</span>',
        classes,
        found.tone,
        _draw(context, found.icon),
        word or found.word,
    )


@register.simple_tag(takes_context=True)
def age(
    context: Context,
    when: datetime | timedelta | None,
    window: int | float | timedelta = 60,
    before: str = "",
    after: str = "",
    lost: bool = False,
) -> SafeString:
    """`{% age offer.as_of window=45 %}`: how old a figure is; an amber diamond beyond the window.

    `when` is the moment of the figure or its age; None says that there was no news yet. `lost` says
    that the source is gone. The script of the page lets the stamp grow older.
    """
    now = now_of(context)
    if when is None:
        return format_html('<span class="age age-none">{}</span>', "no news yet")
    seconds = window.total_seconds() if isinstance(window, timedelta) else window
    moment = now - when if isinstance(when, timedelta) else when
    old = (now - moment).total_seconds() > seconds
    return format_html(
        '<time class="age{}" datetime="{}" data-window="{}"{}{}>{}</time>',
        " age-lost" if lost else " age-old" if old else "",
        moment.isoformat(timespec="seconds"),
        f"{seconds:g}",
        format_html(' data-before="{}"', before) if before else "",
        format_html(' data-after="{}"', after) if after else "",
        " ".join(part for part in (before, words.since(moment, now), after) if part),
    )


@register.simple_tag(takes_context=True)
def age_of(context: Context, cluster: Any, before: str = "", after: str = "") -> SafeString:
    """`{% age_of cluster %}`: the age of what the mirror shows; lost where the cluster is away."""
    lost = getattr(cluster, "state", "") == "unreachable"
    when = getattr(cluster, "as_of", None)
    return age(context, when, getattr(cluster, "window", 60), before, after, lost)


@register.simple_tag
def code(value: str) -> SafeString:
    """A stable code, the same in the API, the alert and the page; nothing where there is none."""
    return format_html('<code class="code">{}</code>', value) if value else SafeString("")


@register.simple_tag
def quantity(value: int | float | Decimal | None, unit: str = "", old: bool = False) -> SafeString:
    """`{% quantity 79.6 "Gi" %}`: a number with its unit in a lighter tone; None is hatched.

    So is what is `old`, with its last figure in the title: it would mislead as a number.
    """
    if value is None:
        return _unknown()
    if old:
        return _unknown(f"not known now; {words.number(value)} when last seen")
    return _with_units([(words.number(value), unit)])


@register.simple_tag
def duration(length: timedelta | float | None, exact: bool = False) -> SafeString:
    """`{% duration stage.took exact=True %}`: 3 min 12 s; None is hatched."""
    return _unknown() if length is None else _with_units(words.span(length, exact=exact))


@register.simple_tag(takes_context=True)
def since(context: Context, then: datetime | None, exact: bool = False) -> SafeString:
    """`{% since claim.since %}`: how long something has lasted; the page's script lets it grow.

    An `exact` length is one that is over, so it stays as it is.
    """
    now = now_of(context)
    if then is None or exact:
        return duration(None if then is None else now - then, exact)
    return format_html(
        '<time class="grows nowrap" datetime="{}">{}</time>',
        then.isoformat(timespec="seconds"),
        _parts(words.span(now - then)),
    )


def _with_units(parts: Sequence[words.Part]) -> SafeString:
    return format_html('<span class="nowrap">{}</span>', _parts(parts))


def _parts(parts: Sequence[words.Part]) -> SafeString:
    return format_html_join(
        " ",
        "{}{}",
        (
            (value, format_html('&nbsp;<span class="unit">{}</span>', unit) if unit else "")
            for value, unit in parts
        ),
    )


@register.simple_tag
def none_kept(why: str) -> SafeString:
    """`{% none_kept "a plugin does not say" %}`: a dash where there is no such figure at all."""
    return format_html(
        '<span class="faint" title="{}" aria-hidden="true">–</span><span class="sr">{}</span>',
        why,
        why,
    )


def _unknown(why: str = "not known") -> SafeString:
    return format_html('<span class="unk" title="{}">?</span>', why)


@register.filter
def num(value: int | float | Decimal | None) -> str:
    """1024 → '1,024'; None → '?'."""
    return words.number(value)


@register.filter
def many(value: int | None, noun: str) -> str:
    """`{{ claim.count|many:"device" }}`: '2 devices'; 'class,classes' for odd plurals."""
    one, _, others = noun.partition(",")
    return words.one_or_many(value, one, others)


@register.simple_tag
def name(value: str, longest: int = 36) -> SafeString:
    """A name that Kubernetes knows: mono; a long one keeps its head and its end on one line."""
    if len(value) <= longest:
        return format_html('<span class="name">{}</span>', value)
    head, tail = words.halves(value)
    return format_html(
        '<span class="mid" title="{}"><span>{}</span><span>{}</span></span>', value, head, tail
    )


@register.simple_tag
def bar(label: str, total: int | None, size: str = "", **parts: int | None) -> SafeString:
    """`{% bar offer.name offer.total idle=offer.free allocated=offer.allocated %}`."""
    return drawings.bar(label, total, parts, size)


@register.simple_tag
def parts_said(**parts: int | None) -> str:
    """`{% parts_said idle=2 allocated=14 %}`: the parts in words; what is not known says '?'."""
    return drawings.parts_in_words(parts)


@register.simple_tag
def strip(
    title: str, total: int | None, free: int | None = None, **parts: int | None
) -> SafeString:
    """`{% strip limit.words limit.total used=limit.used held=limit.held %}`: a bar with its words.

    The head says what is left, the foot says every part. `free` defaults to what no part claims.
    """
    taken = sum(amount or 0 for amount in parts.values())
    unknown = total is None or None in parts.values()
    left = free if free is not None else None if unknown else (total or 0) - taken
    drawn = dict(parts) if left is None else parts | {"free": max(left, 0)}
    return format_html(
        '<div class="strip"><div class="strip-head"><span class="title">{}</span>'
        '<span class="nowrap"><b>{}</b> <span class="unit">free of {}</span></span></div>'
        '{}<div class="strip-foot"><span>{}</span></div></div>',
        title,
        words.number(left),
        words.number(total),
        drawings.bar(title, total, drawn),
        "nothing used" if not taken and not unknown else drawings.parts_in_words(parts),
    )


@register.simple_tag
def legend(*kinds: str, **said: str) -> SafeString:
    """`{% legend "idle" "allocated" loan="on loan" %}`: pattern and word."""
    entries = [(kind, kind) for kind in kinds] + list(said.items())
    return format_html(
        '<div class="legend">{}</div>',
        format_html_join(
            "",
            '<span><svg class="key" aria-hidden="true"><rect width="100%" height="100%" {}/></svg>'
            "{}</span>",
            ((drawings.fill_of(kind), word) for kind, word in entries),
        ),
    )


@register.simple_tag
def berths(label: str, cells: Iterable[Any]) -> SafeString:
    """`{% berths "3 allocated, 1 idle" node.cells %}`: one cell per device, moored to its node.

    A cell is a kind ("allocated") or anything with `kind` and `name`.
    """
    return drawings.berths(
        label,
        [
            drawings.Cell(cell) if isinstance(cell, str) else drawings.Cell(cell.kind, cell.name)
            for cell in cells
        ],
    )


@register.simple_tag
def funnel(steps: Iterable[drawings.FunnelStep], slim: bool = False) -> SafeString:
    """How many devices are left after each clause, and which clause lost the others."""
    return drawings.funnel(steps, slim)


@register.simple_tag
def lit(text: str, *lights: str) -> SafeString:
    """A snippet: comments dimmed, the lines that hold one of `lights` lit."""
    return drawings.text_with_lights(text, lights)


@register.simple_tag(takes_context=True)
def nav_link(
    context: Context, view: str, drawn: str, word: str, *args: str, also: str = "", waiting: int = 0
) -> SafeString:
    """`{% nav_link 'claims' 'claim' 'Claims' slug also='claim' %}`: a side link that knows itself.

    `also` names views below that one: their pages keep the link lit. `waiting` is how many things
    there wait for this person.
    """
    request = context.get("request")
    here = getattr(getattr(request, "resolver_match", None), "view_name", "")
    current = "page" if here == view else "true" if here and here in also.split() else ""
    return format_html(
        '<a href="{}"{}>{}<span>{}</span>{}</a>',
        reverse(view, args=args),
        format_html(' aria-current="{}"', current) if current else "",
        _draw(context, drawn),
        word,
        format_html('<span class="count count-hot">{}</span>', waiting) if waiting else "",
    )


@register.filter
def browser(user_agent: str) -> str:
    """`{{ session.user_agent|browser }}`: 'Firefox on Linux'."""
    return words.browser(str(user_agent))


@register.filter
def initials(username: str) -> str:
    """'r.avocet' → 'RA', 'hana' → 'HA'."""
    pieces = [piece for piece in re.split(r"[^0-9A-Za-z]+", str(username)) if piece]
    letters = "".join(piece[0] for piece in pieces[:2]) if len(pieces) > 1 else str(username)[:2]
    return letters.upper()
