"""What on a tenant's home asks for a look, the most urgent first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from devices.asks.claimlist import URGENT, needs_attention
from devices.dra.lifecycle import State
from devices.models import Claim
from tenants.models import Tenant

MOST = 6


@dataclass(frozen=True, slots=True)
class Attention:
    """One line: which ask, and why it is here. Whose job it is stands behind the code."""

    claim: Claim
    ends: bool
    """It is here because its time is nearly over, not because of its state."""

    @property
    def state(self) -> str:
        return "ends soon" if self.ends else self.claim.state


def attention(tenant: Tenant, now: datetime) -> list[Attention]:
    """Failed asks first (somebody must act), then pending and held ones, oldest first; then those
    that end soon, the soonest first.
    """
    claims = Claim.objects.of(tenant).filter(needs_attention(now)).order_by("since")
    stuck = list(claims.filter(state__in=URGENT)[:200])
    stuck.sort(key=lambda claim: URGENT.index(State(claim.state)))
    ending = claims.exclude(state__in=URGENT).order_by("expires_at")[:MOST]
    rows = [Attention(claim, ends=False) for claim in stuck]
    rows += [Attention(claim, ends=True) for claim in ending]
    return rows[:MOST]
