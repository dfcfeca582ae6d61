"""What runs on a simulated machine: containers of Pods, as the container runtime knows them.

A run outlives the kubelet, as containers do; it is forgotten when its Pod is gone from the API.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from playground.fleet.clock import read, stamp

Obj = dict[str, Any]

PREFIX = "playground.berth.dev/"
RUN_FOR = f"{PREFIX}run-for"  # seconds after which the containers end by themselves
EXIT_CODE = f"{PREFIX}exit-code"
START_AFTER = f"{PREFIX}start-after"  # seconds from prepared to started (an image's pull)
STOP_AFTER = f"{PREFIX}stop-after"  # seconds from SIGTERM to the end, at most the grace period


class Stage(StrEnum):
    """How far a Pod has come on its node."""

    REJECTED = "rejected"
    ADMITTED = "admitted"
    PREPARED = "prepared"
    STARTED = "started"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Container:
    """One container: waiting until `started`, running until `finished`."""

    name: str
    image: str
    started: datetime | None = None
    finished: datetime | None = None
    exit_code: int = 0
    message: str = ""  # its termination message
    restarts: int = 0
    last: Obj | None = None
    waiting: tuple[str, str] = ("ContainerCreating", "")

    @property
    def running(self) -> bool:
        return self.started is not None and self.finished is None

    def start(self, moment: datetime) -> Container:
        """Started for the first time, or again after it ended."""
        if self.finished is None:
            return replace(self, started=moment)
        return replace(
            self,
            started=moment,
            finished=None,
            message="",
            restarts=self.restarts + 1,
            last=self.terminated(),
        )

    def end(self, moment: datetime, exit_code: int, message: str = "") -> Container:
        return replace(self, finished=moment, exit_code=exit_code, message=message)

    def container_id(self, uid: str) -> str:
        seed = f"{uid}/{self.name}/{self.restarts}"
        return f"playground://{hashlib.sha256(seed.encode()).hexdigest()}"

    def terminated(self, uid: str = "") -> Obj:
        """`ContainerStateTerminated` of a container that ended."""
        assert self.started is not None and self.finished is not None
        return {
            "exitCode": self.exit_code,
            "reason": "Completed" if self.exit_code == 0 else "Error",
            **({"message": self.message} if self.message else {}),
            "startedAt": stamp(self.started),
            "finishedAt": stamp(self.finished),
            **({"containerID": self.container_id(uid)} if uid else {}),
        }


@dataclass(slots=True)
class Run:
    """One Pod on its machine. Times are wall clock for what is shown, monotonic for `…_at`."""

    uid: str
    namespace: str
    name: str
    stage: Stage
    since: datetime
    containers: dict[str, Container] = field(default_factory=dict)
    retry_at: float = 0.0
    start_at: float = 0.0
    stop_at: float | None = None
    restart_at: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    message: str = ""
    failure: str = ""
    seen_metadata: Any = None
    held: bool = False  # crashed, and kept from starting again until it is let go

    @property
    def alive(self) -> bool:
        return any(container.running for container in self.containers.values())


def begin(pod: Obj, moment: datetime) -> Run:
    """A Pod that came to its node just now."""
    metadata = pod["metadata"]
    return Run(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        stage=Stage.ADMITTED,
        since=moment,
        containers={
            one["name"]: Container(one["name"], one.get("image", ""))
            for one in pod["spec"]["containers"]
        },
    )


def resume(pod: Obj, moment: datetime) -> Run | None:
    """The run that a Pod's status tells of, or None where nothing was started yet.

    So a fleet that starts again over an old cluster finds its machines as it left them.
    """
    status = pod.get("status", {})
    phase = status.get("phase")
    run = begin(pod, read(status["startTime"]) if "startTime" in status else moment)
    told = {one["name"]: one for one in status.get("containerStatuses", ())}
    for name, container in run.containers.items():
        run.containers[name] = _told(container, told.get(name, {}))
    run.reason, run.message = status.get("reason", ""), status.get("message", "")
    if phase in ("Succeeded", "Failed"):
        run.stage = Stage.ENDED
    elif any(container.started for container in run.containers.values()):
        run.stage = Stage.STARTED
    else:
        return None
    return run


def _told(container: Container, status: Obj) -> Container:
    container = replace(
        container,
        restarts=status.get("restartCount", 0),
        last=status.get("lastState", {}).get("terminated"),
    )
    match status.get("state", {}):
        case {"running": {"startedAt": started}}:
            return replace(container, started=read(started))
        case {"terminated": {"startedAt": started, "finishedAt": finished, **rest}}:
            return replace(
                container,
                started=read(started),
                finished=read(finished),
                exit_code=int(str(rest.get("exitCode", 0))),
                message=str(rest.get("message", "")),
            )
        case {"waiting": dict()} if container.last:
            # Ended, and waiting for its next start.
            return replace(
                container,
                restarts=container.restarts,
                started=read(container.last["startedAt"]),
                finished=read(container.last["finishedAt"]),
                exit_code=container.last.get("exitCode", 0),
            )
    return container


def seconds(pod: Obj, key: str, default: float) -> float:
    """A number of seconds from an annotation ("30" or "30s")."""
    text = pod["metadata"].get("annotations", {}).get(key, "").removesuffix("s")
    try:
        return float(text)
    except ValueError:
        return default


def ends_at(pod: Obj, container: Container) -> tuple[datetime, int] | None:
    """When a running container ends by itself, and with which exit code; None: it runs on.

    From the annotation `run-for`, or the command `sleep SECONDS` (also as `sh -c "sleep 30"`).
    """
    if container.started is None:
        return None
    annotations = pod["metadata"].get("annotations", {})
    code = int(annotations.get(EXIT_CODE, "0"))
    if RUN_FOR in annotations:
        return container.started + timedelta(seconds=seconds(pod, RUN_FOR, 0)), code
    body = next(one for one in pod["spec"]["containers"] if one["name"] == container.name)
    words = " ".join([*body.get("command", []), *body.get("args", [])]).split()
    match words[-2:]:
        case ["sleep", length] if length.removesuffix("s").isdigit():
            return container.started + timedelta(seconds=int(length.removesuffix("s"))), code
    return None


def waiting(container: Container, reason: str, message: str) -> Container:
    return replace(container, waiting=(reason, message))


def caught(run: Run, names: Iterable[str], message: str) -> None:
    """Containers that the kubelet does not even make wait, and say why."""
    for name in names:
        why = ("CreateContainerConfigError", message)
        run.containers[name] = replace(run.containers[name], waiting=why)


def restarts(policy: str, container: Container) -> bool:
    return policy == "Always" or (policy == "OnFailure" and container.exit_code != 0)


def deadline(pod: Obj, run: Run) -> datetime | None:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    started = pod.get("status", {}).get("startTime")
    if seconds is None:
        return None
    return (read(started) if started else run.since) + timedelta(seconds=seconds)


def version(pod: Obj) -> int:
    """Versions are comparable numbers since 1.35 (KEP-5504), and were numbers before."""
    return int(pod["metadata"]["resourceVersion"])


def metadata(pod: Obj) -> Any:
    """What of a Pod's metadata people change."""
    found = pod["metadata"]
    return found.get("labels"), found.get("annotations"), found.get("deletionTimestamp")
