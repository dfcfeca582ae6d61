"""Random object sets for DRA: valid, varied, and the same for the same seed.

A set is a small cluster (nodes, classes, slices, taint rules, allocated claims) and questions about
it: claims of one Pod on one node. Every feature that the rules model occurs in some of the sets.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from playground.agreement.objectclaims import API, TAINTS, Maker, Obj, Question, a_question

DRIVERS: Final = ("gpu.example.com", "nic.example.com", "vf.example.com")
MODELS: Final = ("a100", "h100", "l4")


@dataclass(frozen=True, slots=True)
class ObjectSet:
    """A cluster, questions about it, and the features that occur in it."""

    seed: int
    objects: tuple[Obj, ...]
    questions: tuple[Question, ...]
    features: frozenset[str]


def make(
    seed: int, questions: int = 24, *, lists: bool = False, derived: bool = False
) -> ObjectSet:
    """The set of that seed. ``lists`` and ``derived`` add what only some gates allow."""
    maker = Maker(random.Random(seed), lists, derived)
    maker.nodes = [f"n{number}" for number in range(maker.dice.randint(2, 4))]
    for driver in maker.dice.sample(DRIVERS, maker.dice.randint(1, 2)):
        _publish(maker, driver)
    objects = [_node(maker, name) for name in maker.nodes]
    objects += _classes(maker) + maker.slices + _rules(maker) + _holders(maker)
    asked = tuple(a_question(maker, str(number)) for number in range(questions))
    return ObjectSet(seed, tuple(objects), asked, frozenset(maker.features))


def _node(maker: Maker, name: str) -> Obj:
    labels = {"kubernetes.io/hostname": name, "rack": maker.dice.choice(("r1", "r2"))}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}


# Slices


def _publish(maker: Maker, driver: str) -> None:
    """One pool per node, or a pool that several nodes reach."""
    if maker.has("network attached", 0.25):
        _pool(maker, driver, f"shared-{driver.split('.')[0]}", None)
        return
    for node in maker.nodes:
        if maker.some(0.9):
            _pool(maker, driver, node, node)


def _pool(maker: Maker, driver: str, name: str, node: str | None) -> None:
    dice = maker.dice
    kind = dice.choice(("plain", "plain", "plain", "shareable", "partitions"))
    per_device = node is None and maker.has("per-device node selection", 0.3)
    total = dice.randint(2, 7)
    if maker.has("many devices", 0.06):
        total = dice.randint(33, 45)
    devices = [_device(maker, driver, number, kind, node, per_device) for number in range(total)]
    cut = dice.randint(1, len(devices)) if kind != "partitions" and maker.some(0.35) else total
    parts = [part for part in (devices[:cut], devices[cut:]) if part]
    if len(parts) == 2 and maker.has("invalid pool", 0.55):
        parts[1][0]["name"] = parts[0][0]["name"]
    generation = dice.randint(1, 3)
    count = len(parts) + (1 if kind == "partitions" else 0)
    missing = maker.has("incomplete pool", 0.07)
    spec: Obj = {
        "driver": driver,
        "pool": {"name": name, "generation": generation, "resourceSliceCount": count + missing},
        **_reach(maker, node, per_device),
    }
    for number, part in enumerate(parts):
        _add_slice(maker, f"{driver}-{name}-{number}", {**spec, "devices": part})
    if kind == "partitions":
        maker.features.add("shared counters")
        _add_slice(maker, f"{driver}-{name}-c", {**spec, "sharedCounters": _counter_sets(maker)})
    if maker.has("older generation", 0.12):
        old = {**spec, "pool": {**spec["pool"], "generation": generation - 1}}
        leftover = [_device(maker, driver, 90, "plain", node, per_device)]
        _add_slice(maker, f"{driver}-{name}-old", {**old, "devices": leftover})


def _add_slice(maker: Maker, name: str, spec: Obj) -> None:
    maker.slices.append(
        {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}
    )


def _reach(maker: Maker, node: str | None, per_device: bool) -> Obj:
    if node is not None:
        return {"nodeName": node}
    if per_device:
        return {"perDeviceNodeSelection": True}
    return maker.dice.choice(({"allNodes": True}, {"nodeSelector": _rack(maker)}))


def _rack(maker: Maker) -> Obj:
    values = [maker.dice.choice(("r1", "r2"))]
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": values}]}
    return {"nodeSelectorTerms": [term]}


def _device(
    maker: Maker, driver: str, number: int, kind: str, node: str | None, per_device: bool
) -> Obj:
    dice = maker.dice
    device: Obj = {
        "name": f"d{number}",
        "attributes": _attributes(maker, driver, number),
        "capacity": _capacity(maker, kind),
    }
    if per_device:
        device |= dice.choice(
            (
                {"nodeName": dice.choice(maker.nodes)},
                {"allNodes": True},
                {"nodeSelector": _rack(maker)},
            )
        )
    if kind == "shareable":
        maker.features.add("consumable capacity")
        device["allowMultipleAllocations"] = True
    if kind == "partitions" and maker.some(0.9):
        device["consumesCounters"] = [
            {
                "counterSet": f"set-{dice.randint(0, 1)}",
                "counters": {"memory": {"value": f"{dice.choice((10, 20, 40))}Gi"},
                             "slots": {"value": str(dice.randint(1, 4))}},
            }
        ]  # fmt: skip
    if maker.has("taints", 0.06):
        key, effect = dice.choice((*TAINTS, ("example.com/note", "None")))
        device["taints"] = [{"key": key, "value": "yes", "effect": effect}]
    if kind == "plain" and maker.has("binding conditions", 0.03):
        device["bindingConditions"] = ["example.com/Attached"]
        device["bindingFailureConditions"] = ["example.com/Failed"]
    return device


def _attributes(maker: Maker, driver: str, number: int) -> Obj:
    dice = maker.dice
    found: Obj = {
        "model": {"string": dice.choice(MODELS)},
        "index": {"int": number},
        "healthy": {"bool": maker.some(0.85)},
        "firmware": {"version": dice.choice(("1.2.3", "1.10.0", "2.0.0-rc.1"))},
    }
    if maker.some(0.85):
        found["example.com/root"] = {"string": f"pci{dice.randint(0, 2)}"}
    if maker.some(0.8):
        found["example.com/numa"] = {"int": dice.randint(0, 1)}
    if maker.lists and maker.has("list attributes", 0.3):
        roots = dice.sample(["pci0", "pci1", "pci2"], dice.randint(1, 2))
        found["example.com/root"] = {"strings": roots}
    for name in ("model", "healthy", "firmware"):
        if maker.has("missing attribute", 0.02):
            found.pop(name, None)
    return found


def _capacity(maker: Maker, kind: str) -> Obj:
    dice = maker.dice
    memory: Obj = {"value": dice.choice(("40Gi", "80Gi", "81559Mi", "24G"))}
    if kind != "shareable":
        return {"memory": memory} if maker.some(0.95) else {}
    slots: Obj = {"value": str(dice.randint(2, 8))}
    if maker.has("capacity policies", 0.7):
        memory = {
            "value": "80Gi",
            "requestPolicy": {
                "default": "10Gi",
                "validRange": {"min": "2Gi", "max": "64Gi", "step": dice.choice(("1Gi", "2Gi"))},
            },
        }
        slots["requestPolicy"] = {"default": "1", "validValues": ["1", "2"]}
    return {"memory": memory, "slots": slots} if maker.some(0.7) else {"slots": slots}


def _counter_sets(maker: Maker) -> list[Obj]:
    return [
        {
            "name": f"set-{number}",
            "counters": {
                "memory": {"value": f"{maker.dice.choice((40, 80))}Gi"},
                "slots": {"value": str(maker.dice.randint(4, 8))},
            },
        }
        for number in range(2)
    ]


# Classes, rules, and claims that are allocated already


def _classes(maker: Maker) -> list[Obj]:
    found = {
        "any": [],
        "gpu": ['device.driver == "gpu.example.com"'],
        "nic": ['device.driver == "nic.example.com"'],
        "healthy": [
            'device.attributes[device.driver].?healthy.orValue(false)',
        ],
        "big": ['device.driver in ["gpu.example.com", "vf.example.com"]',
                'device.capacity[device.driver].memory.compareTo(quantity("60Gi")) > 0'],
    }  # fmt: skip
    return [
        {
            "apiVersion": API,
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": text}} for text in texts]},
        }
        for name, texts in found.items()
    ]


def _rules(maker: Maker) -> list[Obj]:
    if not maker.slices or not maker.has("taint rules", 0.25):
        return []
    piece = maker.dice.choice(maker.slices)["spec"]
    device = maker.dice.choice(piece.get("devices") or [{"name": "d0"}])["name"]
    selector = maker.dice.choice(
        (
            {"driver": piece["driver"], "pool": piece["pool"]["name"], "device": device},
            {"pool": piece["pool"]["name"]},
            {"device": "d1"},
        )
    )
    key, effect = maker.dice.choice((*TAINTS, ("example.com/note", "None")))
    spec = {"deviceSelector": selector, "taint": {"key": key, "value": "yes", "effect": effect}}
    return [
        {"apiVersion": API, "kind": "DeviceTaintRule", "metadata": {"name": "rule"}, "spec": spec}
    ]


def _holders(maker: Maker) -> list[Obj]:
    """Claims that hold some of the devices, each device once, shares several times."""
    found: list[Obj] = []
    busy = maker.dice.choice((0.0, 0.1, 0.2, 0.5))
    taken: set[tuple[str, str, str]] = set()
    for piece in maker.slices:
        spec = piece["spec"]
        for device in spec.get("devices", ()):
            key = (spec["driver"], spec["pool"]["name"], device["name"])
            if key in taken or not maker.some(busy):
                continue
            taken.add(key)
            shares = maker.dice.randint(1, 2) if device.get("allowMultipleAllocations") else 1
            for _ in range(shares):
                found.append(_holder(maker, len(found), key, spec, device))
    return found


def _holder(maker: Maker, number: int, key: tuple[str, str, str], spec: Obj, device: Obj) -> Obj:
    uid = f"{number:08d}-0000-4000-8000-000000000001"
    result: Obj = {"request": "r", "driver": key[0], "pool": key[1], "device": key[2]}
    if device.get("allowMultipleAllocations"):
        result["shareID"] = f"{number:08d}-1111-4000-8000-000000000001"
        if device["capacity"]:
            result["consumedCapacity"] = {
                name: {"memory": "10Gi", "slots": "1"}[name] for name in device["capacity"]
            }
    elif maker.has("admin holders", 0.1):
        result["adminAccess"] = True
    exactly: Obj = {"deviceClassName": "any", "allocationMode": "ExactCount", "count": 1}
    if result.get("adminAccess"):
        exactly["adminAccess"] = True
    allocation: Obj = {"devices": {"results": [result]}}
    if "nodeName" in spec:
        pin = {"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    return {
        "apiVersion": API,
        "kind": "ResourceClaim",
        "metadata": {"name": f"held-{number}", "namespace": "default", "uid": uid},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        "status": {
            "allocation": allocation,
            "reservedFor": [{"resource": "pods", "name": f"p{number}", "uid": uid}],
        },
    }
