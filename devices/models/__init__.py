"""Tables of floor 2, one module a noun."""

from __future__ import annotations

from devices.models.claim import Claim, ClaimEvent
from devices.models.forecast import Forecast
from devices.models.freeze import Freeze
from devices.models.history import StageTimes
from devices.models.observed import ClusterState, Leadership, Observed, Sync
from devices.models.offer import ClassWords, Offer
from devices.models.standing import NamespaceStanding, TenantStanding
from devices.models.template import ClaimTemplate, TemplateVersion

__all__ = [
    "Claim",
    "ClaimEvent",
    "ClaimTemplate",
    "ClassWords",
    "ClusterState",
    "Forecast",
    "Freeze",
    "Leadership",
    "NamespaceStanding",
    "Observed",
    "Offer",
    "StageTimes",
    "Sync",
    "TemplateVersion",
    "TenantStanding",
]
