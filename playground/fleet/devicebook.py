"""The kubelet's device manager: what device plugins offer on a node, and which Pod holds what.

Follows pkg/kubelet/cm/devicemanager/manager.go of 1.37 as seen on a real kubelet: a stopped
plugin leaves its capacity for five minutes with nothing allocatable, the key is never removed, and
allocations of Pods long gone are remembered until the next one is made or somebody asks. What a
restarted kubelet knows are its notes on disk, which are written when a plugin lists its devices,
at every allocation, and a last time when the five minutes are over.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Obj = dict[str, Any]

UNHEALTHY = "no healthy devices present; cannot allocate unhealthy devices {resource}"
UNREGISTERED = "cannot allocate unregistered device {resource}"
TOO_FEW = (
    "requested number of devices unavailable for {resource}."
    " Requested: {wanted}, Available: {available}"
)
NO_ENDPOINT = "endpoint not found in cache for a registered resource: {resource}"


class NotAdmitted(Exception):
    """The kubelet refuses a Pod: `reason` and the message of its status and event."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(slots=True)
class _Resource:
    """One extended resource; `healthy` by device id. `endpoint`: the plugin is registered.

    `remembered` are uids of Pods that hold or held devices; `noted` are those on disk, and
    `listed` tells whether the resource itself stands there.
    """

    healthy: dict[str, bool] = field(default_factory=dict)
    endpoint: bool = False
    stopped_at: float = 0.0
    forgotten: bool = False  # the grace after the plugin's stop is over
    holders: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    remembered: set[str] = field(default_factory=set)
    noted: set[str] = field(default_factory=set)
    listed: bool = False

    def write(self) -> None:
        """The kubelet's notes on disk become what it knows."""
        self.noted, self.listed = set(self.remembered), not self.forgotten


class DeviceBook:
    """The device plugins' resources of one node; safe to use from several threads.

    `grace` in seconds of `clock`.
    """

    def __init__(self, *, grace: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._grace = grace
        self._clock = clock
        self._resources: dict[str, _Resource] = {}
        self._lock = threading.RLock()

    def register(self, resource: str, devices: list[str]) -> None:
        """A plugin says hello and lists its devices, all healthy."""
        with self._lock:
            known = self._resources.setdefault(resource, _Resource())
            known.healthy = dict.fromkeys(devices, True)
            known.endpoint, known.forgotten = True, False
            known.write()

    def tell(self, resource: str, device: str, *, healthy: bool) -> None:
        """A registered plugin tells how one of its devices is."""
        with self._lock:
            known = self._resources[resource]
            if known.endpoint and device in known.healthy:
                known.healthy[device] = healthy
                known.write()

    def stopped(self, resource: str) -> None:
        """The plugin is gone: its devices are unhealthy at once, forgotten after the grace."""
        with self._lock:
            known = self._resources.setdefault(resource, _Resource())
            known.endpoint, known.stopped_at = False, self._clock()
            known.healthy = dict.fromkeys(known.healthy, False)

    def restart(self) -> None:
        """The kubelet starts anew, with what its notes say: a resource that stands in them and
        does not register again offers nothing, and has its grace anew."""
        with self._lock:
            for known in self._resources.values():
                known.remembered = known.noted | {uid for uid, _ in known.holders}
                if not known.endpoint:
                    known.healthy.clear()
                    known.stopped_at, known.forgotten = self._clock(), not known.listed

    def offered(self) -> dict[str, tuple[int, int]]:
        """By resource: capacity and allocatable, as Node status shows them."""
        with self._lock:
            for known in self._resources.values():
                gone = not known.endpoint and self._clock() - known.stopped_at >= self._grace
                if gone and not known.forgotten:
                    known.healthy.clear()
                    known.forgotten = True
                    known.write()
            return {
                name: (len(known.healthy), sum(known.healthy.values()))
                for name, known in self._resources.items()
            }

    def allocate(self, pod: Obj, allocatable: dict[str, str]) -> None:
        """Gives devices to a Pod at its admission, or raises NotAdmitted. Twice is fine."""
        uid = pod["metadata"]["uid"]
        with self._lock:
            for container, resource, wanted in self.wishes(pod):
                known = self._resources.get(resource)
                if known is None or (uid, container) in known.holders:
                    # A resource that no plugin ever offered here is none of the kubelet's business.
                    continue
                if known.forgotten and not known.endpoint:
                    if known.remembered:
                        known.remembered = {holder for holder, _ in known.holders}
                        raise _unexpected(UNREGISTERED.format(resource=resource))
                    if allocatable.get(resource) != "0":
                        continue
                    raise NotAdmitted(
                        f"OutOf{resource}",
                        f"Node didn't have enough resource: {resource}, requested: {wanted},"
                        " used: 0, capacity: 0",
                    )
                free = self._free(known)
                if not any(known.healthy.values()):
                    raise _unexpected(UNHEALTHY.format(resource=resource))
                if len(free) < wanted:
                    raise _unexpected(
                        TOO_FEW.format(resource=resource, wanted=wanted, available=len(free))
                    )
                # An allocation is what purges the memory of Pods that are gone.
                known.remembered = {holder for holder, _ in known.holders} | {uid}
                known.holders[uid, container] = tuple(free[:wanted])
                known.write()

    def _free(self, known: _Resource) -> list[str]:
        held = {device for devices in known.holders.values() for device in devices}
        return sorted(name for name, good in known.healthy.items() if good and name not in held)

    def adopt(self, pod: Obj) -> None:
        """Takes over what a Pod's status says it holds (the kubelet's checkpoint file)."""
        for status in pod.get("status", {}).get("containerStatuses", ()):
            for resource in status.get("allocatedResourcesStatus", ()):
                if not resource["name"].startswith("claim:"):
                    held = tuple(one["resourceID"] for one in resource.get("resources", ()))
                    key = (pod["metadata"]["uid"], status["name"])
                    with self._lock:
                        known = self._resources.setdefault(resource["name"], _Resource())
                        known.holders[key] = held
                        known.remembered.add(key[0])
                        known.write()

    def release(self, uid: str) -> None:
        """A Pod ended: its devices are free, but the kubelet goes on remembering it."""
        with self._lock:
            for known in self._resources.values():
                for key in [key for key in known.holders if key[0] == uid]:
                    del known.holders[key]

    def held(self, uid: str, container: str) -> dict[str, list[Obj]]:
        """By resource: the devices of a container, as `allocatedResourcesStatus` tells them."""
        with self._lock:
            return {
                name: [
                    {
                        "resourceID": device,
                        # A stopped plugin tells nothing new: what it said last stays.
                        "health": "Healthy"
                        if not known.endpoint or known.healthy.get(device)
                        else "Unhealthy",
                    }
                    for device in known.holders[uid, container]
                ]
                for name, known in self._resources.items()
                if (uid, container) in known.holders
            }

    def trap(self, pod: Obj) -> str:
        """The kubelet's error that keeps a Pod on the DRA path from starting, or "".

        Seen on 1.36.3 and 1.37.2: from five minutes after its plugin stopped, a resource of which
        any plugin allocation is remembered blocks Pods that ask for it by DRA.
        """
        with self._lock:
            for container in pod["spec"]["containers"]:
                for resource in container.get("resources", {}).get("limits", {}):
                    known = self._resources.get(resource)
                    if known and known.forgotten and not known.endpoint and known.remembered:
                        return NO_ENDPOINT.format(resource=resource)
        return ""

    def list_pods(self) -> dict[str, tuple[str, ...]]:
        """What the kubelet's podresources List shows: held devices by resource. It also purges the
        memory of Pods that are gone, which is the cure of the `trap`."""
        with self._lock:
            for known in self._resources.values():
                known.remembered = {uid for uid, _ in known.holders}
            return {
                name: tuple(device for devices in known.holders.values() for device in devices)
                for name, known in self._resources.items()
            }

    def wishes(self, pod: Obj) -> list[tuple[str, str, int]]:
        """(container, resource, count) of every extended resource that DRA does not serve."""
        extended = pod.get("status", {}).get("extendedResourceClaimStatus") or {}
        mapped = {
            (one["containerName"], one["resourceName"])
            for one in extended.get("requestMappings", ())
        }
        return [
            (container["name"], resource, int(amount))
            for container in pod["spec"]["containers"]
            for resource, amount in container.get("resources", {}).get("limits", {}).items()
            if "/" in resource and (container["name"], resource) not in mapped and amount != "0"
        ]


def _unexpected(text: str) -> NotAdmitted:
    return NotAdmitted(
        "UnexpectedAdmissionError", f"Allocate failed due to {text}, which is unexpected"
    )
