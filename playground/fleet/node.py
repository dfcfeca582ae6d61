"""A Node object, its status and its lease, as a kubelet writes them. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from playground.fleet.clock import micro_stamp, stamp
from playground.fleet.spec import NodeGroup

Obj = dict[str, Any]

ADDRESS = "127.0.0.1"
LEASE_NAMESPACE = "kube-node-lease"

DEFAULT_CAPACITY = {
    "cpu": "64",
    "memory": "512Gi",
    "ephemeral-storage": "1Ti",
    "pods": "110",
}

_PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


def node_object(group: NodeGroup, name: str, *, release: str, moment: datetime) -> Obj:
    """The Node as the kubelet registers it."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
        **group.labels,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": group.taints} if group.taints else {},
        "status": {
            **amounts(group, {}),
            **status(group, name, release=release, moment=moment, known=[]),
        },
    }


def amounts(group: NodeGroup, plugins: Mapping[str, tuple[int, int]]) -> Obj:
    """Capacity and allocatable; `plugins` by resource: capacity and allocatable."""
    capacity = {**DEFAULT_CAPACITY, **group.capacity}
    return {
        "capacity": capacity | {name: str(total) for name, (total, _) in plugins.items()},
        "allocatable": capacity
        | group.allocatable
        | {name: str(free) for name, (_, free) in plugins.items()},
    }


def status(group: NodeGroup, name: str, *, release: str, moment: datetime, known: list[Obj]) -> Obj:
    """Everything else in Node status; `known` are the conditions as stored."""
    return {
        "addresses": [
            {"type": "InternalIP", "address": ADDRESS},
            {"type": "Hostname", "address": name},
        ],
        "conditions": conditions(known, moment),
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": uuid.uuid5(uuid.NAMESPACE_DNS, name).hex,
            "systemUUID": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"system/{name}")),
            "bootID": str(uuid.uuid5(uuid.NAMESPACE_DNS, f"boot/{name}")),
            "kernelVersion": "6.1.0-playground",
            "osImage": "Playground Linux",
            "containerRuntimeVersion": "playground://1.0.0",
            "kubeletVersion": f"v{release}",
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
        # Known from 1.36 on; features that older servers do not serve are not declared to them.
        "declaredFeatures": sorted(group.declared_features),
    }


def conditions(known: list[Obj], moment: datetime) -> list[Obj]:
    """All well: the kubelet's four conditions, the time of change kept where nothing changed."""
    wanted = {kind: ("False", *words) for kind, words in _PRESSURES.items()}
    wanted["Ready"] = ("True", "KubeletReady", "kubelet is posting ready status")
    before = {one["type"]: one for one in known}
    text = stamp(moment)
    return [
        {
            "type": kind,
            "status": value,
            "lastHeartbeatTime": text,
            "lastTransitionTime": before[kind]["lastTransitionTime"]
            if kind in before and before[kind]["status"] == value
            else text,
            "reason": reason,
            "message": message,
        }
        for kind, (value, reason, message) in wanted.items()
    ]


def ready(node: Obj) -> bool:
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in node.get("status", {}).get("conditions", ())
    )


def lease(node: Obj, *, heartbeat: float, moment: datetime) -> Obj:
    """The Lease by which the node lifecycle controller sees that the kubelet lives."""
    metadata = node["metadata"]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": metadata["name"],
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                }
            ],
        },
        "spec": {
            "holderIdentity": metadata["name"],
            "leaseDurationSeconds": max(1, round(heartbeat * 4)),
            "renewTime": micro_stamp(moment),
        },
    }
