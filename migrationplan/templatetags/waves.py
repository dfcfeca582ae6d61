"""Waves as pages show them."""

from __future__ import annotations

from django import template

from migrationplan.phases import Phase

register = template.Library()


@register.filter
def as_state(phase: str) -> str:
    """`{{ wave.phase|as_state }}`: the status that a wave's phase is shown as.

    A wave that runs is under way, which is petrol; a Pod that runs is as wished, which is green.
    """
    return "wave_running" if phase == Phase.RUNNING else phase
