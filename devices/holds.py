"""What keeps an ask back before it is sent: a freeze, its place in line, a namespace that is gone.

Held is safe waiting: nothing is in the cluster yet, and the ask goes on by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from devices import tenancy
from devices.cluster.gateway import Gateway
from devices.dra.lifecycle import State
from devices.models import Claim, Freeze

FROZEN: Final = "FROZEN"
#: Asks looked at for one's place in line; who is further back waits for those anyway.
LINE = 500


@dataclass(frozen=True, slots=True)
class Hold:
    """Why an ask waits: a stable code and a sentence that says who, until when, and what next."""

    code: str
    why: str


def hold(claim: Claim, *, gateway: Gateway, now: datetime) -> Hold | None:
    """What keeps this ask back now; None where it may be sent."""
    classes = classes_of(claim)
    freeze = Freeze.objects.standing(now).touching(claim.tenant.slug, classes).first()
    if freeze is not None:
        return Hold(FROZEN, sentence(freeze))
    if earlier := _earlier(claim, now):
        return Hold(FROZEN, f"The freeze is over; {earlier.name}, asked for before, goes first.")
    trouble = tenancy.place_ready(claim.namespace, gateway=gateway, now=now)
    return Hold(trouble.code, trouble.why) if trouble else None


def sentence(freeze: Freeze) -> str:
    """Who froze what, until when, and what that means for a request."""
    until = f"until {freeze.until:%d %b %H:%M} UTC" if freeze.until else "until it is lifted"
    return (
        f"{freeze.words.capitalize()} is frozen {until}: {freeze.reason}. "
        "It is sent by itself then, in the order of asking."
    )


def classes_of(claim: Claim) -> set[str]:
    """Device classes that an ask's requests name."""
    return {str(device["device_class"]) for device in claim.devices}


def _earlier(claim: Claim, now: datetime) -> Claim | None:
    """An ask for one of the same classes that waits for the same reason, from before, and no longer
    has to: it goes first, whichever turn comes first.
    """
    wanted = classes_of(claim)
    line = Claim.objects.filter(
        state=State.HELD, code=FROZEN, released_at=None, pk__lt=claim.pk
    ).select_related("tenant")
    if not line.exists():
        return None
    freezes = list(Freeze.objects.standing(now))
    for other in line.order_by("pk")[:LINE]:
        classes = classes_of(other)
        if classes & wanted and not any(_touches(freeze, other, classes) for freeze in freezes):
            return other
    return None


def _touches(freeze: Freeze, claim: Claim, classes: set[str]) -> bool:
    match freeze.scope:
        case Freeze.Scope.ALL:
            return True
        case Freeze.Scope.TENANT:
            return freeze.target == claim.tenant.slug
    return freeze.target in classes
