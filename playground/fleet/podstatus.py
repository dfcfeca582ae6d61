"""A Pod's status as the kubelet writes it, from what runs on the machine. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from playground.fleet.clock import stamp
from playground.fleet.runs import Container, Run, Stage

Obj = dict[str, Any]

DeviceHealth = Callable[[Obj], list[Obj]]
"""For a container of a Pod's spec: its `allocatedResourcesStatus`."""

DEADLINE = (
    "DeadlineExceeded",
    "Pod was active on the node longer than the specified deadline",
)


def status_of(
    pod: Obj,
    run: Run,
    *,
    address: str,
    moment: datetime,
    health: DeviceHealth,
    tells_sandbox: bool = True,
) -> Obj:
    """The fields of `status` that the kubelet owns; conditions of others are kept as they are.

    `tells_sandbox`: it says why a Pod has no sandbox, as kubelets do since 1.37.
    """
    spec, old = pod["spec"], pod.get("status", {})
    if run.stage is Stage.REJECTED:
        return {"phase": "Failed", "reason": run.reason, "message": run.message}
    phase = _phase(run)
    started = run.stage in (Stage.STARTED, Stage.ENDED)
    over = phase in ("Succeeded", "Failed")
    statuses = [
        _container(run.containers[body["name"]], body, run, started=started, health=health)
        for body in spec["containers"]
    ]
    ready = started and not over and all(one["ready"] for one in statuses)
    if over:
        why = ("PodCompleted", "") if phase == "Succeeded" else ("PodFailed", "")
    else:
        why = ("ContainersNotReady", _not_ready(statuses))
    sandbox = started and not over and (run.alive or run.stop_at is None)
    conditions = _conditions(
        old.get("conditions", []),
        {
            "PodReadyToStartContainers": (
                sandbox,
                *(("", "") if sandbox or not tells_sandbox else _no_sandbox(run)),
            ),
            "Initialized": (True, "PodCompleted" if phase == "Succeeded" else "", ""),
            "Ready": (ready, *(("", "") if ready else why)),
            "ContainersReady": (ready, *(("", "") if ready else why)),
            "PodScheduled": (True, "", ""),
        },
        stamp(moment),
        pod["metadata"].get("generation", 0),
    )
    requests = _requests(spec) if started else {}
    return {
        "observedGeneration": pod["metadata"].get("generation", 0),
        **({"allocatedResources": requests} if requests else {}),
        "phase": phase,
        **({"reason": run.reason, "message": run.message} if run.reason else {}),
        "conditions": conditions,
        "hostIP": address,
        "hostIPs": [{"ip": address}],
        **({"podIP": address, "podIPs": [{"ip": address}]} if started and not over else {}),
        "startTime": stamp(run.since),
        "containerStatuses": statuses,
    }


def _no_sandbox(run: Run) -> tuple[str, str]:
    """pkg/kubelet/status/generate.go of 1.37: reason and message of PodReadyToStartContainers."""
    was_there = any(one.started for one in run.containers.values())
    return "PodSandboxNotReady", (
        "pod sandbox is not ready" if was_there else "no pod sandbox exists"
    )


def _requests(spec: Obj) -> dict[str, str]:
    """The Pod's requests, which limits stand in for, where one container alone has any."""
    found: list[dict[str, str]] = []
    for body in spec["containers"]:
        resources = body.get("resources", {})
        if wanted := {**resources.get("limits", {}), **resources.get("requests", {})}:
            found.append(wanted)
    return found[0] if len(found) == 1 else {}


def _phase(run: Run) -> str:
    if run.stage is Stage.ENDED:
        failed = run.reason or any(one.exit_code for one in run.containers.values())
        return "Failed" if failed else "Succeeded"
    return "Running" if run.stage is Stage.STARTED else "Pending"


def _container(
    container: Container, body: Obj, run: Run, *, started: bool, health: DeviceHealth
) -> Obj:
    resources = body.get("resources", {})
    allocated = {**resources.get("requests", {})}
    for name, amount in resources.get("limits", {}).items():
        allocated.setdefault(name, amount)
    if container.running:
        state: Obj = {"running": {"startedAt": stamp(container.started or run.since)}}
    elif container.finished and container.name not in run.restart_at:
        state = {"terminated": container.terminated(run.uid)}
    else:
        reason, message = container.waiting
        state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    last = container.last
    if container.finished and container.name in run.restart_at:
        last = container.terminated(run.uid)
    devices = health(body) if started else []
    return {
        "name": container.name,
        "state": state,
        "lastState": {"terminated": last} if last else {},
        "ready": container.running,
        "started": container.running,
        "restartCount": container.restarts,
        "image": container.image,
        "imageID": f"playground://{container.image}" if started else "",
        **({"containerID": container.container_id(run.uid)} if container.started else {}),
        **({"allocatedResources": allocated} if allocated and started else {}),
        **({"allocatedResourcesStatus": devices} if devices else {}),
        **({"resources": resources} if resources and started else {}),
        **({"volumeMounts": _mounts(body)} if body.get("volumeMounts") else {}),
    }


def _mounts(body: Obj) -> list[Obj]:
    """A container's volumes as they were mounted (KEP-3857)."""
    return [
        {
            **{key: one[key] for key in ("name", "mountPath", "readOnly") if key in one},
            **({"recursiveReadOnly": "Disabled"} if one.get("readOnly") else {}),
        }
        for one in body["volumeMounts"]
    ]


def _not_ready(statuses: list[Obj]) -> str:
    names = " ".join(one["name"] for one in statuses if not one["ready"])
    return f"containers with unready status: [{names}]"


def _conditions(
    old: list[Obj], wanted: Mapping[str, tuple[bool, str, str]], moment: str, generation: int
) -> list[Obj]:
    """The kubelet's conditions, then those of others; the time moves only with the status."""
    known = {one["type"]: one for one in old}
    own: list[Obj] = []
    for kind, (true, reason, message) in wanted.items():
        before = known.pop(kind, {})
        status = "True" if true else "False"
        changed = before.get("status") != status
        own.append(
            {
                "type": kind,
                **({"observedGeneration": generation} if generation else {}),
                "status": status,
                "lastProbeTime": None,
                "lastTransitionTime": moment if changed else before["lastTransitionTime"],
                **({"reason": reason} if reason else {}),
                **({"message": message} if message else {}),
            }
        )
    return [*own, *known.values()]


def differs(status: Obj, found: Obj) -> bool:
    """True where writing `status` would change what is stored."""
    return bool(_plain(status) != _plain({key: found.get(key) for key in status}))


def _plain(value: Any) -> Any:
    """Without what the API server adds or leaves out: empty values, observedGeneration."""
    if isinstance(value, dict):
        return {
            key: _plain(entry)
            for key, entry in value.items()
            if key not in ("observedGeneration", "lastProbeTime")
            and entry not in (None, "", {}, [])
        }
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return value or None if value == "" else value
