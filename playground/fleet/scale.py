"""A cluster of any size, written straight into the API server: for measuring, not for living.

No kubelet, scheduler or controller has a part in it: allocations and Pod statuses are written as
those would have left them. Load it with scheduler and controller-manager stopped, else they undo
what they did not do themselves.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from devices.cluster.gateway import Conflict, Gateway
from playground.fleet.clock import now, stamp
from playground.fleet.node import node_object
from playground.fleet.spec import NodeGroup

Obj = dict[str, Any]
Tell = Callable[[str, int, float], None]
"""Called after each step: what was written, how many, in how many seconds."""

DRIVER = "gpu.scale.example"
DEVICE_CLASS = "scale-gpu"
PER_SLICE = 64


@dataclass(frozen=True, slots=True)
class Size:
    """How much to write. `used` is the share of the devices that is allocated, one per claim.

    Pod n uses claim n; claims beyond the devices stay pending, and so do their Pods.
    """

    nodes: int = 5_000
    devices_per_node: int = 8
    claims: int = 50_000
    pods: int = 50_000
    namespaces: int = 50
    used: float = 0.9

    @property
    def allocated(self) -> int:
        return min(self.claims, self.pods, int(self.nodes * self.devices_per_node * self.used))

    def node(self, claim: int) -> str:
        return f"scale-{claim // self.devices_per_node:05}"

    def namespace(self, number: int) -> str:
        return f"scale-{number % self.namespaces:03}"


FULL = Size()


def load(
    gateway: Gateway, size: Size, *, release: str, connections: int = 12, tell: Tell | None = None
) -> float:
    """Writes everything; returns the seconds it took. What is there already is left as it is."""
    began = time.monotonic()
    steps: list[tuple[str, int, Callable[[int], object]]] = [
        ("namespaces", size.namespaces, lambda n: [create(gateway, one) for one in space(size, n)]),
        ("nodes", size.nodes, lambda n: create(gateway, node_body(n, release))),
        ("slices", size.nodes, lambda n: [create(gateway, one) for one in slice_bodies(size, n)]),
        ("Pods and claims", max(size.pods, size.claims), lambda n: _work(gateway, size, n)),
    ]
    create(gateway, device_class())
    with ThreadPoolExecutor(connections) as pool:
        for name, count, step in steps:
            start = time.monotonic()
            _share(pool, connections, step, range(count))
            if tell is not None:
                tell(name, count, time.monotonic() - start)
    return time.monotonic() - began


def _work(gateway: Gateway, size: Size, number: int) -> None:
    """Pod and claim of one number with their statuses; the claim's names the Pod's uid.

    Statuses are put, not patched, for the API server's sake: that is a fifth cheaper.
    """
    taken, uid = number < size.allocated, ""
    if number < size.pods and (pod := create(gateway, pod_object(size, number))):
        uid = pod["metadata"]["uid"]
        if taken:
            status = {**pod["status"], **running(size, number)}
            gateway.replace({**pod, "status": status}, subresource="status")
    claim = create(gateway, claim_object(size, number)) if number < size.claims else None
    if claim and taken and uid:
        status = allocation(size, number, uid)
        gateway.replace({**claim, "status": status}, subresource="status")


def _share(
    pool: ThreadPoolExecutor, workers: int, step: Callable[[int], object], numbers: Iterable[int]
) -> None:
    """Lets every worker take the next number until there is none; raises what one of them met."""
    left = iter(numbers)
    lock = threading.Lock()

    def next_number() -> int | None:
        with lock:
            return next(left, None)

    def work() -> None:
        while (number := next_number()) is not None:
            step(number)

    for future in [pool.submit(work) for _ in range(workers)]:
        future.result()


def create(gateway: Gateway, obj: Obj) -> Obj | None:
    """The object as made, or None where it is there already."""
    try:
        return gateway.create(obj)
    except Conflict:
        return None


# The objects


def device_class() -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": DEVICE_CLASS},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }


def space(size: Size, number: int) -> Iterator[Obj]:
    """A namespace with the account that Pods need; nobody else makes it here."""
    name = size.namespace(number)
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": name},
    }


def node_body(number: int, release: str) -> Obj:
    name = f"scale-{number:05}"
    group = NodeGroup(
        name="scale",
        count=1,
        node=name,
        labels={"scale.example/rack": f"rack-{number // 40:03}"},
        capacity={"cpu": "128", "memory": "1Ti"},
    )
    return node_object(group, name, release=release, moment=now())


def slice_bodies(size: Size, number: int) -> Iterator[Obj]:
    name = f"scale-{number:05}"
    devices = [_device(name, index) for index in range(size.devices_per_node)]
    parts = [devices[i : i + PER_SLICE] for i in range(0, len(devices), PER_SLICE)]
    for index, part in enumerate(parts):
        yield {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{index:05x}-{DRIVER}-{name}"},
            "spec": {
                "driver": DRIVER,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": len(parts)},
                "devices": part,
            },
        }


def _device(node: str, index: int) -> Obj:
    return {
        "name": f"gpu-{index}",
        "attributes": {
            "type": {"string": "gpu"},
            "productName": {"string": "Scale 80GB"},
            "uuid": {"string": f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{node}/{index}')}"},
            "driverVersion": {"version": "1.0.0"},
            "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index // 2:02x}"},
            "resource.kubernetes.io/numaNode": {"int": index // 4},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }


def claim_object(size: Size, number: int) -> Obj:
    request = {"name": "gpu", "exactly": {"deviceClassName": DEVICE_CLASS, "count": 1}}
    taken = number < size.allocated
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {
            "name": f"claim-{number:06}",
            "namespace": size.namespace(number),
            "finalizers": ["resource.kubernetes.io/delete-protection"] if taken else [],
        },
        "spec": {"devices": {"requests": [request]}},
    }


def pod_object(size: Size, number: int) -> Obj:
    uses = number < size.claims
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number:06}",
            "namespace": size.namespace(number),
            "labels": {"app": f"app-{number % 200:03}"},
        },
        "spec": {
            "automountServiceAccountToken": False,
            **({"nodeName": size.node(number)} if number < size.allocated else {}),
            "containers": [
                {
                    "name": "main",
                    "image": "scale/main:1",
                    "resources": {
                        "requests": {"cpu": "2", "memory": "8Gi"},
                        **({"claims": [{"name": "gpu"}]} if uses else {}),
                    },
                }
            ],
            **(
                {"resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{number:06}"}]}
                if uses
                else {}
            ),
        },
    }


def allocation(size: Size, number: int, pod_uid: str) -> Obj:
    """A claim's status as the scheduler leaves it."""
    node = size.node(number)
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": node,
        "device": f"gpu-{number % size.devices_per_node}",
    }
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        },
        "reservedFor": [{"resource": "pods", "name": f"pod-{number:06}", "uid": pod_uid}],
    }


def running(size: Size, number: int) -> Obj:
    """A Pod's status as the kubelet leaves it, cut to what people look at."""
    moment = stamp(now())
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": moment}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "PodScheduled")
    ]
    return {
        "phase": "Running",
        "startTime": moment,
        "conditions": conditions,
        "containerStatuses": [
            {
                "name": "main",
                "image": "scale/main:1",
                "imageID": "",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "state": {"running": {"startedAt": moment}},
            }
        ],
    }
