"""Words for amounts of the ledger: `{% load ledger %}`."""

from __future__ import annotations

from decimal import Decimal

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from devices.ledger.figures import Figure, exact, in_unit, unit_of
from devices.models import LedgerLine
from portal.ui.drawings import bar
from portal.ui.words import number

register = template.Library()
NOT_KNOWN = mark_safe('<span class="faint" title="not known">?</span>')

RULES = {
    "request": "Pod request",
    "pod budget": "Pod budget",
    "runtime overhead": "running the Pod",
    "mapping": "mapping, once",
    "overhead": "overhead, per Pod",
    "allocatable": "what the node offers",
}


@register.filter
def unit(resource: str) -> str:
    """`{{ figure.resource|unit }}`: CPU, Gi, or nothing."""
    return unit_of(resource)


@register.simple_tag
def amount(nanos: int | Decimal | None, resource: str, sign: bool = False) -> SafeString:
    """`{% amount figure.left figure.resource %}`: in the resource's unit; the title is exact.

    Negative amounts are red, unknown ones a dash that says so.
    """
    if nanos is None:
        return NOT_KNOWN
    whole = int(nanos)
    text = number(in_unit(whole, resource))
    if sign and whole > 0:
        text = f"+{text}"
    shown = format_html('<span title="{}">{}</span>', exact(whole, resource), text)
    if whole < 0:
        return format_html('<strong class="st st-fail">{}</strong>', shown)
    return shown


@register.simple_tag
def left_bar(figure: Figure) -> SafeString:
    """`{% left_bar figure %}`: what is charged by stream, and what is left."""
    return bar(f"{figure.resource} by what is charged", figure.bar_total, figure.bar)


@register.filter
def rule_word(line: LedgerLine) -> str:
    """By which rule a line is charged, in words."""
    if line.rule == "overhead" and line.container:
        return f"overhead, container {line.container}"
    return RULES.get(line.rule, line.rule)
