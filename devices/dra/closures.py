"""What closes a frozen node pool or driver, and what must not change while that is frozen. Pure.

A DeviceTaintRule closes the devices of one slice pool, or of one driver, to new claims; a taint
closes a Node to every Pod, which is the way for a device plugin and where rules are not served.
Both are of effect NoSchedule: what runs keeps its devices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from devices.dra.names import (
    FREEZE_LABEL,
    FREEZE_MARK,
    FROZEN_TAINT,
    MANAGED_LABEL,
    QUIESCING_TAINT,
)
from devices.dra.ownership import Owner
from devices.dra.snapshot import Snapshot
from devices.dra.taints import Effect

Obj = dict[str, Any]
RULE: Final = "rule"
TAINT: Final = "taint"


@dataclass(frozen=True, slots=True, order=True)
class Closure:
    """One taint or rule. ``kind`` is `RULE` (of ``driver``, in slice pool ``pool`` or in all) or
    `TAINT` (of Node ``node``, the machine with ``uid``).
    """

    kind: str
    node: str = ""
    uid: str = ""
    driver: str = ""
    pool: str = ""

    def rule_name(self, freeze: str) -> str:
        """The DeviceTaintRule's name: slice pools have names that no object may have."""
        digest = hashlib.sha256(f"{self.driver}/{self.pool}".encode()).hexdigest()[:12]
        return f"berth-freeze-{freeze}-{digest}".lower()


def wanted_of_driver(driver: str, snapshot: Snapshot, *, rules: bool) -> tuple[Closure, ...]:
    """What closes all devices of a driver: one rule, or the nodes that have some."""
    if rules:
        return (Closure(RULE, driver=driver),)
    nodes = {piece.reach.node_name for piece in snapshot.slices if piece.driver == driver}
    return _tainted(nodes, snapshot)


def wanted_of_pool(
    nodes: Mapping[str, str],
    driver: str,
    snapshot: Snapshot,
    *,
    path: str,
    rules: bool,
    freeze: str,
) -> tuple[Closure, ...]:
    """What closes a node pool. ``nodes`` are its nodes with the owner of their devices.

    ``path`` leaves nodes of the other path open; nodes that nobody gives devices of are left alone.
    So are nodes that something else keeps closed, a move most of all: its canary needs a device.
    """
    pools: dict[str, set[str]] = {}
    for piece in snapshot.slices:
        if piece.driver == driver and piece.reach.node_name in nodes:
            pools.setdefault(piece.reach.node_name, set()).add(piece.pool)
    found: list[Closure] = []
    for node, owner in nodes.items():
        if owner == Owner.NONE or path not in ("", owner) or _elsewhere(node, snapshot, freeze):
            continue
        if owner == Owner.DRA and rules:
            found += (Closure(RULE, driver=driver, pool=pool) for pool in pools.get(node, ()))
        else:
            found += _tainted({node}, snapshot)
    return tuple(sorted(found))


def _elsewhere(node: str, snapshot: Snapshot, freeze: str) -> bool:
    """Whether a quiescing taint that is no freeze's closes the node."""
    seen = snapshot.nodes.get(node)
    return seen is not None and any(
        one.key == QUIESCING_TAINT and not one.value.startswith(FREEZE_MARK) for one in seen.taints
    )


def _tainted(nodes: Iterable[str], snapshot: Snapshot) -> tuple[Closure, ...]:
    return tuple(
        Closure(TAINT, node=name, uid=snapshot.nodes[name].uid)
        for name in sorted(nodes)
        if name in snapshot.nodes
    )


def stands(closure: Closure, freeze: str, snapshot: Snapshot) -> bool:
    """Whether the cluster shows it. A key stands once on a Node, so another freeze's counts too."""
    if closure.kind == TAINT:
        node = snapshot.nodes.get(closure.node)
        return node is not None and any(
            one.key == QUIESCING_TAINT and one.effect == Effect.NO_SCHEDULE for one in node.taints
        )
    name = closure.rule_name(freeze)
    return any(
        rule.name == name
        and rule.selects
        and (rule.driver, rule.pool, rule.device) == (closure.driver, closure.pool, "")
        and (rule.taint.key, rule.taint.effect) == (FROZEN_TAINT, Effect.NO_SCHEDULE)
        for rule in snapshot.rules
    )


def rule_object(closure: Closure, freeze: str) -> Obj:
    """The whole DeviceTaintRule, without a version: the gateway takes the best that is served."""
    selector = {"driver": closure.driver}
    if closure.pool:
        selector["pool"] = closure.pool
    return {
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": closure.rule_name(freeze),
            "labels": {MANAGED_LABEL: "true", FREEZE_LABEL: freeze},
        },
        "spec": {
            "deviceSelector": selector,
            "taint": {"key": FROZEN_TAINT, "value": freeze, "effect": Effect.NO_SCHEDULE.value},
        },
    }


def node_taints(before: Sequence[Obj], freeze: str, *, closed: bool) -> list[Obj]:
    """A Node's whole list of taints with or without this freeze's own; others stay as they are.

    Where the node is closed already nothing is added; once that is over, the freeze adds its own.
    """
    value = f"{FREEZE_MARK}{freeze}"
    if not closed:
        return [
            one for one in before if (one.get("key"), one.get("value")) != (QUIESCING_TAINT, value)
        ]
    if any(one.get("key") == QUIESCING_TAINT for one in before):
        return [*before]
    ours = {"key": QUIESCING_TAINT, "value": value, "effect": Effect.NO_SCHEDULE.value}
    return [*before, ours]


def locks(
    *,
    selector: Mapping[str, str],
    sets: Iterable[str],
    device_class: str,
    switches: Iterable[str],
) -> tuple[str, ...]:
    """What must not change while driver changes of a node pool are frozen, as the policy reads it:
    DaemonSets (``namespace/name``), the class, and switch labels (``key=value``) of its nodes.

    Names and labels of Kubernetes have no space and no semicolon, which part these lines.
    """
    nodes = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    keys = sorted({label.partition("=")[0] for label in switches})
    return (
        *(f"daemonset {name}" for name in sorted(set(sets))),
        f"class {device_class}",
        f"switch {nodes} {' '.join(keys)}",
    )
