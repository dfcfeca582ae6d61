"""Names that Berth writes into the cluster: labels, annotations, field managers.

Knows nothing of Kubernetes' own field names; those live in `snapshot.py` and `objects.py`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final

MANAGED_LABEL: Final = "berth.dev/managed"
TENANT_LABEL: Final = "berth.dev/tenant"
CLAIM_LABEL: Final = "berth.dev/claim"
ROLE_LABEL: Final = "berth.dev/role"
MOVE_LABEL: Final = "berth.dev/move"
FREEZE_LABEL: Final = "berth.dev/freeze"
ISOLATION_LABEL: Final = "berth.dev/isolation"
LEDGER_LABEL: Final = "berth.dev/ledger"
RETRYABLE_LABEL: Final = "berth.dev/retryable"
PATH_LABEL_PREFIX: Final = "berth.dev/path."

REQUEST_ID_ANNOTATION: Final = "berth.dev/request-id"
EXPECTED_END_ANNOTATION: Final = "berth.dev/expected-end"
CLASSES_ANNOTATION: Final = "berth.dev/device-classes"
EXTENDED_RESOURCES_ANNOTATION: Final = "berth.dev/extended-resources"
FROZEN_ANNOTATION: Final = "berth.dev/frozen"
FULL_CLAIMS_ANNOTATION: Final = "berth.dev/full-claims"

QUIESCING_TAINT: Final = "berth.dev/quiescing"
#: On devices by a DeviceTaintRule, or on a Node where rules are not served.
ISOLATED_TAINT: Final = "berth.dev/isolated"
#: On devices of a frozen node pool or driver, by a DeviceTaintRule; Nodes get the quiescing taint,
#: which the DaemonSets of drivers and plugins tolerate already.
FROZEN_TAINT: Final = "berth.dev/frozen"
#: On devices of a node whose ledger cannot be relied on, by a DeviceTaintRule.
LEDGER_TAINT: Final = "berth.dev/ledger"
#: With it begins the value of a quiescing taint that a freeze set; a move's is the id of the move.
FREEZE_MARK: Final = "freeze-"
SYSTEM_NAMESPACE: Final = "berth-system"
#: The account that asks by dry runs and can write nothing (`deploy/policies/probe.yaml`).
PROBE_ACCOUNT: Final = f"system:serviceaccount:{SYSTEM_NAMESPACE}:berth-probe"
POLICY_CONFIG_MAP: Final = "berth-policy"


class Manager(StrEnum):
    """Field managers of server-side apply, one per concern.

    Apply drops fields that a manager no longer sends; two concerns under one name would undo each
    other's fields.
    """

    TENANT = "berth-tenant"
    FREEZE = "berth-freeze"
    SHARE = "berth-share"
    CLAIM = "berth-claim"
    NODE = "berth-node"
    ISOLATION = "berth-isolation"
    LEDGER = "berth-ledger"


DNS_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def is_dns_label(name: str) -> bool:
    """True for a name that Kubernetes takes as an RFC 1123 label (at most 63 characters)."""
    return DNS_LABEL.fullmatch(name) is not None
