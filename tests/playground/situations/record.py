"""What happened in one situation, as plain values that do not depend on which node it was.

Each field of each object has the list of its values in their order, without repeats; what differs
from run to run (uids, times, addresses, generated names) is masked. The scheduler's complaints are
left out: both kinds of node have the same scheduler, and how often it looks is chance.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from devices.cluster.gateway import Gateway
from playground.fleet.sight import Sight

Obj = dict[str, Any]
Story = dict[str, list[Any]]

KINDS = ("Node", "ResourceSlice", "ResourceClaim", "Pod", "Event")
UNEQUAL_EVENTS = {
    "FailedScheduling",
    "FailedMount",  # the account's volume, when its ConfigMap is as new as the namespace
    "CgroupV1",  # says how the machine of the tests counts memory
}
#: A kubelet tells of it beside its other words at a start, sooner or later.
OF_ITS_OWN_ORDER = {"NodeAllocatableEnforced"}
#: A kubelet may see a Pod before the API server's authorizer has tied its claim to the node; each
#: kind of kubelet is refused then, now and then, and asks again.
LATE_AUTHORIZER = "no relationship found between node"
_MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z"), "TIME"),
    (re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b"), "ADDRESS"),
    (re.compile(r"\bkube-api-access-\w{5}\b"), "ACCOUNT"),
    (re.compile(r"\b[\w.]+://[0-9a-f]{64}\b"), "CONTAINER"),
    # Who sees first that time is over, the kubelet or the driver, is chance.
    (
        re.compile("Unknown desc = prepare resource claims: context deadline exceeded"),
        "DeadlineExceeded desc = context deadline exceeded",
    ),
    (
        re.compile(
            r"context deadline exceeded|stream terminated by RST_STREAM with error code: CANCEL"
        ),
        "DEADLINE",
    ),
    # Whether a kubelet that looks once more finds the sandbox stopped or removed is chance.
    (re.compile(r"no pod sandbox exists|pod sandbox is not ready"), "NO_SANDBOX"),
)
_GENERATED = re.compile(r"\b(\w+-(?:gpu|extended-resources))-[bcdfghjklmnpqrstvwxz2456789]{5}\b")
# Fields of a status that name the machine, not what became of the Pod.
MACHINE_FIELDS = {"hostIP", "hostIPs", "podIP", "podIPs", "imageID", "image", "user"}


class Chronicle:
    """All news of a control plane since it was opened, in order by kind."""

    def __init__(self, gateway: Gateway) -> None:
        self._news: list[tuple[str, Obj, bool]] = []
        self._latest: dict[str, float] = {}
        self._lock = threading.Lock()
        self._sight = Sight(gateway, KINDS)
        for kind in KINDS:
            self._sight.listen(kind, partial(self._hear, kind))
        self._sight.start()

    def _hear(self, kind: str, obj: Obj, gone: bool) -> None:
        with self._lock:
            self._news.append((kind, obj, gone))
            if kind != "Event" or obj.get("count", 1) == 1:  # counted up is no news
                self._latest[obj["metadata"].get("namespace", "")] = time.monotonic()

    def close(self) -> None:
        self._sight.stop()

    @property
    def here(self) -> int:
        """A mark: what comes from now on has a higher number."""
        with self._lock:
            return len(self._news)

    def quiet_since(self, namespace: str) -> float:
        """When the last news of a namespace came (monotonic); 0 before the first."""
        with self._lock:
            return self._latest.get(namespace, 0.0)

    def story(self, namespace: str, node: str, *, since: int) -> Story:
        """What became of a namespace's objects and of one node."""
        with self._lock:
            before, news = self._news[:since], self._news[since:]
        masked = Masked(namespace, node)
        found: Story = {}
        last: Story = {}
        slices: dict[str, list[str]] = {}
        # How node and slices stood at the beginning.
        news = [*_standing(before, node), *news]
        for kind, obj, gone in news:
            metadata = obj["metadata"]
            own = metadata.get("namespace") == namespace
            if kind == "Event":
                _hear_event(found, obj, namespace, node, masked)
            elif kind == "ResourceSlice" and obj["spec"].get("nodeName") == node:
                names = [one["name"] for one in obj["spec"].get("devices", ())]
                slices.pop(metadata["name"], None)
                if not gone:
                    slices[metadata["name"]] = names
                published = sorted({name for names in slices.values() for name in names})
                _append(found, f"slices of {obj['spec']['driver']}", published)
            elif kind == "Node" and metadata["name"] == node:
                for name, value in node_fields(obj):
                    _append(found, f"Node: {name}", masked(value))
                if gone:
                    _append(found, "Node: gone", True)
            elif kind in ("Pod", "ResourceClaim") and own:
                name = f"{kind} {masked(metadata['name'])}"
                if gone:
                    _append(found, f"{name}: gone", True)
                    continue
                fields = pod_fields(obj) if kind == "Pod" else claim_fields(obj)
                for field, value in fields:
                    _append(found, f"{name}: {field}", masked(value))
                last[f"{name}: at last"] = [
                    masked(pod_status(obj) if kind == "Pod" else plain(obj.get("status", {})))
                ]
        for key, values in found.items():
            if key.startswith("Pod"):
                found[key] = [
                    value
                    for value, following in zip(values, [*values[1:], None], strict=True)
                    if not _passing(value, following)
                ]
        return dict(sorted({**found, **last}.items()))


def _standing(news: list[tuple[str, Obj, bool]], node: str) -> list[tuple[str, Obj, bool]]:
    """The node and its slices as they were last told."""
    last = {
        (kind, obj["metadata"]["name"]): (kind, obj, gone)
        for kind, obj, gone in news
        if (kind == "Node" and obj["metadata"]["name"] == node)
        or (kind == "ResourceSlice" and obj["spec"].get("nodeName") == node)
    }
    return [one for one in last.values() if not one[2]]


def _passing(value: Any, following: Any) -> bool:
    """Whether it is chance that a kubelet writes a value at all, so soon is it the next one's turn.

    Where such a state lasts, a situation looks at it by name (`Stage.look`).
    """
    match value, following:
        case str(), str():
            # 1.36 gives no reason for that one, and for no other condition.
            waits = value == "False" or value.endswith("NO_SANDBOX")
            return (waits and following == "True") or (
                "ContainersNotReady" in value and following == "False, PodCompleted"
            )
    return False


def _append(story: Story, key: str, value: Any) -> None:
    values = story.setdefault(key, [])
    if not values or values[-1] != value:
        values.append(value)


def _hear_event(story: Story, event: Obj, namespace: str, node: str, masked: Masked) -> None:
    about, reason = event["involvedObject"], event["reason"]
    if reason in UNEQUAL_EVENTS or LATE_AUTHORIZER in event.get("message", ""):
        return
    if about["kind"] == "Node" and about["name"] == node:
        name = "Node"
    elif about.get("namespace") == namespace:
        name = f"{about['kind']} {masked(about['name'])}"
    else:
        return
    said = f"{event['type']} {reason}: {masked(event.get('message', ''))}"
    sequence = reason if reason in OF_ITS_OWN_ORDER else "events"
    values = story.setdefault(f"{name}: {sequence}", [])
    if said not in values:  # counted up is no news
        values.append(said)


def pod_fields(pod: Obj) -> Iterator[tuple[str, Any]]:
    """What is followed of a Pod, each in its own sequence."""
    status = pod.get("status", {})
    yield "phase", _words(status.get("phase"), status.get("reason"), status.get("message"))
    yield "deleted", bool(pod["metadata"].get("deletionTimestamp"))
    for one in status.get("conditions", ()):
        if one["type"] != "PodScheduled":
            words = _words(one["status"], one.get("reason"), one.get("message"))
            yield f"condition {one['type']}", words
    for one in status.get("containerStatuses", ()):
        yield f"container {one['name']}", _state(one["state"])
        yield f"restarts of {one['name']}", one["restartCount"]
        if "running" in one["state"] and (health := one.get("allocatedResourcesStatus")):
            yield f"devices of {one['name']}", health
    if extended := status.get("extendedResourceClaimStatus"):
        yield "extended resources", extended


def claim_fields(claim: Obj) -> Iterator[tuple[str, Any]]:
    status = claim.get("status", {})
    allocation = status.get("allocation") or {}
    results = allocation.get("devices", {}).get("results", ())
    yield "allocated", [f"{one['driver']}/{one['device']}" for one in results]
    yield "in use", bool(status.get("reservedFor"))
    yield (
        "devices",
        [
            (
                one["device"],
                [(c["type"], c["status"], c.get("reason")) for c in one.get("conditions", ())],
            )
            for one in status.get("devices", ())
        ],
    )
    yield "deleted", bool(claim["metadata"].get("deletionTimestamp"))


def node_fields(node: Obj) -> Iterator[tuple[str, Any]]:
    status = node.get("status", {})
    for one in status.get("conditions", ()):
        words = _words(one["status"], one.get("reason"), one.get("message"))
        yield f"condition {one['type']}", words
    # Each effect by itself: in which order the node lifecycle controller takes them is chance.
    for effect in ("NoSchedule", "NoExecute"):
        taints = node["spec"].get("taints", ())
        yield f"taints {effect}", sorted(one["key"] for one in taints if one["effect"] == effect)
    for amount in ("capacity", "allocatable"):
        for name, value in status.get(amount, {}).items():
            if "/" in name:
                yield f"{amount} of {name}", value


def _state(state: Mapping[str, Any]) -> str:
    match state:
        case {"waiting": waiting}:
            return _words("waiting", waiting.get("reason"), waiting.get("message"))
        case {"terminated": ended}:
            return _words("terminated", ended.get("reason"), f"exit {ended['exitCode']}")
    return "running" if "running" in state else "unknown"


def _words(*parts: str | None) -> str:
    return ", ".join(part for part in parts if part)


def pod_status(pod: Obj) -> Any:
    """A Pod's status to compare. `resources` of the whole Pod are read from the machine's cgroups,
    if the kubelet comes to it; a container's are compared."""
    return plain({k: v for k, v in pod.get("status", {}).items() if k != "resources"})


def plain(value: Any) -> Any:
    """A status without fields of the machine, empty ones and the scheduler's words."""
    if isinstance(value, dict):
        if value.get("type") == "PodScheduled":
            value = {"type": "PodScheduled", "status": value["status"]}
        return {
            key: kept
            for key, entry in sorted(value.items())
            if key not in MACHINE_FIELDS and (kept := plain(entry)) not in (None, "", {}, [])
        }
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return value


class Masked:
    """Replaces what differs from run to run, and from one kind of node to the other.

    Also which of a plugin's devices it is: the kubelet takes any.
    """

    def __init__(self, namespace: str, node: str) -> None:
        self._names = ((namespace, "NAMESPACE"), (node, "NODE"))

    def __call__(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: "DEVICE" if key == "resourceID" and "/" not in entry else self(entry)
                for key, entry in value.items()
            }
        if isinstance(value, list | tuple):
            return [self(entry) for entry in value]
        if not isinstance(value, str):
            return value
        for pattern, word in _MASKS:
            value = pattern.sub(word, value)
        value = _GENERATED.sub(r"\1-XXXXX", value)
        for name, word in self._names:
            value = value.replace(name, word)
        return value
