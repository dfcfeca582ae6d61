"""Events as a kubelet records them: one object per text, counted up when it repeats."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

from devices.cluster.gateway import ClusterError, Gateway, Missing, Ref
from playground.fleet.clock import now, stamp

log = logging.getLogger(__name__)

Obj = dict[str, Any]

# The kubelet's own words (pkg/kubelet/events/event.go and where they are used, 1.37).
FAILED_PREPARE = "FailedPrepareDynamicResources"
PULLED = (
    "Pulled",
    'Container image "{image}" already present on machine and can be accessed by the pod',
)
CREATED = "Created", "Container created"
STARTED = "Started", "Container started"
KILLING = "Killing", "Stopping container {name}"
BACK_OFF = "BackOff", "Back-off restarting failed container {name} in pod {pod}"


def started(name: str, *, lost: bool) -> list[tuple[str, str]]:
    """(reason, message) of what a kubelet says of its Node at each start, in this order.

    `lost`: the Node was not Ready before.
    """
    changes = ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]
    return [
        ("Starting", "Starting kubelet."),
        ("NodeAllocatableEnforced", "Updated Node Allocatable limit across pods"),
        *(
            (change, f"Node {name} status is now: {change}")
            for change in [*changes, *(["NodeReady"] if lost else [])]
        ),
    ]


class Recorder:
    """Records events with one part's identity. A lost event is not worth a retry."""

    def __init__(self, gateway: Gateway, *, component: str, host: str) -> None:
        self._gateway = gateway
        self._source = {"component": component, "host": host}
        self._known: dict[tuple[str, str, str], tuple[str, int]] = {}
        self._lock = threading.Lock()

    def say(self, about: Obj, kind: str, reason: str, message: str) -> None:
        """`kind` is Normal or Warning. A cluster-scoped object's events go to `default`."""
        metadata = about["metadata"]
        namespace = metadata.get("namespace", "default")
        key = (metadata["uid"], reason, message)
        moment = stamp(now())
        with self._lock:
            name, count = self._known.get(key, ("", 0))
            name = name or f"{metadata['name']}.{time.time_ns():x}"
            self._known[key] = (name, count + 1)
        try:
            if count:
                self._gateway.merge(
                    Ref("Event", name, namespace), {"count": count + 1, "lastTimestamp": moment}
                )
            else:
                self._gateway.create(self._event(about, name, namespace, kind, reason, message))
        except Missing:
            with self._lock:  # it was kept for an hour; the next one is a new object
                self._known.pop(key, None)
        except ClusterError as error:
            log.debug("event %s: %s", reason, error.message)

    def forget(self, uid: str) -> None:
        with self._lock:
            for key in [key for key in self._known if key[0] == uid]:
                del self._known[key]

    def _event(
        self, about: Obj, name: str, namespace: str, kind: str, reason: str, message: str
    ) -> Obj:
        metadata, moment = about["metadata"], stamp(now())
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": about.get("apiVersion", "v1"),
                "kind": about["kind"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                **({"namespace": metadata["namespace"]} if "namespace" in metadata else {}),
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "type": kind,
            "reason": reason,
            "message": message[:1024],
            "source": self._source,
            "reportingComponent": self._source["component"],
            "reportingInstance": self._source["host"],
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
