"""The node's own side of object sets: what closes nodes, what fills them, and Pods that try them.

Added to a set apart from its making, so that one seed gives the allocator the same devices and
claims with and without. What is added is what the rules model: cordons, taints, node selector and
affinity, cpu and memory with Pods that run already, the number of Pods, and claims that pin a Pod.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Final

from playground.agreement.objectclaims import Obj, Question
from playground.agreement.objectsets import ObjectSet

#: Keys of node taints; the first is tolerated by some Pods, the second by hardly any.
TAINTS: Final = ("example.com/batch", "example.com/repair")
#: What a node offers where it is not short of anything.
ROOM: Final = {"cpu": "64", "memory": "256Gi", "pods": "110"}
NAMESPACE: Final = "default"


@dataclass(slots=True)
class _Sides:
    dice: random.Random
    features: set[str] = field(default_factory=set)

    def has(self, feature: str, chance: float) -> bool:
        """Whether a feature is used now; remembers it."""
        if self.dice.random() >= chance:
            return False
        self.features.add(feature)
        return True


def with_sides(one: ObjectSet) -> ObjectSet:
    """A set with something on the nodes' own side, and in the Pods that are asked about."""
    sides = _Sides(random.Random(f"sides of {one.seed}"))
    objects: list[Obj] = []
    for obj in one.objects:
        objects += _node(sides, obj) if obj["kind"] == "Node" else [obj]
    held = [
        obj["metadata"]["name"]
        for obj in objects
        if obj["kind"] == "ResourceClaim" and obj.get("status")
    ]
    asked = tuple(_question(sides, question, held) for question in one.questions)
    features = one.features | sides.features
    return ObjectSet(one.seed, tuple(objects), asked, frozenset(features))


def _node(sides: _Sides, node: Obj) -> list[Obj]:
    """A node as it stands, and the Pods that run there."""
    dice, name = sides.dice, node["metadata"]["name"]
    labels = {**node["metadata"]["labels"], "tier": str(dice.randint(1, 3))}
    spec: Obj = {}
    if sides.has("node cordons", 0.025):
        spec["unschedulable"] = True
    if sides.has("node taints", 0.035):
        effect = dice.choice(("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"))
        key = dice.choice((*TAINTS, TAINTS[0]))
        spec["taints"] = [{"key": key, "value": dice.choice(("yes", "no")), "effect": effect}]
    room = dict(ROOM)
    if sides.has("nodes short of cpu or memory", 0.03):
        room |= dice.choice(({"cpu": "900m"}, {"memory": "1Gi"}, {"cpu": "900m", "memory": "1Gi"}))
    pods = [_running(sides, name)] if sides.has("running Pods", 0.25) else []
    if sides.has("nodes short of Pods", 0.025):
        room["pods"] = str(len(pods))
    found = {
        **node,
        "metadata": {**node["metadata"], "labels": labels},
        "spec": spec,
        "status": {"allocatable": room, "capacity": room},
    }
    return [found, *pods]


def _running(sides: _Sides, node: str) -> Obj:
    requests = sides.dice.choice(({"cpu": "1"}, {"cpu": "800m", "memory": "1500M"}, {}))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"running-{node}", "namespace": NAMESPACE},
        "spec": {"nodeName": node, "containers": [_container(requests)]},
    }


def _question(sides: _Sides, question: Question, held: list[str]) -> Question:
    before, sides.features = sides.features, set()
    dice = sides.dice
    spec: Obj = {}
    if sides.has("requests of cpu and memory", 0.4):
        spec |= _requests(sides)
    if sides.has("node tolerations", 0.3):
        spec["tolerations"] = [dice.choice(_tolerations())]
    if sides.has("node selectors", 0.012):
        spec["nodeSelector"] = {"rack": dice.choice(("r1", "r2"))}
    terms = [dice.choice(_expressions())] if sides.has("node affinity", 0.012) else []
    pins = [dice.choice(held)] if held and sides.has("pinned claims", 0.012) else []
    mine, sides.features = frozenset(sides.features), before | sides.features
    return replace(
        question,
        spec=spec,
        terms=tuple(terms),
        held=tuple(pins),
        features=question.features | mine,
    )


def _requests(sides: _Sides) -> Obj:
    """What containers ask for: one after the other, beside each other, or as a whole Pod."""
    dice = sides.dice
    main = _container(dice.choice(({"cpu": "200m"}, {"cpu": "1"}, {"memory": "2Gi", "cpu": "1m"})))
    spec: Obj = {"containers": [main]}
    if sides.has("init containers", 0.3):
        first = _container(dice.choice(({"cpu": "1200m"}, {"memory": "1Gi"})), "first")
        if sides.has("sidecars", 0.4):
            first["restartPolicy"] = "Always"
        spec["initContainers"] = [first]
    elif sides.has("requests of the Pod as a whole", 0.2):
        spec["resources"] = {"requests": {"cpu": "1500m"}}
    return spec


def _container(requests: Obj, name: str = "main") -> Obj:
    return {"name": name, "image": "none", "resources": {"requests": requests}}


def _tolerations() -> tuple[Obj, ...]:
    return (
        {"operator": "Exists"},
        {"key": TAINTS[0], "operator": "Exists"},
        {"key": TAINTS[0], "operator": "Equal", "value": "yes", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    )


def _expressions() -> tuple[Obj, ...]:
    return (
        {"key": "rack", "operator": "In", "values": ["r1"]},
        {"key": "rack", "operator": "NotIn", "values": ["r1"]},
        {"key": "tier", "operator": "Gt", "values": ["1"]},
        {"key": "tier", "operator": "Lt", "values": ["3"]},
        {"key": "nope", "operator": "DoesNotExist"},
        {"key": "nope", "operator": "NotIn", "values": ["x"]},
        {"key": "tier", "operator": "Exists"},
    )
