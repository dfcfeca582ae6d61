"""The kubelet's memory of claims: what is prepared on a node, and for which Pods.

Follows pkg/kubelet/cm/dra/manager.go of 1.37, its checks in their order and its texts, because the
texts are all that people get to see of a failure on the node.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from devices.cluster.gateway import ClusterError, Gateway, Ref

Obj = dict[str, Any]


class PrepareFailed(Exception):
    """The kubelet's reason why a Pod's claims are not prepared, as its event says it."""


class ClaimRefused(Exception):
    """The driver's own words about one claim."""


class RpcFailed(Exception):
    """The call to the driver did not come through; the text is that of gRPC."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """One device of a claim on this node, as the driver answered."""

    driver: str
    pool: str
    device: str
    requests: tuple[str, ...]
    cdi: str


class NodeDriver(Protocol):
    """The kubelet plugin side of a DRA driver, registered with one kubelet."""

    name: str

    def prepare_seconds(self, claim: Obj) -> float:
        """How long the call will take; longer than the kubelet's deadline: it hangs."""

    def prepare(self, claim: Obj) -> tuple[Prepared, ...]:
        """Raises ClaimRefused or RpcFailed."""

    def unprepare(self, claim_uid: str) -> None:
        """Raises ClaimRefused or RpcFailed."""

    def health(self, pool: str, device: str) -> tuple[str, str]:
        """Healthy, Unhealthy or Unknown, and a message."""


@dataclass(slots=True)
class _Known:
    """One claim in the kubelet's cache (`ClaimInfo`)."""

    uid: str
    name: str
    namespace: str
    drivers: tuple[str, ...]
    pods: set[str] = field(default_factory=set)
    devices: tuple[Prepared, ...] = ()
    prepared: bool = False
    unpreparing: bool = False
    began: float | None = None  # monotonic, of the call that is under way


def pod_claims(pod: Obj) -> Iterator[tuple[str, str]]:
    """(name in the Pod's spec, name of the ResourceClaim) of every claim that exists by now.

    The claim that the scheduler made for extended resources comes last, under an empty name.
    """
    generated = {
        one["name"]: one.get("resourceClaimName")
        for one in pod.get("status", {}).get("resourceClaimStatuses", ())
    }
    for one in pod["spec"].get("resourceClaims", ()):
        name = one.get("resourceClaimName") or generated.get(one["name"])
        if name:
            yield one["name"], name
    extended = pod.get("status", {}).get("extendedResourceClaimStatus")
    if extended:
        yield "", extended["resourceClaimName"]


class ClaimBook:
    """The claims that one kubelet knows; safe to use from several threads."""

    def __init__(self, drivers: dict[str, NodeDriver], *, deadline: float) -> None:
        self._drivers = drivers
        self._deadline = deadline
        self._known: dict[tuple[str, str], _Known] = {}
        self._lock = threading.RLock()

    def prepare(self, pod: Obj, gateway: Gateway) -> float:
        """Prepares all claims of a Pod; returns 0 when done, else the seconds to come back after.

        Raises PrepareFailed with the text that the kubelet's event carries.
        """
        try:
            with self._lock:
                return self._prepare(pod, gateway)
        except RpcFailed as error:
            raise PrepareFailed(
                f"prepare dynamic resources: NodePrepareResources: {error}"
            ) from error

    def _prepare(self, pod: Obj, gateway: Gateway) -> float:
        uid = pod["metadata"]["uid"]
        claims = [self._fetch(pod, name, gateway) for _, name in pod_claims(pod)]
        known = [self._book(claim) for claim in claims]
        for one in known:
            one.pods.add(uid)
        waits = [
            self._call(one, claim)
            for one, claim in zip(known, claims, strict=True)
            if not one.prepared
        ]
        return max(waits, default=0.0)

    def _fetch(self, pod: Obj, name: str, gateway: Gateway) -> Obj:
        """The checks before anything is remembered, so that a failing Pod can still be deleted."""
        metadata = pod["metadata"]
        try:
            claim = gateway.get(Ref("ResourceClaim", name, metadata["namespace"]))
        except ClusterError as error:
            raise _failed(f"fetch ResourceClaim {name}: {error.message}") from error
        if claim is None:
            raise _failed(
                f'fetch ResourceClaim {name}: resourceclaims.resource.k8s.io "{name}" not found'
            )
        status = claim.get("status", {})
        if all(one["uid"] != metadata["uid"] for one in status.get("reservedFor", ())):
            raise _failed(
                f"pod {metadata['name']} ({metadata['uid']}) is not allowed to use"
                f" ResourceClaim {name} ({claim['metadata']['uid']})"
            )
        if not status.get("allocation"):
            raise _failed(
                f"ResourceClaim {name}: claim {metadata['namespace']}/{name} not allocated"
            )
        for driver in _drivers_of(claim):
            if driver not in self._drivers:
                raise _failed(f"DRA driver {driver} is not registered")
        return claim

    def _book(self, claim: Obj) -> _Known:
        metadata = claim["metadata"]
        key = (metadata["namespace"], metadata["name"])
        known = self._known.get(key)
        if known is None:
            known = _Known(
                uid=metadata["uid"],
                name=metadata["name"],
                namespace=metadata["namespace"],
                drivers=_drivers_of(claim),
            )
            self._known[key] = known
        if known.uid != metadata["uid"]:
            raise _failed(
                f"old ResourceClaim with same name {known.name} and different UID {known.uid}"
                " still exists (previous pod force-deleted?!)"
            )
        if known.unpreparing:
            raise _failed(f"ResourceClaim {known.name} is being unprepared")
        return known

    def _call(self, known: _Known, claim: Obj) -> float:
        """One look at a NodePrepareResources call: begins it, waits for it, takes its answer."""
        drivers = [self._drivers[name] for name in known.drivers]
        takes = max((driver.prepare_seconds(claim) for driver in drivers), default=0.0)
        now = time.monotonic()
        if known.began is None:
            known.began = now
        left = min(takes, self._deadline) - (now - known.began)
        if left > 0:
            return left
        known.began = None
        if takes > self._deadline:
            raise RpcFailed("rpc error: code = DeadlineExceeded desc = context deadline exceeded")
        devices: list[Prepared] = []
        for driver in drivers:
            try:
                devices += driver.prepare(claim)
            except ClaimRefused as error:
                raise _failed(
                    f"NodePrepareResources failed for ResourceClaim {known.name}: {error}"
                ) from error
        known.devices, known.prepared = tuple(devices), True
        return 0.0

    def under_way(self, uid: str) -> bool:
        """Whether a driver is being asked to prepare something for this Pod."""
        with self._lock:
            return any(
                uid in known.pods and known.began is not None for known in self._known.values()
            )

    def unprepare(self, uid: str) -> None:
        """Gives back what a Pod's end frees.

        Raises PrepareFailed with the text of the kubelet's log: there is no event for it.
        """
        with self._lock:
            for key, known in list(self._known.items()):
                if uid not in known.pods:
                    continue
                if len(known.pods) > 1:
                    known.pods.discard(uid)
                    continue
                known.unpreparing = True
                self._unprepare(known)
                del self._known[key]

    def _unprepare(self, known: _Known) -> None:
        for name in known.drivers:
            driver = self._drivers.get(name)
            if driver is None:
                raise PrepareFailed(
                    f"unprepare dynamic resources: DRA driver {name} is not registered"
                )
            try:
                driver.unprepare(known.uid)
            except ClaimRefused as error:
                raise PrepareFailed(
                    "unprepare dynamic resources: NodeUnprepareResources failed for"
                    f" ResourceClaim {known.name}: {error}"
                ) from error
            except RpcFailed as error:
                raise PrepareFailed(
                    f"unprepare dynamic resources: NodeUnprepareResources: {error}"
                ) from error

    def adopt(self, pod: Obj, claims: Iterable[Obj]) -> None:
        """Remembers as prepared what a Pod, running since before, holds (the checkpoint file)."""
        with self._lock:
            for claim in claims:
                known = self._book(claim)
                known.pods.add(pod["metadata"]["uid"])
                if not known.prepared:
                    known.devices = devices_of(claim)
                    known.prepared = True

    def prepared(self, namespace: str, name: str) -> tuple[Prepared, ...]:
        """The devices of a claim that is prepared on this node."""
        known = self._known.get((namespace, name))
        return known.devices if known else ()

    def in_use(self) -> dict[str, int]:
        """Claims by driver, as the kubelet's metric `dra_resource_claims_in_use` counts them."""
        counts: dict[str, int] = {}
        with self._lock:
            for known in self._known.values():
                for driver in known.drivers:
                    counts[driver] = counts.get(driver, 0) + 1
        return counts

    def pods_of(self, driver: str) -> set[str]:
        """UIDs of the Pods that use a device of this driver here."""
        with self._lock:
            return {
                uid
                for known in self._known.values()
                if driver in known.drivers
                for uid in known.pods
            }


def _failed(text: str) -> PrepareFailed:
    return PrepareFailed(f"prepare dynamic resources: {text}")


def _results(claim: Obj) -> list[Obj]:
    allocation = claim.get("status", {}).get("allocation") or {}
    return list(allocation.get("devices", {}).get("results", ()))


def _drivers_of(claim: Obj) -> tuple[str, ...]:
    return tuple(sorted({one["driver"] for one in _results(claim)}))


def devices_of(claim: Obj, driver: str = "") -> tuple[Prepared, ...]:
    """The allocated devices of a claim (of one driver) as a well-behaved driver prepares them."""
    return tuple(
        Prepared(
            driver=one["driver"],
            pool=one["pool"],
            device=one["device"],
            requests=(one["request"].partition("/")[0],),
            cdi=f"{one['driver']}/device={claim['metadata']['uid']}-{one['device']}",
        )
        for one in _results(claim)
        if not driver or one["driver"] == driver
    )
