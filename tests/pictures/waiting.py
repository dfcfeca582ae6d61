"""Scenes of Pods that wait for their devices or are kept from starting: a code and its objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from devices.dra.lifecycle import State
from tests.pictures.stage import DRIVER, GENERATED, NAMESPACE, NODE, Shown, Stage, taken

Scene = Callable[[], Shown]
ONE = [(DRIVER, NODE, "gpu-0")]
PREPARE = "Failed to prepare dynamic resources: "
CLAIM = f"ResourceClaim {GENERATED}"
REFUSED = f"{PREPARE}NodePrepareResources failed for {CLAIM}: "

#: What kube-scheduler says of all nodes.
SCHEDULER = {
    "CLAIM_IN_USE": "resourceclaim in use",
    "CLAIM_ELSEWHERE": "resourceclaim not available on the node",
    "CLAIM_BEING_ALLOCATED": f"resource claim {NAMESPACE}/{GENERATED} is in the process of being"
    " allocated",
    "TOO_MANY_DEVICES": f"claim {GENERATED}: number of requested devices 33 exceeds the claim"
    " limit of 32",
    "ALLOCATION_TIMED_OUT": f"node {NODE}: timed out trying to allocate devices",
    "SELECTOR_INVALID": "class h100-80gb: selector #0: CEL compile error: undeclared reference to"
    " 'devise'",
    "FEATURE_OFF": f"claim {GENERATED}, request gpu: has capacity requests, but the"
    " DRAConsumableCapacity feature is disabled",
    "EXTENDED_RESOURCE_SHORT": "Insufficient helios.example/gpu, cannot schedule extended"
    " resource claim",
    "CLAIM_NOT_SHAREABLE": f"node allocatable resource claim {GENERATED} is already used by"
    " another pod",
    "CLAIM_NOT_REFERENCED": f"claim {GENERATED}: node-allocatable resource claim not referenced"
    " by any container within the pod",
    "POD_BUDGET_TOO_SMALL": "pod level request for cpu is insufficient to cover the aggregated"
    " container and node-allocatable DRA requests",
    "SCHEDULER_FREED_CLAIM": "deallocation of ResourceClaim completed",
    "ALLOCATION_RACE": f"claim {GENERATED} got allocated elsewhere in the meantime",
    "SCHEDULER_FORBIDDEN": f'add reservation to claim {GENERATED}: resourceclaims "{GENERATED}"'
    " is forbidden: changing status.allocation or status.reservedFor requires"
    ' resource="resourceclaims/binding"',
    "SCHEDULER_ERROR": 'running Score plugins: plugin "DynamicResources" failed with: number of'
    " allocations 1 is smaller than number of claims 2",
    "BINDING_TIMED_OUT": f"device binding timeout: claim={GENERATED}",
    "UNMAPPED_MESSAGE": "the tide is out",
}

#: What the claim controller says when it cannot make a Pod's claim.
CONTROLLER = {
    "TEMPLATE_MISSING": 'resource claim template "gone": resourceclaimtemplate.resource.k8s.io'
    ' "gone" not found',
    "QUOTA_EXCEEDED": "create ResourceClaim : exceeded quota: berth, requested:"
    " h100-80gb.deviceclass.resource.k8s.io/devices=1, used: h100-80gb.deviceclass.resource.k8s"
    ".io/devices=4, limited: h100-80gb.deviceclass.resource.k8s.io/devices=4",
    "QUOTA_TOO_SMALL": "create ResourceClaim : exceeded quota: berth, requested:"
    " h100-80gb.deviceclass.resource.k8s.io/devices=8, used: h100-80gb.deviceclass.resource.k8s"
    ".io/devices=0, limited: h100-80gb.deviceclass.resource.k8s.io/devices=4",
    "ADMIN_ACCESS_DENIED": "create ResourceClaim : admin access to devices requires the"
    " `resource.kubernetes.io/admin-access: true` label on the containing namespace",
    "CLAIM_INVALID": 'create ResourceClaim : ResourceClaim "train" is invalid: spec.devices: Too'
    " many: 33: must have at most 32 items",
    "CLAIM_CREATION_FAILED": "create ResourceClaim : the tide is out",
    "REFUSED_BY_CLUSTER": "create ResourceClaim : resourceclaims.resource.k8s.io is forbidden:"
    " ValidatingAdmissionPolicy 'berth-classes' with binding 'berth-classes' denied request: not"
    " allowed here",
}

#: What the kubelet says about devices that it cannot get ready.
KUBELET = {
    "PREPARE_DRIVER_UNREACHABLE": f"{PREPARE}DRA driver {DRIVER} is not registered",
    "PREPARE_CALL_FAILED": f"{PREPARE}NodePrepareResources: rpc error: code = DeadlineExceeded"
    " desc = context deadline exceeded",
    "PREPARE_CONFIG_REFUSED": f'{REFUSED}error decoding config: unknown field "sharng"',
    "PREPARE_ALREADY_IN_USE": f"{REFUSED}requested device gpu-0 is already allocated to different"
    " claim 4c7e",
    "PREPARE_DEVICE_FAULT": f"{REFUSED}getting device handle from UUID GPU-7f: Not Found",
    "PREPARE_FAILED": f"{REFUSED}the tide is out",
    "PREPARE_CLAIM_UNREADABLE": f"{PREPARE}fetch {CLAIM}: the server is currently unable to"
    " handle the request",
    "PREPARE_NOT_RESERVED": f"{PREPARE}pod train-pod (pod-1) is not allowed to use {CLAIM}"
    " (claim-1)",
    "PREPARE_LEFTOVER": f"{PREPARE}old ResourceClaim with same name {GENERATED} and different UID"
    " 9f still exists (previous pod force-deleted?!)",
    "PREPARE_BEING_UNPREPARED": f"{PREPARE}{CLAIM} is being unprepared",
    "PREPARE_DRIVER_SKIPPED": f"{PREPARE}NodePrepareResources skipped 1 ResourceClaims",
    "NODE_STATE_BROKEN": f"{PREPARE}checkpoint ResourceClaim cache: no space left on device",
}


def by_scheduler(message: str) -> Shown:
    stage = Stage()
    said = f"0/21 nodes are available: 21 {message}."
    return stage.shows(stage.made(), stage.pod(conditions=[stage.unschedulable(said)]))


def by_controller(message: str) -> Shown:
    stage = Stage()
    event = stage.event(
        "FailedResourceClaimCreation", f"PodResourceClaim devices: {message}", "resource_claim"
    )
    return stage.shows(stage.pod(generated=False), event)


def on_node(message: str = "", **pod: Any) -> Shown:
    """A Pod with its device on its node, and what the kubelet says."""
    stage = Stage()
    bound = stage.condition("PodScheduled", "True")
    conditions = [bound, *pod.pop("conditions", [])]
    objects = [
        stage.made(devices=ONE, **pod.pop("claim", {})),
        stage.pod(node=NODE, conditions=conditions, **pod),
    ]
    if message:
        objects.append(stage.event("FailedPrepareDynamicResources", message))
    return stage.shows(*objects)


def started(waiting: str, message: str) -> Shown:
    """Devices are ready, and the container is not."""
    ready = {"type": "PodReadyToStartContainers", "status": "True"}
    state = {"waiting": {"reason": waiting, "message": message}}
    return on_node(
        conditions=[ready],
        containerStatuses=[{"name": "main", "ready": False, "state": state}],
    )


def not_looked_at() -> Shown:
    stage = Stage()
    return stage.shows(stage.made(), stage.pod(), *taken(1, 2, 3, 4))


def not_generated() -> Shown:
    stage = Stage()
    return stage.shows(stage.pod(generated=False))


def gated() -> Shown:
    stage = Stage()
    gates = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
    gate = stage.unschedulable("Scheduling is blocked due to non-empty scheduling gates")
    return stage.shows(stage.made(), stage.pod(spec=gates, conditions=[gate]))


def deleted_claim() -> Shown:
    stage = Stage(shared=True)
    gone = stage.made(meta={"deletionTimestamp": stage.ago(minutes=1)})
    return stage.shows(gone, stage.pod(), own=True)


def foreign_claim() -> Shown:
    stage = Stage()
    return stage.shows(stage.made(owner="pod-9"), stage.pod())


def claim_missing() -> Shown:
    stage = Stage(shared=True)
    said = f'resourceclaim.resource.k8s.io "{stage.own["metadata"]["name"]}" not found'
    return stage.shows(stage.pod(conditions=[stage.unschedulable(said)]))


def class_missing() -> Shown:
    stage = Stage()
    stage.fleet = [
        one
        for one in stage.fleet
        if (one["kind"], one["metadata"]["name"]) != ("DeviceClass", "h100-80gb")
    ]
    said = "request gpu: device class h100-80gb does not exist"
    said = f"0/21 nodes are available: {said}."
    return stage.shows(stage.made(), stage.pod(conditions=[stage.unschedulable(said)]))


def consumers_full() -> Shown:
    stage = Stage(shared=True)
    users = [{"resource": "pods", "name": f"rank-{n}", "uid": f"u-{n}"} for n in range(256)]
    full = stage.made(devices=ONE, reservedFor=users)
    said = "0/21 nodes are available: 21 resourceclaim in use."
    return stage.shows(full, stage.pod(conditions=[stage.unschedulable(said)]))


def attaching(*, ago: float = 1, failed: bool = False) -> Shown:
    stage = Stage()
    conditions = []
    if failed:
        conditions = [
            stage.condition(
                "FabricDeviceFailed", "True", reason="PortDown", message="fabric port down"
            )
        ]
    result = {
        "request": "gpu",
        "driver": DRIVER,
        "pool": NODE,
        "device": "gpu-0",
        "bindingConditions": ["FabricDeviceReady"],
        "bindingFailureConditions": ["FabricDeviceFailed"],
    }
    device = {"driver": DRIVER, "pool": NODE, "device": "gpu-0", "conditions": conditions}
    claim = stage.made(devices=ONE, devices_status=[device])
    claim["status"]["allocation"]["devices"]["results"] = [result]
    claim["status"]["allocation"]["allocationTimestamp"] = stage.ago(minutes=ago)
    claim["status"]["devices"] = claim["status"].pop("devices_status")
    return stage.shows(claim, stage.pod())


def being_bound() -> Shown:
    stage = Stage()
    return stage.shows(stage.made(devices=ONE), stage.pod())


def not_reserved() -> Shown:
    stage = Stage(shared=True)
    return stage.shows(stage.made(devices=ONE, reserved=False))


def device_not_ready() -> Shown:
    stage = Stage()
    condition = stage.condition("Ready", "False", reason="Cooling", message="card 0 is too hot")
    claim = stage.made(devices=ONE)
    claim["status"]["devices"] = [
        {"driver": DRIVER, "pool": NODE, "device": "gpu-0", "conditions": [condition]}
    ]
    bound = stage.condition("PodScheduled", "True")
    return stage.shows(claim, stage.pod(node=NODE, conditions=[bound]))


def unhealthy() -> Shown:
    told = {
        "name": "claim:devices",
        "resources": [
            {
                "resourceID": f"{DRIVER}/{NODE}/gpu-0",
                "health": "Unhealthy",
                "message": "XID 79: the card has fallen off the bus",
            }
        ],
    }
    return on_node(
        phase="Running",
        containerStatuses=[{"name": "main", "ready": True, "allocatedResourcesStatus": [told]}],
    )


def ending() -> Shown:
    stage = Stage()
    away = stage.event("FailedPrepareDynamicResources", KUBELET["PREPARE_DRIVER_UNREACHABLE"])
    pod = stage.pod(node=NODE, phase="Running", meta={"deletionTimestamp": stage.ago(minutes=3)})
    return stage.shows(stage.made(devices=ONE), pod, away)


def evicted() -> Shown:
    stage = Stage()
    target = stage.condition(
        "DisruptionTarget",
        "True",
        reason="DeletionByDeviceTaintManager",
        message="Device Taint manager: deleting due to NoExecute taint",
    )
    pod = stage.pod(node=NODE, phase="Running", conditions=[target])
    return stage.shows(stage.made(devices=ONE), pod)


def route_changed() -> Shown:
    from devices.routing.paths import ROUTE_CHANGED

    stage = Stage()
    said = "0/21 nodes are available: 21 cannot allocate all claims."
    stage.shows(stage.made(), stage.pod(conditions=[stage.unschedulable(said)]), *taken(1, 2, 3, 4))
    why = "H100, 80 GB goes by device plugin since 09:20: pool h100 is moved."
    return stage.record({"state": State.PENDING, "code": ROUTE_CHANGED, "why": why})


SCENES: dict[str, Scene] = {
    **{code: partial(by_scheduler, text) for code, text in SCHEDULER.items()},
    **{code: partial(by_controller, text) for code, text in CONTROLLER.items()},
    **{code: partial(on_node, text) for code, text in KUBELET.items()},
    "NOT_SCHEDULED_YET": not_looked_at,
    "CLAIM_NOT_GENERATED": not_generated,
    "SCHEDULING_GATED": gated,
    "CLAIM_MISSING": claim_missing,
    "CLAIM_BEING_DELETED": deleted_claim,
    "CLAIM_OF_ANOTHER_POD": foreign_claim,
    "CLASS_MISSING": class_missing,
    "CLAIM_CONSUMERS_FULL": consumers_full,
    "BINDING_PENDING": attaching,
    "BINDING_OVERDUE": partial(attaching, ago=12),
    "BINDING_FAILED": partial(attaching, failed=True),
    "BEING_BOUND": being_bound,
    "NOT_RESERVED": not_reserved,
    "PREPARING": on_node,
    "CDI_DEVICES_MISSING": partial(
        started,
        "CreateContainerError",
        f"failed to inject CDI devices: unresolvable CDI devices {DRIVER}/gpu=gpu-0",
    ),
    "KUBELET_TRAP": partial(
        started,
        "CreateContainerConfigError",
        "endpoint not found in cache for a registered resource: helios.example/gpu",
    ),
    "CONTAINER_NOT_STARTING": partial(
        started, "ImagePullBackOff", 'Back-off pulling image "registry.example/train:3"'
    ),
    "DEVICE_NOT_READY": device_not_ready,
    "DEVICE_UNHEALTHY": unhealthy,
    "UNPREPARE_FAILED": ending,
    "EVICTED_BY_DEVICE_TAINT": evicted,
    "ROUTE_CHANGED": route_changed,
}
