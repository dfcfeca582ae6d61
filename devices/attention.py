"""What on a tenant's home asks for a look, the most urgent first."""

from __future__ import annotations

from dataclasses import dataclass

from devices.dra.lifecycle import State
from devices.models import Claim
from tenants.models import Tenant

MOST = 6
URGENT = [State.FAILED, State.PENDING, State.HELD]


@dataclass(frozen=True, slots=True)
class Attention:
    """One line: which ask, and why it is here. Whose job it is stands behind the code."""

    claim: Claim
    yours: bool

    @property
    def state(self) -> str:
        return self.claim.state


def attention(tenant: Tenant) -> list[Attention]:
    """Failed asks first (somebody must act), then pending and held ones, oldest first."""
    claims = Claim.objects.of(tenant).filter(state__in=URGENT).order_by("since")
    rows = sorted(claims[:200], key=lambda claim: URGENT.index(State(claim.state)))
    return [Attention(claim, claim.state == State.FAILED) for claim in rows[:MOST]]
