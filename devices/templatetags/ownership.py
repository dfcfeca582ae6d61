"""Words for owners of devices: `{% load ownership %}`."""

from __future__ import annotations

from django import template

from portal.ui.statuses import status_of

register = template.Library()


@register.filter
def owner_word(owner: str) -> str:
    """`{{ line.owner|owner_word }}`: nobody is somebody's answer, not a missing one."""
    return "Nobody" if owner == "none" else status_of(owner).word
