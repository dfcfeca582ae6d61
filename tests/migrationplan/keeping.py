"""A node pool with one node on DRA in the mirror, a Pod with a device on it, and people."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from devices.models import NodePool
from migrationplan.models import Move, MoveEvent
from tenants.access import PlatformAccess, platform_of
from tenants.models import PlatformRole
from tests.factories import NOON, make_person

Obj = dict[str, Any]
GPU, DRIVER, CLASS = "a.example/gpu", "gpu.a.example", "a-gpu"
RUNS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def on_platform(name: str, role: str) -> PlatformAccess:
    user = make_person(name)
    PlatformRole.objects.create(user=user, role=role)
    return platform_of(user)


def a_pool(by: PlatformAccess, **changed: Any) -> NodePool:
    return NodePool.objects.create(
        **{
            "slug": "a",
            "name": "Alpha",
            "selector": {"pool": "a"},
            "resource": GPU,
            "driver": DRIVER,
            "device_class": CLASS,
            "plugin_label": "a.example/plugin=on",
            "driver_label": "a.example/driver=on",
            "plugin_sets": ["gpu/plugin"],
            "driver_sets": ["gpu/driver"],
            "devices_per_node": 2,
            "made_by": by.user.person,
            "made_at": NOON,
            **changed,
        }
    )


def a_node(*, ready: bool = True) -> Obj:
    amounts = {GPU: "0", "cpu": "8", "memory": "32Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1", "uid": "u-n1", "labels": {"pool": "a"}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    }


def a_slice(generation: int = 2, name: str = "s1") -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name, "uid": f"u-{name}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": generation, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
        },
    }


def a_class() -> Obj:
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": CLASS, "uid": "u-class"},
        "spec": {"selectors": [selector]},
    }


def a_claim(name: str, device: str = "gpu-0", *, pod: str = "", namespace: str = "team") -> Obj:
    """Allocated; reserved for a Pod where one is named."""
    result = {"request": "r", "driver": DRIVER, "pool": "n1", "device": device}
    here = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    selector = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    reserved = [{"resource": "pods", "name": pod, "uid": f"u-{pod}"}] if pod else []
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"u-claim-{name}"},
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": CLASS}}]}},
        "status": {
            "allocation": {"devices": {"results": [result]}, "nodeSelector": selector},
            "reservedFor": reserved,
        },
    }


def a_pod(name: str, claim: str, **spec: Any) -> Obj:
    started = {"running": {"startedAt": "2026-11-02T11:00:00Z"}}
    env = [{"name": "TOKEN", "value": "very secret"}]
    container = {"name": "main", "resources": {"claims": [{"name": "gpu"}]}, "env": env}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"u-{name}",
            **spec.pop("metadata", {}),
        },
        "spec": {
            "nodeName": "n1",
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
            "containers": [container],
            **spec,
        },
        "status": {**RUNS, "containerStatuses": [{"name": "main", "state": started}]},
    }


def a_driver(uid: str = "u-driver", *, ready: bool = True, started: str = "10:00:00") -> Obj:
    """The driver's Pod, of its DaemonSet."""
    ready_is = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": "2026-11-02T10:00:00Z",
    }
    running = {"running": {"startedAt": f"2026-11-02T{started}Z"}}
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "driver", "uid": "u-ds"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"driver-{uid[-3:]}",
            "namespace": "gpu",
            "uid": uid,
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "driver"}]},
        "status": {
            "phase": "Running",
            "conditions": [ready_is],
            "containerStatuses": [{"name": "driver", "state": running}],
        },
    }


def an_event(about: str, reason: str) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{about}.{reason.lower()}", "namespace": "team", "uid": f"e-{about}"},
        "involvedObject": {"kind": "Pod", "name": "train", "namespace": "team", "uid": about},
        "reason": reason,
        "message": "words that the cluster forgets",
        "type": "Normal",
        "lastTimestamp": "2026-11-02T11:59:00Z",
    }


def a_world() -> list[Obj]:
    return [
        a_node(), a_class(), a_slice(), a_driver(), a_claim("c1", pod="train"),
        a_pod("train", "c1"), an_event("u-train", "Started"),
    ]  # fmt: skip


def a_move(pool: NodePool, by: PlatformAccess, **changed: Any) -> Move:
    now = timezone.now()
    move = Move.objects.create(
        **{
            "pool": pool, "node": "n1", "node_uid": "u-n1", "direction": "to the plugin",
            "since": now, "begun_by": by.user.person, "begun_at": now, "request_id": "request-e",
            **changed,
        }
    )  # fmt: skip
    MoveEvent.objects.create(
        move=move, at=now, step="quiescing", direction=move.direction, text="Begun."
    )
    return move
