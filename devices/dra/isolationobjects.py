"""What closes a place and what tries it: taint rule, node taint, and a canary with a claim. Pure.

A DeviceTaintRule closes devices to new claims; a node taint closes a node to every Pod, which is
the way where the cluster serves no rules. Both carry the isolation that they are of as their value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from devices.dra.claims import DeviceKey
from devices.dra.evictions import RuleReach
from devices.dra.names import (
    ISOLATED_TAINT,
    ISOLATION_LABEL,
    MANAGED_LABEL,
    ROLE_LABEL,
    SYSTEM_NAMESPACE,
)
from devices.dra.ownpods import CANARY, claim_pod
from devices.dra.taints import Effect

Obj = dict[str, Any]
CONDITION: Final = "EvictionInProgress"
_COUNTS: Final = (
    re.compile(r"(\d+) published devices? selected"),
    re.compile(r"(\d+) allocated devices? selected"),
    re.compile(r"(\d+) pods? would be evicted"),
    re.compile(r"in (\d+) (?:different )?namespaces?"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """What is closed: the devices of a driver in one slice pool, or one of them (`device`)."""

    isolation: str
    driver: str
    pool: str
    device: str = ""

    @property
    def rule_name(self) -> str:
        """The DeviceTaintRule's name in the cluster."""
        return f"berth-isolation-{self.isolation}"

    def covers(self, key: DeviceKey) -> bool:
        """Whether a device is among what is closed."""
        return key[:2] == (self.driver, self.pool) and self.device in ("", key[2])


def taint_rule(target: Target, effect: Effect, looks: int) -> Obj:
    """The whole DeviceTaintRule, without a version: the gateway takes the best that is served.

    ``looks`` stands in the taint's value: Kubernetes writes what a rule of effect None would do
    once for each change of the rule's spec, so looking anew is to change it.
    """
    selector = {"driver": target.driver, "pool": target.pool}
    if target.device:
        selector["device"] = target.device
    return {
        "kind": "DeviceTaintRule",
        "metadata": {
            "name": target.rule_name,
            "labels": {MANAGED_LABEL: "true", ISOLATION_LABEL: target.isolation},
        },
        "spec": {
            "deviceSelector": selector,
            "taint": {
                "key": ISOLATED_TAINT,
                "value": f"{target.isolation}-{looks}",
                "effect": effect.value,
            },
        },
    }


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a rule of effect None says that it would do. Counts are None where the text, which is
    no API, has another form than is known; ``computed`` is True where Berth counted in its mirror.
    """

    text: str
    published: int | None = None
    allocated: int | None = None
    pods: int | None = None
    namespaces: int | None = None
    computed: bool = False

    @property
    def sentence(self) -> str:
        """What stays, said before what changes."""
        if self.pods is None:
            return "The cluster says it in words that Berth cannot count; they stand below."
        if not self.pods:
            return "No Pod holds these devices."
        if self.pods == 1:
            return "1 Pod holds these devices and stays."
        return f"{self.pods} Pods hold these devices and stay."


def read_dry_run(rule: Mapping[str, Any]) -> DryRun | None:
    """What Kubernetes says of a rule as it is now; None where it has not said anything of it yet.

    A condition of an older generation is about what the rule was before.
    """
    generation = rule.get("metadata", {}).get("generation")
    for one in (rule.get("status") or {}).get("conditions") or ():
        if one.get("type") != CONDITION or one.get("observedGeneration") != generation:
            continue
        text = str(one.get("message") or "")
        published, allocated, pods, namespaces = (_count(pattern, text) for pattern in _COUNTS)
        return DryRun(text, published, allocated, pods, namespaces)
    return None


def _count(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return int(found[1]) if found else None


def computed(reach: RuleReach) -> DryRun:
    """The same from Berth's own look at claims and Pods, where the cluster does not say it."""
    return DryRun(
        "Counted by Berth from what it sees of the cluster.",
        len(reach.published),
        len(reach.allocated),
        len(reach.pods),
        len(reach.namespaces),
        computed=True,
    )


def node_taints(before: Sequence[Obj], isolation: str, *, closed: bool) -> list[Obj]:
    """A Node's whole list of taints with or without this isolation's own; others stay as they are.

    A key and an effect stand once in a Node. Where another isolation closed it already, that taint
    is left; once it is gone, whoever still wants the node closed adds its own.
    """
    if not closed:
        return [
            one
            for one in before
            if (one.get("key"), one.get("value")) != (ISOLATED_TAINT, isolation)
        ]
    if any(one.get("key") == ISOLATED_TAINT for one in before):
        return [*before]
    ours = {"key": ISOLATED_TAINT, "value": isolation, "effect": Effect.NO_SCHEDULE.value}
    return [*before, ours]


def canary_claim(name: str, target: Target, device_class: str, *, count: int = 1) -> Obj:
    """A claim that tolerates its own isolation and nothing else."""
    tolerations = [
        {"key": ISOLATED_TAINT, "operator": "Exists", "effect": Effect.NO_SCHEDULE.value}
    ]
    driver = f"device.driver == '{target.driver}'"
    exactly = {
        "deviceClassName": device_class,
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": driver}}],
        "tolerations": tolerations,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": _metadata(name, target),
        "spec": {"devices": {"requests": [{"name": "canary", "exactly": exactly}]}},
    }


def canary_pod(name: str, target: Target, node: str, image: str) -> Obj:
    """A Pod for this node alone that uses the claim of the same name."""
    pod = claim_pod(name, node, image, ISOLATED_TAINT)
    return {**pod, "metadata": _metadata(name, target)}


def _metadata(name: str, target: Target) -> Obj:
    return {
        "name": name,
        "namespace": SYSTEM_NAMESPACE,
        "labels": {
            MANAGED_LABEL: "true",
            ROLE_LABEL: CANARY,
            ISOLATION_LABEL: target.isolation,
        },
    }
