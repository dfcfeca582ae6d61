"""Links to what a code means, and its text as HTML: `{% load runbooks %}`."""

from __future__ import annotations

import re

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from devices.runbooks import address_of

register = template.Library()

_CODE = re.compile(r"`([^`]+)`|\b([A-Z]{3,}(?:_[A-Z0-9]+)+)\b")


@register.simple_tag
def runbook(code: str) -> SafeString:
    """`{% runbook claim.code %}`: a link to what to do about it; nothing where no page tells."""
    address = address_of(code) if code else ""
    if not address:
        return SafeString("")
    return format_html(
        '<a class="nowrap" href="{}">What to do<span class="sr"> about {}</span></a>', address, code
    )


@register.filter
def told(text: str) -> SafeString:
    """A runbook's text: `names` in mono, other codes as links; all else is escaped."""
    parts, at = [], 0
    for found in _CODE.finditer(text):
        parts.append(format_html("{}", text[at : found.start()]))
        name = found[1] or found[2]
        address = "" if found[1] else address_of(name)
        parts.append(
            format_html('<a href="{}">{}</a>', address, name)
            if address
            else format_html('<span class="name">{}</span>', name)
        )
        at = found.end()
    parts.append(format_html("{}", text[at:]))
    return mark_safe("".join(parts))
