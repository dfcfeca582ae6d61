"""Tables of floor 2, one module a noun."""

from __future__ import annotations

from devices.models.assumption import AssumedGate
from devices.models.claim import Claim, ClaimEvent
from devices.models.closure import Closure
from devices.models.doctorrun import DoctorRun
from devices.models.dryrun import DryRun
from devices.models.forecast import Forecast
from devices.models.freeze import Freeze, FreezeHold
from devices.models.history import StageTimes
from devices.models.holding import Holding, HoldingsRead
from devices.models.inventory import DriftLine, Inventory, InventoryLine, PoolMark
from devices.models.isolation import Isolation, IsolationPolicy, Preparation
from devices.models.leak import LeakRow
from devices.models.ledger import (
    LedgerDifference,
    LedgerHead,
    LedgerLine,
    LedgerNode,
    LedgerPool,
)
from devices.models.ledgerrollout import (
    DriverRights,
    LedgerObjectives,
    LedgerPolicy,
    LedgerRollout,
    LedgerRolloutMove,
    LedgerUpgrade,
)
from devices.models.nodepool import NodePool
from devices.models.observed import ClusterState, Leadership, Observed, Sync
from devices.models.offer import ClassWords, Offer
from devices.models.ownership import OwnershipLine
from devices.models.proof import Proof
from devices.models.route import PluginResource, RouteRule
from devices.models.standing import NamespaceStanding, TenantStanding
from devices.models.template import ClaimTemplate, TemplateVersion
from devices.models.training import TrainingSignal
from devices.models.view import SavedView

__all__ = [
    "AssumedGate",
    "Claim",
    "ClaimEvent",
    "ClaimTemplate",
    "ClassWords",
    "Closure",
    "ClusterState",
    "DoctorRun",
    "DriftLine",
    "DriverRights",
    "DryRun",
    "Forecast",
    "Freeze",
    "FreezeHold",
    "Holding",
    "HoldingsRead",
    "Inventory",
    "InventoryLine",
    "Isolation",
    "IsolationPolicy",
    "Leadership",
    "LeakRow",
    "LedgerDifference",
    "LedgerHead",
    "LedgerLine",
    "LedgerNode",
    "LedgerObjectives",
    "LedgerPolicy",
    "LedgerPool",
    "LedgerRollout",
    "LedgerRolloutMove",
    "LedgerUpgrade",
    "NamespaceStanding",
    "NodePool",
    "Observed",
    "Offer",
    "OwnershipLine",
    "PluginResource",
    "PoolMark",
    "Preparation",
    "Proof",
    "RouteRule",
    "SavedView",
    "StageTimes",
    "Sync",
    "TemplateVersion",
    "TenantStanding",
    "TrainingSignal",
]
