"""One node with a plugin or a driver as raw objects, to be changed by a test and then looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from devices.dra.conversion import DaemonSet, Look, NodeReport, Place, Proof
from devices.dra.snapshot import CLAIM, NODE, POD, SLICE, read

Obj = dict[str, Any]

NOW = datetime(2026, 11, 30, 8, 0, tzinfo=UTC)
RESOURCE = "example.com/gpu"
DRIVER = "gpu.example.com"
PLUGIN_SET = DaemonSet("vendor", "gpu-plugin")
DRIVER_SET = DaemonSet("vendor", "gpu-driver")
PLACE = Place(
    node="n",
    uid="n-1",
    resource=RESOURCE,
    driver=DRIVER,
    plugin_sets=(PLUGIN_SET,),
    driver_sets=(DRIVER_SET,),
    offered=2,
    hardware=2,
)
ALL = (NODE, POD, CLAIM, SLICE)


def ago(**times: float) -> datetime:
    return NOW - timedelta(**times)


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def a_node(
    allocatable: str | None = "0",
    capacity: str | None = None,
    *,
    ready: str = "True",
    taints: Iterable[str] = (),
    uid: str = "n-1",
) -> Obj:
    """`taints` as ``key:Effect``; None: the node lacks the resource's key."""
    amounts = {"cpu": "8"}
    shown = allocatable if capacity is None else capacity
    return {
        "kind": "Node",
        "metadata": {"name": "n", "uid": uid},
        "spec": {
            "taints": [
                {"key": key, "effect": effect}
                for key, _, effect in (taint.partition(":") for taint in taints)
            ]
        },
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "allocatable": amounts | ({} if allocatable is None else {RESOURCE: allocatable}),
            "capacity": amounts | ({} if shown is None else {RESOURCE: shown}),
        },
    }


def a_pod(
    name: str,
    *,
    node: str = "n",
    phase: str = "Running",
    limits: Mapping[str, str] | None = None,
    claim: str = "",
    extended: str = "",
    devices: Iterable[str] = (),
    deleted: bool = False,
    started: datetime | None = None,
    waiting: tuple[str, str] | None = None,
    init: bool = False,
    owner: str = "",
    namespace: str = "team",
    tolerates: Iterable[str] = (),
    pinned: bool = False,
    unplaced: str = "",
    said: Obj | None = None,
) -> Obj:
    """A Pod with one container ``main``.

    `extended`: the claim that the scheduler made for its limits; `devices`: ids of the plugin's;
    `owner`: the DaemonSet; `unplaced`: the scheduler's words; `said`: how its container ended.
    """
    container: Obj = {"name": "main", "resources": {"limits": dict(limits or {})}}
    plain: Obj = {"name": "plain"}
    state: Obj = {"running": {"startedAt": stamp(started or ago(minutes=1))}}
    if waiting:
        state = {"waiting": {"reason": waiting[0], "message": waiting[1]}}
    if said is not None:
        state = {"terminated": said}
    status: Obj = {"phase": phase}
    if node:
        told: Obj = {"name": "main", "state": state}
        if devices:
            health = [{"resourceID": each, "health": "Healthy"} for each in devices]
            told["allocatedResourcesStatus"] = [{"name": RESOURCE, "resources": health}]
        status["initContainerStatuses" if init else "containerStatuses"] = [told]
    if extended:
        status["extendedResourceClaimStatus"] = {
            "resourceClaimName": extended,
            "requestMappings": [
                {"containerName": "main", "requestName": "r", "resourceName": RESOURCE}
            ],
        }
    if unplaced:
        condition = {"type": "PodScheduled", "status": "False", "message": unplaced}
        status["conditions"] = [condition]
    metadata: Obj = {"name": name, "namespace": namespace, "uid": f"pod-{namespace}-{name}"}
    if deleted:
        metadata["deletionTimestamp"] = stamp(ago(seconds=5))
    if owner:
        metadata["ownerReferences"] = [
            {"kind": "DaemonSet", "name": owner, "uid": owner, "controller": True}
        ]
    spec: Obj = {"containers": [plain] if init else [container]}
    if init:
        spec["initContainers"] = [container]
    if node:
        spec["nodeName"] = node
    if claim:
        spec["resourceClaims"] = [{"name": "c", "resourceClaimName": claim}]
    spec["tolerations"] = [{"key": key, "operator": "Exists"} for key in tolerates]
    if pinned:
        spec["nodeSelector"] = {"kubernetes.io/hostname": "n"}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def a_daemon(owner: str, **options: Any) -> Obj:
    return a_pod(f"{owner}-x", namespace="vendor", owner=owner, **options)


def a_slice(
    devices: int = 2, *, node: str = "n", pool: str = "", driver: str = DRIVER, **pool_fields: Any
) -> Obj:
    named = pool or node
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": f"{named}-{pool_fields.get('generation', 1)}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": named, "generation": 1, "resourceSliceCount": 1, **pool_fields},
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        },
    }


def a_claim(
    name: str = "c", *, pool: str = "n", driver: str = DRIVER, pin: str = "", held: bool = True
) -> Obj:
    """`pin`: the one node that its allocation names."""
    result = {"request": "r", "driver": driver, "pool": pool, "device": "gpu-0"}
    allocation: Obj = {"devices": {"results": [result]}}
    if pin:
        field_ = {"key": "metadata.name", "operator": "In", "values": [pin]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field_]}]}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team", "uid": name},
        "spec": {},
        "status": {"allocation": allocation} if held else {},
    }


def a_report(
    *,
    began: datetime = NOW,
    kubelet: datetime | None = None,
    devices: Iterable[str] = (),
    claims: Mapping[str, int] | None = None,
    resource: str = RESOURCE,
    omitted: int = 0,
) -> NodeReport:
    """`kubelet`: when it started, by default an hour ago."""
    return NodeReport(
        node="n",
        devices={resource: tuple(devices)},
        omitted=omitted,
        claims_in_use=claims or {},
        kubelet_started=kubelet or ago(hours=1),
        began=began,
        ended=began + timedelta(seconds=1),
    )


@dataclass(frozen=True, slots=True)
class Scene:
    """`missing`: kinds of which no list was heard; `age`: seconds since the lists were true."""

    objects: tuple[Obj, ...] = ()
    missing: tuple[str, ...] = ()
    age: float = 0
    heard: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def look(self) -> Look:
        heard = {kind: ago(seconds=self.age) for kind in ALL if kind not in self.missing}
        return Look(read(self.objects), heard | dict(self.heard))


def scene(*objects: Obj, **options: Any) -> Scene:
    """A node (one that offers nothing, unless one is given) and these objects."""
    given = objects if any(one["kind"] == "Node" for one in objects) else (a_node(), *objects)
    return Scene(given, **options)


def told(proof: Proof) -> tuple[str, str]:
    """What tests compare: the verdict and the reason."""
    return proof.verdict.value, proof.why
