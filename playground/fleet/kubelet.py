"""A simulated kubelet: its Node, its lease, the drivers and plugins registered with it.

What becomes of single Pods is in `podlife.py`. The machine below the kubelet (containers, prepared
devices, running drivers) goes on when the kubelet stops, as on a real node.
"""

from __future__ import annotations

from typing import Any

from devices.cluster.gateway import Conflict, Missing, Ref
from playground.fleet import events, node
from playground.fleet.claims import ClaimBook, NodeDriver, pod_claims
from playground.fleet.clock import micro_stamp, now
from playground.fleet.devicebook import DeviceBook
from playground.fleet.events import Recorder
from playground.fleet.podlife import PodLife
from playground.fleet.site import Site
from playground.fleet.spec import NodeGroup

Obj = dict[str, Any]


class Kubelet:
    """One node. `start` registers it and begins its turns, `stop` is the kubelet's death."""

    def __init__(self, site: Site, group: NodeGroup, name: str) -> None:
        self.site = site
        self.group = group
        self.name = name
        self.running = False
        self.started_at = now()
        self.gateway = site.identities.node(name)
        self.recorder = Recorder(self.gateway, component="kubelet", host=name)
        self.drivers: dict[str, NodeDriver] = {}
        self.claims = ClaimBook(self.drivers, deadline=site.pace.rpc_timeout)
        self.devices = DeviceBook(grace=site.pace.plugin_grace)
        self.pods = PodLife(self)
        self._lease_known = False

    # Life

    def start(self, *, wipe: bool = True) -> None:
        """Registers the Node where it is missing and takes up work.

        A real kubelet wipes all slices of its node at its start; a fleet that merely goes on where
        it was stopped does not (`wipe=False`).
        """
        self.running, self.started_at = True, now()
        self._lease_known = False
        if wipe:
            self.devices.restart()
        turns = self.site.turns
        turns.add(("register", self.name), lambda: self._register(wipe=wipe))

    def _register(self, *, wipe: bool) -> float | None:
        found = self.gateway.get(Ref("Node", self.name))
        fresh = found is None
        if found is None:
            body = node.node_object(self.group, self.name, release=self.site.release, moment=now())
            try:
                found = self.gateway.create(body)
            except Conflict:
                return 0.2
        if fresh or wipe:
            for reason, message in events.started(
                self.name, lost=not fresh and not node.ready(found)
            ):
                self.recorder.say(found, "Normal", reason, message)
        if wipe:
            self._wipe("")
            for driver in list(self.drivers.values()):
                # The helper in a running driver sees its slices gone only at its next re-sync.
                self.site.turns.wake(
                    ("publish", self.name, driver.name), after=self.site.pace.republish
                )
        turns = self.site.turns
        turns.add(("lease", self.name), self._lease_turn)
        turns.add(("status", self.name), self._status_turn)
        for pod in self.site.sight.objects("Pod"):
            if pod["spec"].get("nodeName") == self.name:
                self.pods.see(pod, gone=False)
        self.pods.wake()
        return None

    def stop(self) -> None:
        """The kubelet dies; nobody tells the API server. Containers, drivers, plugins go on."""
        self.running = False
        for kind in ("register", "lease", "status"):
            self.site.turns.drop((kind, self.name))

    def power_off(self) -> None:
        """The whole machine dies: containers, drivers and all that was prepared are lost."""
        self.stop()
        self.pods.power_off()
        self.drivers.clear()
        self.claims = ClaimBook(self.drivers, deadline=self.site.pace.rpc_timeout)
        self.devices = DeviceBook(grace=self.site.pace.plugin_grace)

    # Heartbeats

    def _lease_turn(self) -> float:
        heartbeat = self.site.spec.heartbeat_seconds
        renewed = {"spec": {"renewTime": micro_stamp(now())}}
        if self._lease_known:
            try:
                self.gateway.merge(Ref("Lease", self.name, node.LEASE_NAMESPACE), renewed)
                return heartbeat
            except Missing:
                self._lease_known = False
        found = self.gateway.get(Ref("Node", self.name))
        if found is None:
            return heartbeat
        body = node.lease(found, heartbeat=heartbeat, moment=now())
        try:
            self.gateway.create(body)
        except Conflict:
            self.gateway.merge(Ref("Lease", self.name, node.LEASE_NAMESPACE), renewed)
        self._lease_known = True
        return heartbeat

    def _status_turn(self) -> float:
        """Compares Node status with what it should be, and writes what differs.

        A Node that somebody deleted is not made again before the kubelet's next start.
        """
        found = self.site.sight.get("Node", self.name)
        if found is None:
            return self.site.pace.status
        stored = found.get("status", {})
        change = {
            key: {
                name: value
                for name, value in wanted.items()
                if stored.get(key, {}).get(name) != value
            }
            for key, wanted in node.amounts(self.group, self.offered()).items()
        }
        change = {key: values for key, values in change.items() if values}
        if not node.ready(found):
            conditions = node.conditions(stored.get("conditions", []), now())
            change["conditions"] = conditions  # type: ignore[assignment]
        if change:
            self.gateway.merge(Ref("Node", self.name), {"status": change}, subresource="status")
        return self.site.pace.status

    def offered(self) -> dict[str, tuple[int, int]]:
        """Device plugins' capacity and allocatable by resource."""
        return self.devices.offered()

    # Drivers

    def register_driver(self, driver: NodeDriver) -> None:
        self.drivers[driver.name] = driver
        self.site.turns.drop(("wipe", self.name, driver.name))
        self.health_changed(driver.name)

    def driver_gone(self, driver: NodeDriver) -> None:
        """Its socket is gone. Its slices follow, unless it comes back in time."""
        if self.drivers.get(driver.name) is not driver:
            return
        del self.drivers[driver.name]
        turns, pace = self.site.turns, self.site.pace
        turns.add(
            ("wipe", self.name, driver.name), lambda: self._wipe_turn(driver.name), after=pace.wipe
        )
        self.health_changed(driver.name, after=pace.health_timeout)

    def _wipe_turn(self, driver: str) -> float | None:
        if self.running:  # else the kubelet's next start wipes everything
            self._wipe(driver)
        return None

    def _wipe(self, driver: str) -> None:
        """Deletes the node's slices of one driver, or of all."""
        fields = f"spec.nodeName={self.name}" + (f",spec.driver={driver}" if driver else "")
        for one in self.gateway.list("ResourceSlice", fields=fields).items:
            self.gateway.delete(Ref("ResourceSlice", one["metadata"]["name"]))

    def health(self, driver: str, pool: str, device: str) -> tuple[str, str]:
        found = self.drivers.get(driver)
        return found.health(pool, device) if found else ("Unknown", "")

    def device_health(self, pod: Obj, container: Obj) -> list[Obj]:
        """`allocatedResourcesStatus` of one container: its devices by claim, then by plugin."""
        names = dict(pod_claims(pod))
        told: dict[str, list[Obj]] = {}
        for one in container.get("resources", {}).get("claims", ()):
            request = one.get("request", "")
            key = f"claim:{one['name']}" + (f"/{request}" if request else "")
            prepared = self.claims.prepared(
                pod["metadata"]["namespace"], names.get(one["name"], "")
            )
            for device in prepared:
                if not request or request.partition("/")[0] in device.requests:
                    state, message = self.health(device.driver, device.pool, device.device)
                    told.setdefault(key, []).append(
                        {
                            "resourceID": device.cdi,
                            "health": state,
                            **({"message": message} if message else {}),
                        }
                    )
        held = self.devices.held(pod["metadata"]["uid"], container["name"])
        return [{"name": name, "resources": devices} for name, devices in {**told, **held}.items()]

    def health_changed(self, driver: str, *, after: float = 0.0) -> None:
        """Lets the Pods that use this driver's devices tell their health anew."""
        for uid in self.claims.pods_of(driver):
            self.site.turns.wake(("pod", uid), after=after)

    def adopt(self, pod: Obj) -> None:
        """Knows again what a Pod holds that was started before this kubelet."""
        namespace = pod["metadata"]["namespace"]
        found = (
            self.site.sight.get("ResourceClaim", name, namespace) for _, name in pod_claims(pod)
        )
        self.claims.adopt(pod, [claim for claim in found if claim])
        self.devices.adopt(pod)

    # Words for others

    def report(self) -> Obj:
        """What a probe on the node would see (design: node probe), as plain values."""
        return {
            "devices": {name: list(ids) for name, ids in self.devices.list_pods().items()},
            "claimsInUse": self.claims.in_use(),
            "kubeletStarted": micro_stamp(self.started_at),
        }
