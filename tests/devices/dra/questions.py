"""Builders of small clusters: holders and their Pods, and random ones with a claim to ask about."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from devices.dra.claims import read_claim_spec
from devices.dra.requests import Wish


def one_device() -> list[dict[str, Any]]:
    """The class c, and node n on which driver d publishes x0."""
    return [
        {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d",
                "nodeName": "n",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "x0"}],
            },
        },
    ]


def a_spec(count: int, *selectors: str, alike: bool = False) -> Any:
    exactly = {
        "deviceClassName": "c",
        "count": count,
        "selectors": [{"cel": {"expression": text}} for text in selectors],
    }
    constraints = [{"matchAttribute": "d/rack"}] if alike else []
    devices = {"requests": [{"name": "r", "exactly": exactly}], "constraints": constraints}
    return read_claim_spec({"devices": devices}, "spec", [])


@st.composite
def nodes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The nodes themselves with labels, and perhaps devices that are chosen by labels."""
    made: list[dict[str, Any]] = [
        {
            "kind": "Node",
            "metadata": {"name": f"n{number}", "labels": {"zone": draw(st.sampled_from("ab"))}},
        }
        for number in range(draw(st.integers(0, 3)))
    ]
    if draw(st.booleans()):
        expressions = draw(
            st.lists(
                st.sampled_from(
                    [
                        {"key": "zone", "operator": "In", "values": ["c"]},
                        {"key": "fabric", "operator": "Exists"},
                        {"key": "zone", "operator": "NotIn", "values": ["a"]},
                        {"key": "rank", "operator": "Gt", "values": ["3"]},
                    ]
                ),
                min_size=1,
                max_size=2,
            )
        )
        attributes = {"size": {"int": 3}, "rack": {"string": "a"}}
        spec = {
            "driver": "d",
            "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": expressions}]},
            "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"f{n}", "attributes": attributes} for n in range(4)],
        }
        made.append({"kind": "ResourceSlice", "metadata": {"name": "fabric"}, "spec": spec})
    return made


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[dict[str, Any]], Wish]:
    """A small cluster with holders, taints and partitions, and a claim that may or may not fit."""
    made: list[dict[str, Any]] = [
        {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        {
            "kind": "DeviceClass",
            "metadata": {"name": "big"},
            "spec": {"selectors": [{"cel": {"expression": 'device.attributes["d"].size > 1'}}]},
        },
    ]
    for number in range(draw(st.integers(1, 3))):
        node = f"n{number}"
        devices = []
        for index in range(draw(st.integers(1, 4))):
            device: dict[str, Any] = {
                "name": f"x{index}",
                "attributes": {
                    "size": {"int": draw(st.integers(1, 3))},
                    "rack": {"string": draw(st.sampled_from(["a", "b"]))},
                },
            }
            if draw(st.integers(0, 5)) == 0:
                device["taints"] = [{"key": "t", "value": "v", "effect": "NoSchedule"}]
            devices.append(device)
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": devices}
        made.append({"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec})
        for index in range(len(devices)):
            if draw(st.booleans()):
                result = {"request": "r", "driver": "d", "pool": node, "device": f"x{index}"}
                made.append(
                    {
                        "kind": "ResourceClaim",
                        "metadata": {"name": f"{node}-{index}", "namespace": "ns"},
                        "spec": {},
                        "status": {"allocation": {"devices": {"results": [result]}}},
                    }
                )
    made += draw(nodes())
    selectors = draw(
        st.lists(
            st.sampled_from(
                [
                    'device.attributes["d"].size >= 2',
                    'device.attributes["d"].size == 3 && true',
                    'device.attributes["d"].size > 4 && device.attributes["d"].rack == "a"',
                ]
            ),
            max_size=2,
        )
    )
    spec = a_spec(draw(st.integers(1, 5)), *selectors, alike=draw(st.booleans()))
    return made, Wish("ns/wish", spec)


def a_pod(name: str, priority: int, *, retryable: bool = False, hour: int = 11) -> dict[str, Any]:
    labels = {"berth.dev/retryable": "true"} if retryable else {}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": labels},
        "spec": {"priority": priority, "terminationGracePeriodSeconds": 60, "nodeName": "n"},
        "status": {"phase": "Running", "startTime": f"2026-06-01T{hour:02}:00:00Z"},
    }


def held(device: str, *pods: str, node: str = "n") -> dict[str, Any]:
    result = {"request": "r", "driver": "d", "pool": node, "device": device}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": f"c-{device}", "namespace": "ns"},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": pod} for pod in pods],
        },
    }
