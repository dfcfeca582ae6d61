"""What keeps every Pod off devices whose node's ledger cannot be relied on. Pure.

A DeviceTaintRule of effect NoSchedule on the slice pool: what runs keeps its devices, and Pods that
nobody asked Berth for wait as well. Its name says which pool it is of, so what stands is known from
the cluster alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from devices.dra.doubt import unsafe_pools
from devices.dra.names import (
    FREEZE_MARK,
    LEDGER_LABEL,
    LEDGER_TAINT,
    MANAGED_LABEL,
    QUIESCING_TAINT,
)
from devices.dra.pools import PoolKey
from devices.dra.snapshot import Snapshot
from devices.dra.taints import Effect

Obj = dict[str, Any]
_PREFIX: Final = "berth-ledger-"


def wanted(snapshot: Snapshot, nodes: Mapping[str, str]) -> tuple[PoolKey, ...]:
    """Slice pools to close; ``nodes`` are those with a ledger that cannot be relied on, with the
    code of the gravest reason. A node that moves is closed already, and its canary needs a device.
    """
    still = {name: code for name, code in nodes.items() if not _moves(name, snapshot)}
    return tuple(sorted(unsafe_pools(snapshot, still)))


def _moves(node: str, snapshot: Snapshot) -> bool:
    seen = snapshot.nodes.get(node)
    return seen is not None and any(
        one.key == QUIESCING_TAINT and not one.value.startswith(FREEZE_MARK) for one in seen.taints
    )


def rule_name(key: PoolKey) -> str:
    """The DeviceTaintRule's name: slice pools have names that no object may have."""
    return _PREFIX + hashlib.sha256("/".join(key).encode()).hexdigest()[:16]


def rule_object(key: PoolKey) -> Obj:
    """The whole DeviceTaintRule, without a version: the gateway takes the best that is served."""
    driver, pool = key
    return {
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": rule_name(key),
            "labels": {MANAGED_LABEL: "true", LEDGER_LABEL: "unsafe"},
        },
        "spec": {
            "deviceSelector": {"driver": driver, "pool": pool},
            "taint": {
                "key": LEDGER_TAINT, "value": "unsafe", "effect": Effect.NO_SCHEDULE.value,
            },
        },
    }  # fmt: skip


def standing(snapshot: Snapshot) -> Mapping[str, PoolKey | None]:
    """Rules of this kind by name, with the pool that each closes; None where somebody changed it so
    that it does not close what its name says.
    """
    found: dict[str, PoolKey | None] = {}
    for rule in snapshot.rules:
        if rule.name.startswith(_PREFIX):
            key = (rule.driver, rule.pool)
            whole = (
                rule.selects
                and not rule.device
                and rule.name == rule_name(key)
                and (rule.taint.key, rule.taint.effect) == (LEDGER_TAINT, Effect.NO_SCHEDULE)
            )
            found[rule.name] = key if whole else None
    return found
