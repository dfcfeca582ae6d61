"""Scenes of asks that no devices fit, over the shared cases: what the rules find and pages say."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any

from devices.mirror.kinds import MIRRORED
from portal.management.demo_templates import TEMPLATES
from tests.devices.demofleet import unbounded
from tests.devices.dra.cases import by_number, objects
from tests.pictures.stage import DRIVER, Obj, Shown, Stage, taken

Scene = Callable[[], Shown]
NO = "0/21 nodes are available: 21 cannot allocate all claims."


def waits(
    values: Mapping[str, Any] | None = None,
    others: Iterable[Obj] = (),
    *,
    said: str = NO,
    change: Callable[[Stage], None] | None = None,
    **pod: Any,
) -> Shown:
    """A claim of the demo's GPU template whose Pod waits, and claims of others that hold some."""
    content = unbounded(TEMPLATES["gpu"][3])
    stage = Stage(content, {"memory": "80-nvlink", "gpus": 1} if values is None else values)
    if change is not None:
        change(stage)
    conditions = [stage.unschedulable(said)]
    return stage.shows(stage.made(), stage.pod(conditions=conditions, **pod), *others)


def of_case(
    number: str,
    template: str = "",
    *,
    without: Collection[str] = (),
    requests: Iterable[Mapping[str, Any]] = (),
    said: str = NO,
    release: str = "",
) -> Shown:
    """A Pod that asks what a case's template asks, or these requests, in the case's cluster."""
    stage = Stage()
    there = [
        copy.deepcopy(one)
        for one in objects(by_number(number))
        if one["kind"] in MIRRORED and one["metadata"]["name"] not in without
    ]
    specs = {
        one["metadata"]["name"]: one["spec"]["spec"]
        for one in there
        if one["kind"] == "ResourceClaimTemplate"
    }
    stage.fleet = [*there, *_nodes(there)]
    spec = specs[template] if template else {"devices": {"requests": list(requests)}}
    claim = {**stage.made(), "spec": spec}
    pod = stage.pod(conditions=[stage.unschedulable(said)])
    return stage.shows(claim, pod, release=release)


def _nodes(there: Iterable[Obj]) -> list[Obj]:
    """Nodes that slices name and the case leaves out."""
    known = {one["metadata"]["name"] for one in there if one["kind"] == "Node"}
    named = {one["spec"].get("nodeName", "") for one in there if one["kind"] == "ResourceSlice"}
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": f"node-{name}"},
            "status": {"capacity": amounts, "allocatable": amounts},
        }
        for name in sorted(named - known - {""})
    ]


def asking(*asked: Mapping[str, Any], said: str = NO) -> Shown:
    """A Pod whose claim asks this of the demo's fleet."""
    stage = Stage()
    claim = {**stage.made(), "spec": {"devices": {"requests": list(asked)}}}
    return stage.shows(claim, stage.pod(conditions=[stage.unschedulable(said)]))


def ask(device_class: str, expression: str = "", name: str = "gpu", **more: Any) -> Obj:
    """One request of a claim."""
    selectors = [{"cel": {"expression": expression}}] if expression else []
    exactly = {
        "deviceClassName": device_class,
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": selectors,
        **more,
    }
    return {"name": name, "exactly": exactly}


def changed(kind: str, *, last: bool = False, **spec: Any) -> Callable[[Stage], None]:
    """Changes the spec of all H100 nodes or slices (with `last`, of one)."""

    def change(stage: Stage) -> None:
        prefix = "h100" if kind == "Node" else f"00000-{DRIVER}-h100"
        mine = [
            one
            for one in stage.fleet
            if one["kind"] == kind and one["metadata"]["name"].startswith(prefix)
        ]
        for one in mine[-1:] if last else mine:
            one["spec"].update(copy.deepcopy(spec))

    return change


def tainted(stage: Stage) -> None:
    """Every H100 is taken out of service."""
    for one in stage.fleet:
        if one["kind"] == "ResourceSlice" and "h100" in one["metadata"]["name"]:
            for device in one["spec"]["devices"]:
                device["taints"] = [
                    {"key": "helios.example/broken", "value": "fan", "effect": "NoSchedule"}
                ]


def incomplete(stage: Stage) -> None:
    """Drivers of the H100 machines say that a slice is missing."""
    for one in stage.fleet:
        if one["kind"] == "ResourceSlice" and "h100" in one["metadata"]["name"]:
            one["spec"]["pool"]["resourceSliceCount"] = 2


def without_driver(stage: Stage) -> None:
    """Nobody publishes a device of the class."""
    stage.fleet = [
        one
        for one in stage.fleet
        if one["kind"] != "ResourceSlice" or DRIVER not in one["metadata"]["name"]
    ]


def beside(message: str, **wishes: Any) -> Shown:
    """Devices are free where the Pod itself cannot go."""
    return waits(said=f"0/21 nodes are available: 21 {message}.", **wishes)


MUCH = {
    "containers": [
        {
            "name": "main",
            "resources": {"requests": {"cpu": "4000"}, "claims": [{"name": "devices"}]},
        }
    ]
}
KEPT = [{"key": "helios.example/reserved", "value": "night", "effect": "NoSchedule"}]

SCENES: dict[str, Scene] = {
    "NO_MATCHING_DEVICE_FREE": partial(waits, others=taken(1, 2, 3, 4)),
    "NOT_ENOUGH_ON_ONE_NODE": partial(
        waits, {"memory": "80-nvlink", "gpus": 8}, taken(1, 2, 3, 4, devices=4)
    ),
    "MORE_THAN_ANY_NODE_HAS": partial(waits, {"memory": "80", "gpus": 5}),
    "DEVICE_TAINTED": partial(waits, change=tainted),
    "NO_DEVICE_IN_CLASS": partial(waits, change=without_driver),
    "NODE_NOT_SELECTED": partial(
        beside,
        "node(s) didn't match Pod's node affinity/selector",
        spec={"nodeSelector": {"helios.example/pool": "base"}},
    ),
    "NODE_CLOSED": partial(
        beside, "node(s) were unschedulable", change=changed("Node", unschedulable=True)
    ),
    "NODE_TAINTED": partial(
        beside,
        "node(s) had untolerated taint {helios.example/reserved: night}",
        change=changed("Node", taints=KEPT),
    ),
    "NODE_RESOURCES_SHORT": partial(beside, "Insufficient cpu", spec=MUCH),
    "NO_DEVICE_MATCHES_SELECTOR": partial(of_case, "01", "big-memory"),
    "TOO_FEW_MATCH": partial(of_case, "05", "three"),
    "COUNTERS_TAKEN": partial(of_case, "07", "full-gpu"),
    "CAPACITY_TAKEN": partial(of_case, "10", "twenty-on-numa0"),
    "CAPACITY_NOT_OFFERED": partial(of_case, "19", "five-slots"),
    "CONSTRAINT_NOT_SATISFIED": partial(
        of_case,
        "26",
        "aligned",
        said="0/2 nodes are available: 2 cannot add device gpu-0 because a claim constraint would"
        " not be satisfied.",
    ),
    "ATTRIBUTE_UNSUPPORTED": partial(of_case, "27", "numa0", release="v1.36.3"),
    "SELECTOR_NO_SUCH_KEY": partial(
        of_case,
        "02",
        "ats",
        said="claim train: selector #0 on device gpu.nvidia.com/node-b1/gpu-0: CEL runtime error:"
        " no such key: addressingMode",
    ),
    "POOL_INCOMPLETE": partial(
        of_case,
        "04",
        "all-of-them",
        said="claim train, request r: asks for all devices, but resource pool"
        " gpu.example.com/node-c1 is currently being updated",
    ),
    "POOL_INVALID": partial(
        of_case,
        "06",
        requests=[
            {
                "name": "gpu",
                "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"},
            }
        ],
        said="claim train, request gpu: asks for all devices, but resource pool"
        " gpu.nvidia.com/node-e1 is currently invalid",
    ),
    "NOT_TOGETHER_ON_ONE_NODE": partial(
        of_case,
        "47",
        requests=[ask("gpu.example.com"), ask("nic.example.com", name="nic")],
    ),
    "SELECTOR_FAILS": partial(
        asking,
        ask("h100-80gb", 'device.attributes["gpu.helios.example"].productName > 80'),
        said=f"claim train: selector #0 on device {DRIVER}/h100-a01/gpu-0: CEL runtime error: no"
        " such overload",
    ),
    "SELECTOR_NOT_MODELLED": partial(
        asking,
        ask("h100-80gb", 'google.protobuf.Duration{seconds: 3} == duration("3s")'),
    ),
    "REQUEST_UNSUPPORTED": partial(asking, ask("h100-80gb", allocationMode="Most")),
    "ALL_DEVICES_NOT_FREE": partial(of_case, "23", "whole-node", without=("v1", "v4")),
}
