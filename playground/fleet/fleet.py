"""A fleet at work: machines, drivers, plugins and controllers of one fleet file on one cluster."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from devices.cluster.gateway import Gateway, Ref
from playground.fleet import install
from playground.fleet.clock import Pace
from playground.fleet.controller import Controller
from playground.fleet.driver import NodeAgent, Trouble
from playground.fleet.kubelet import Kubelet
from playground.fleet.plugin import NodePlugin
from playground.fleet.podlife import Program
from playground.fleet.sight import Sight
from playground.fleet.site import Identities, Site
from playground.fleet.spec import FleetSpec, load
from playground.fleet.turns import Turns
from playground.plane.controlplane import ControlPlane

log = logging.getLogger(__name__)

Obj = dict[str, Any]
Objects = Callable[[FleetSpec], Iterable[Obj]]

MANAGER = "playground-fleet"
KINDS = ("Node", "ResourceSlice", "ResourceClaim", "Pod")
# What was installed once is not made again: its record.
RECORD = Ref("ConfigMap", "playground-fleet", "kube-system")


class Fleet:
    """`start` makes the cluster's objects and sets every machine going; `stop` freezes them.

    A fleet that starts over a cluster that has seen it before goes on where it was. `objects` are
    what vendors' charts install; those that real nodes run too are `realnodes.described.objects`.
    """

    def __init__(
        self,
        spec: FleetSpec | str | Path,
        plane: ControlPlane,
        *,
        workers: int = 6,
        objects: Objects = install.objects,
    ) -> None:
        self.spec = spec if isinstance(spec, FleetSpec) else load(spec)
        self.plane = plane
        self._objects = objects
        identities = Identities(plane)
        self.site = Site(
            plane=plane,
            spec=self.spec,
            pace=Pace(self.spec.time_scale, self.spec.sync_seconds),
            turns=Turns(workers),
            sight=Sight(identities.admin, KINDS),
            identities=identities,
            release=plane.release,
        )
        self._installed = False
        self.kubelets: dict[str, Kubelet] = {}
        for group in self.spec.groups:
            for name in group.node_names():
                kubelet = self.kubelets[name] = Kubelet(self.site, group, name)
                kubelet.pods.launch = self._launch
        self.troubles: dict[tuple[str, str], Trouble] = {}
        self.controllers: dict[str, Controller] = {}

    @property
    def admin(self) -> Gateway:
        """The identity that sees everything, and makes what people and vendors make."""
        return self.site.identities.admin

    # Life

    def start(self) -> None:
        sight = self.site.sight
        sight.listen("Pod", self._pod_news)
        sight.listen("ResourceClaim", self._claim_news)
        sight.listen("ResourceSlice", self._slice_news)
        sight.start()
        for kubelet in self.kubelets.values():
            kubelet.start(wipe=False)
        self.site.turns.add(("install",), self._install)
        self.site.turns.start()

    def stop(self) -> None:
        """Everything freezes as it is: nothing is deleted, the API server learns nothing."""
        for kubelet in self.kubelets.values():
            kubelet.running = False
        self.site.sight.stop()
        self.site.turns.stop()

    def _install(self) -> float | None:
        """A turn: makes what is always there, then once per cluster the tenants' workloads.

        Those that are marked as last wait until all others were bound to a node.
        """
        if not self._installed:
            for one in self._objects(self.spec):
                self._apply(one)
            self._installed = True
        mark = hashlib.sha256(msgspec.json.encode(self.spec.workloads)).hexdigest()[:16]
        record = self.admin.get(RECORD) or {}
        if record.get("data", {}).get(self.spec.name) == mark:
            return None
        last = [one for one in self.spec.workloads if install.is_last(one)]
        for one in self.spec.workloads:
            if one not in last:
                self._apply(one)
        if last and self._unbound():
            return 1.0
        for one in last:
            self._apply(one)
        self._apply(
            {
                "kind": "ConfigMap",
                "metadata": {"name": RECORD.name, "namespace": RECORD.namespace},
                "data": {self.spec.name: mark},
            }
        )
        return None

    def _apply(self, one: Obj) -> None:
        self.admin.apply(one, manager=MANAGER, force=True)

    def _unbound(self) -> bool:
        """Whether a workload's Pod has no node yet, or has not even been made."""
        namespaces = {one["metadata"].get("namespace") for one in self.spec.workloads}
        pods = [
            one
            for one in self.site.sight.objects("Pod")
            if one["metadata"]["namespace"] in namespaces
        ]
        wanted = sum(install.pod_count(one) for one in self.spec.workloads)
        return len(pods) < wanted or any(not one["spec"].get("nodeName") for one in pods)

    # News

    def _pod_news(self, pod: Obj, gone: bool) -> None:
        kubelet = self.kubelets.get(pod["spec"].get("nodeName", ""))
        if kubelet is not None:
            kubelet.pods.see(pod, gone=gone)

    def _claim_news(self, claim: Obj, gone: bool) -> None:
        for controller in list(self.controllers.values()):
            controller.see(claim, gone=gone)

    def _slice_news(self, one: Obj, gone: bool) -> None:
        """A driver sees that a slice of its own is gone, and mends it at its next re-sync."""
        if gone:
            spec = one["spec"]
            after = self.site.pace.republish
            self.site.turns.wake(("publish", spec.get("nodeName", ""), spec["driver"]), after=after)
            self.site.turns.wake(("publish-pools", spec["driver"]), after=after)

    # Programs

    def trouble(self, driver: str, node: str = "") -> Trouble:
        """What is wrong with a driver on a node ("" for its controller); nothing, at first."""
        return self.troubles.setdefault((driver, node), Trouble())

    def agent(self, driver: str, node: str) -> NodeAgent | None:
        """The driver's program on a node, where it runs."""
        found = self.kubelets[node].drivers.get(driver)
        return found if isinstance(found, NodeAgent) else None

    def _launch(self, pod: Obj, kubelet: Kubelet) -> Program | None:
        """The program of a Pod that the fleet's own objects made; None for everybody else's."""
        kind, _, name = (
            pod["metadata"].get("annotations", {}).get(install.PROGRAM, "").partition(":")
        )
        namespace = pod["metadata"]["namespace"]
        match kind:
            case "driver" | "controller":
                for driver in self.spec.drivers:
                    if (driver.name, driver.namespace) == (name, namespace):
                        if kind == "driver":
                            return NodeAgent(driver, kubelet, pod, self.trouble(name, kubelet.name))
                        controller = Controller(driver, self.site, pod, self.trouble(name))
                        self.controllers[name] = controller
                        return controller
            case "plugin":
                for plugin in self.spec.plugins:
                    if (plugin.name, plugin.namespace) == (name, namespace):
                        return NodePlugin(plugin, kubelet)
        return None
