"""What a fault on a node touches, alike for simulated nodes and for real ones.

A fault says `at(ground, node)` and works on what it gets. `ground` is a fleet, whose node it names,
or a real node itself. What is not there is said in one sentence (PlaygroundError).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from devices.cluster.gateway import Gateway, Ref
from playground.errors import PlaygroundError
from playground.fleet.driver import NodeAgent, Trouble
from playground.fleet.fleet import Fleet
from playground.fleet.install import PROGRAM
from playground.fleet.kubelet import Kubelet
from playground.fleet.spec import Plugin
from playground.realnodes.faulty import RealParts
from playground.realnodes.node import RealNode

Obj = dict[str, Any]
Labels = Mapping[str, str]
Ground = Fleet | RealNode
DRIVER, PLUGIN = "driver", "plugin"


class NodeParts(Protocol):
    """One node's kubelet, driver and plugin, for those who break them.

    `driver` may be "" where only one has devices on the node.
    """

    admin: Gateway

    def driver(self, name: str) -> str:
        """The driver asked for, or the only one that may publish here."""

    def trouble(self, driver: str) -> contextlib.AbstractContextManager[Trouble]:
        """What is wrong with a driver here; what the block changes is so from its end on."""

    def health_told(self, driver: str) -> contextlib.AbstractContextManager[Trouble]:
        """The same, where the driver must run to tell anybody."""

    def publish(self, driver: str) -> None:
        """The driver compares its slices with what it has, now and not at its next re-sync."""

    def crash(self, kind: str, name: str, *, hold: bool) -> None:
        """The program (`driver` or `plugin`) dies; with `hold` it does not come up again."""

    def let_go(self, kind: str, name: str) -> None:
        """What was held may run; "" means every one of that kind."""

    def plugins(self) -> Sequence[str]:
        """Names of the device plugins that have devices here."""

    def slices(self, driver: str) -> tuple[Gateway, list[Obj]]:
        """A running driver's slices here, and the identity by which it writes them."""

    def switches(self) -> tuple[Labels, Labels]:
        """The labels that call driver and plugin to this node."""

    def given(self) -> Labels:
        """The labels that the fleet file gives it."""

    def stop_kubelet(self) -> None: ...

    def start_kubelet(self) -> None: ...

    def power_off(self) -> None: ...

    def power_on(self) -> None: ...


def at(ground: Ground, node: str) -> NodeParts:
    """The parts of a node of this fleet, or of this real node."""
    return RealParts(ground, node) if isinstance(ground, RealNode) else SimulatedParts(ground, node)


def label(parts: NodeParts, node: str, labels: Mapping[str, Any]) -> None:
    parts.admin.merge(Ref("Node", node), {"metadata": {"labels": dict(labels)}})


class SimulatedParts:
    """Those of a node that the fleet plays."""

    def __init__(self, fleet: Fleet, node: str) -> None:
        if node not in fleet.kubelets:
            raise PlaygroundError(f"The fleet has no node {node}.")
        self.fleet = fleet
        self.node = node
        self.admin = fleet.admin
        self.kubelet: Kubelet = fleet.kubelets[node]

    def driver(self, name: str) -> str:
        if name:
            return name
        names = self._drivers()
        if len(names) != 1:
            choice = " or ".join(names) or "none is there"
            raise PlaygroundError(f"Which driver on {self.node}: {choice}?")
        return names[0]

    def _drivers(self) -> list[str]:
        group = self.kubelet.group.name
        return [
            one.name
            for one in self.fleet.spec.drivers
            if any(pool.group == group for pool in one.pools)
        ]

    @contextlib.contextmanager
    def trouble(self, driver: str) -> Iterator[Trouble]:
        trouble = self.fleet.trouble(self.driver(driver), self.node)
        before = trouble.published()
        yield trouble
        if trouble.published() != before:
            self.publish(driver)

    def publish(self, driver: str) -> None:
        self.fleet.site.turns.wake(("publish", self.node, self.driver(driver)))

    @contextlib.contextmanager
    def health_told(self, driver: str) -> Iterator[Trouble]:
        agent = self._agent(driver)
        yield agent.trouble
        self.kubelet.health_changed(agent.name)

    def _agent(self, driver: str) -> NodeAgent:
        name = self.driver(driver)
        agent = self.fleet.agent(name, self.node)
        if agent is None:
            raise PlaygroundError(f"{name} does not run on {self.node}.")
        return agent

    def crash(self, kind: str, name: str, *, hold: bool) -> None:
        uids = self._pods(f"{kind}:{name}")
        if not uids:
            raise PlaygroundError(f"{name} does not run on {self.node}.")
        self.kubelet.pods.crash(uids[0], hold=hold)

    def let_go(self, kind: str, name: str) -> None:
        known = self.fleet.spec.drivers if kind == DRIVER else self.fleet.spec.plugins
        for one in known:
            if name in ("", one.name):
                for uid in self._pods(f"{kind}:{one.name}"):
                    self.kubelet.pods.let_go(uid)

    def _pods(self, program: str) -> list[str]:
        return [
            pod["metadata"]["uid"]
            for pod in self.kubelet.site.sight.objects("Pod")
            if pod["spec"].get("nodeName") == self.node
            and pod["metadata"].get("annotations", {}).get(PROGRAM) == program
            and pod["metadata"]["uid"] in self.kubelet.pods.runs
        ]

    def plugins(self) -> list[str]:
        return [one.name for one in self._plugins()]

    def _plugins(self) -> list[Plugin]:
        group = self.kubelet.group.name
        return [one for one in self.fleet.spec.plugins if one.devices.get(group)]

    def slices(self, driver: str) -> tuple[Gateway, list[Obj]]:
        agent = self._agent(driver)
        fields = f"spec.nodeName={self.node},spec.driver={agent.name}"
        return agent.gateway, list(agent.gateway.list("ResourceSlice", fields=fields).items)

    def switches(self) -> tuple[Labels, Labels]:
        ours = self._drivers()
        drivers = [one.node_labels for one in self.fleet.spec.drivers if one.name in ours]
        plugins = [one.node_labels for one in self._plugins()]
        return _together(drivers), _together(plugins)

    def given(self) -> Labels:
        return self.kubelet.group.labels

    def stop_kubelet(self) -> None:
        self.kubelet.stop()

    def start_kubelet(self) -> None:
        self.kubelet.start()

    def power_off(self) -> None:
        self.kubelet.power_off()

    def power_on(self) -> None:
        self.kubelet.start()


def _together(labels: Sequence[Labels]) -> Labels:
    return {key: value for one in labels for key, value in one.items()}
