"""What keeps an ask back before it is sent: a freeze, devices that nobody can be sure of, its place
in line, a namespace that is gone.

Held is safe waiting: nothing is in the cluster yet, and the ask goes on by itself.
"""

from __future__ import annotations

from datetime import datetime

from devices.asks.line import CLOSING, FROZEN, Hold, earlier, ground, sentence
from devices.cluster.gateway import Gateway
from devices.models import Claim
from devices.tenancy.places import place_ready

__all__ = ["CLOSING", "FROZEN", "Hold", "hold", "sentence"]


def hold(claim: Claim, *, gateway: Gateway, now: datetime) -> Hold | None:
    """What keeps this ask back now; None where it may be sent."""
    here = ground(now)
    if kept := here.hold(claim):
        return kept
    if first := earlier(claim, here):
        what = "The freeze" if first.code == FROZEN else "What held it"
        return Hold(first.code, f"{what} is over; {first.name}, asked for before, goes first.")
    trouble = place_ready(claim.namespace, gateway=gateway, now=now)
    return Hold(trouble.code, trouble.why) if trouble else None
