"""Small valid objects for the contract tests, one builder a noun, and waiting for what follows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

Obj = dict[str, Any]
Value = TypeVar("Value")


def until(seen: Callable[[], Value], seconds: float = 15.0) -> Value:
    """What `seen` returns once it is true; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := seen()):
        assert time.monotonic() < end, "not seen in time"
        time.sleep(0.05)
    return found


def a_config_map(name: str, namespace: str, **data: str) -> Obj:
    return {"kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def a_claim(name: str, namespace: str, *, device_class: str = "gpu", count: int = 1) -> Obj:
    exactly = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"devices": {"requests": [{"name": "r0", "exactly": exactly}]}},
    }


def a_class(name: str, *, driver: str = "gpu.example.com") -> Obj:
    return {
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
    }


def a_slice(name: str, *, node: str, driver: str = "gpu.example.com", devices: int = 1) -> Obj:
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        },
    }


def a_node(name: str, *, labels: dict[str, str] | None = None) -> Obj:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels or {}}}


def a_pod(name: str, namespace: str, *, claim: str = "", node: str = "") -> Obj:
    """A Pod of one container; it uses `claim`, and is put on `node` past the scheduler."""
    container: Obj = {"name": "main", "image": "example.com/none"}
    spec: Obj = {"containers": [container], "terminationGracePeriodSeconds": 0}
    if claim:
        container["resources"] = {"claims": [{"name": "devices"}]}
        spec["resourceClaims"] = [{"name": "devices", "resourceClaimName": claim}]
    if node:
        spec["nodeName"] = node
    return {"kind": "Pod", "metadata": {"name": name, "namespace": namespace}, "spec": spec}
