"""Random claims to ask about: requests of every kind, alone and together, and their constraints."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from playground.agreement.expressions import a_selector

Obj = dict[str, Any]

API: Final = "resource.k8s.io/v1"
TAINTS: Final = (("example.com/broken", "NoSchedule"), ("example.com/drain", "NoExecute"))


@dataclass(frozen=True, slots=True)
class Question:
    """Claims of one Pod on one node, and what is special about them.

    ``spec``, ``terms`` and ``held`` matter to the Pod alone: fields of its spec, conditions on the
    node's labels, and names of claims that are allocated already.
    """

    id: str
    node: str
    claims: tuple[Obj, ...]
    features: frozenset[str]
    spec: Obj = field(default_factory=dict)
    terms: tuple[Obj, ...] = ()
    held: tuple[str, ...] = ()


@dataclass(slots=True)
class Maker:
    """Makes one set; ``features`` collects what was used."""

    dice: random.Random
    lists: bool
    derived: bool
    features: set[str] = field(default_factory=set)
    nodes: list[str] = field(default_factory=list)
    slices: list[Obj] = field(default_factory=list)
    conditions: dict[str, list[str]] = field(default_factory=dict)

    def some(self, chance: float) -> bool:
        """True with this chance."""
        return self.dice.random() < chance

    def has(self, feature: str, chance: float) -> bool:
        """Whether a feature is used now; remembers it."""
        if not self.some(chance):
            return False
        self.features.add(feature)
        return True


def a_question(maker: Maker, number: str) -> Question:
    before, maker.features = maker.features, set()
    amount = 2 if maker.has("several claims", 0.15) else 1
    claims = tuple(_claim(maker, f"q{number}-{part}") for part in range(amount))
    mine, maker.features = frozenset(maker.features), before | maker.features
    return Question(number, maker.dice.choice(maker.nodes), claims, mine)


def _claim(maker: Maker, name: str) -> Obj:
    requests = [_request(maker, number) for number in range(maker.dice.choice((1, 1, 1, 1, 2, 3)))]
    devices: Obj = {"requests": requests}
    constraints = _constraints(maker, [request["name"] for request in requests])
    if constraints:
        devices["constraints"] = constraints
    if maker.derived and maker.has("derived attributes", 0.1):
        _derive(devices, requests)
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": devices},
    }


def _derive(devices: Obj, requests: Sequence[Obj]) -> None:
    text = 'device.attributes["example.com"].?numa.orValue(0)'
    for request in requests:
        for ask in request.get("firstAvailable") or [request["exactly"]]:
            ask["derivedAttributes"] = [{"name": "derived.example.com/zone", "expression": text}]
    devices.setdefault("constraints", []).append({"matchAttribute": "derived.example.com/zone"})


def _request(maker: Maker, number: int) -> Obj:
    if maker.has("alternatives", 0.12):
        options = [
            {"name": f"s{option}", **_ask(maker, alternative=True)}
            for option in range(maker.dice.randint(2, 3))
        ]
        return {"name": f"r{number}", "firstAvailable": options}
    return {"name": f"r{number}", "exactly": _ask(maker, alternative=False)}


def _ask(maker: Maker, *, alternative: bool) -> Obj:
    dice = maker.dice
    ask: Obj = {
        "deviceClassName": dice.choice(("any",) * 5 + ("gpu", "nic", "healthy", "big")),
        "allocationMode": "ExactCount",
    }
    if maker.has("missing class", 0.007):
        ask["deviceClassName"] = "gone"
    if maker.has("all devices", 0.06):
        ask["allocationMode"] = "All"
    else:
        ask["count"] = dice.choice((1, 1, 1, 1, 2, 3))
        if maker.has("too many", 0.01):
            ask["count"] = dice.choice((20, 33))
    if maker.has("selectors", 0.35):
        ask["selectors"] = [
            {"cel": {"expression": a_selector(dice)}} for _ in range(dice.choice((1, 1, 2)))
        ]
    if not alternative and maker.has("admin access", 0.06):
        ask["adminAccess"] = True
    if maker.has("tolerations", 0.12):
        key, effect = dice.choice(TAINTS)
        ask["tolerations"] = [
            dice.choice(
                (
                    {"operator": "Exists"},
                    {"key": key, "operator": "Exists", "effect": effect},
                    {"key": key, "operator": "Equal", "value": "yes"},
                )
            )
        ]
    if maker.has("capacity requests", 0.08):
        ask["capacity"] = {"requests": _amounts(dice)}
    return ask


def _amounts(dice: random.Random) -> Obj:
    options: tuple[Callable[[], Obj], ...] = (
        lambda: {"memory": dice.choice(("1Gi", "10Gi", "10500Mi", "47Gi", "70Gi", "500M"))},
        lambda: {"slots": dice.choice(("1", "2", "3"))},
        lambda: {"memory": "20Gi", "slots": "1"},
    )
    return dice.choice(options)()


def _constraints(maker: Maker, requests: Sequence[str]) -> list[Obj]:
    found: list[Obj] = []
    for feature, kind, chance in (
        ("match attribute", "matchAttribute", 0.13),
        ("distinct attribute", "distinctAttribute", 0.07),
    ):
        if maker.has(feature, chance):
            name = maker.dice.choice(
                ("example.com/root", "example.com/numa", "gpu.example.com/model")
            )
            one: Obj = {kind: name}
            if maker.some(0.5):
                one["requests"] = maker.dice.sample(
                    list(requests), maker.dice.randint(1, len(requests))
                )
            found.append(one)
    return found
