"""Finds the parts of a fleet that a fault names; says in one sentence what is not there."""

from __future__ import annotations

from typing import Any

from playground.build import PlaygroundError
from playground.fleet.driver import NodeAgent, Trouble
from playground.fleet.fleet import Fleet
from playground.fleet.install import PROGRAM
from playground.fleet.kubelet import Kubelet
from playground.fleet.spec import Plugin

Obj = dict[str, Any]


def kubelet_of(fleet: Fleet, node: str) -> Kubelet:
    try:
        return fleet.kubelets[node]
    except KeyError:
        raise PlaygroundError(f"The fleet has no node {node}.") from None


def driver_name(fleet: Fleet, node: str, driver: str) -> str:
    """The driver asked for, or the only one that may publish on this node."""
    if driver:
        return driver
    group = kubelet_of(fleet, node).group
    names = [
        one.name
        for one in fleet.spec.drivers
        if any(pool.group == group.name for pool in one.pools)
    ]
    if len(names) != 1:
        choice = " or ".join(names) or "none is there"
        raise PlaygroundError(f"Which driver on {node}: {choice}?")
    return names[0]


def kubelet_and_agent(fleet: Fleet, node: str, driver: str) -> tuple[Kubelet, NodeAgent]:
    return kubelet_of(fleet, node), agent_of(fleet, node, driver)


def agent_of(fleet: Fleet, node: str, driver: str) -> NodeAgent:
    name = driver_name(fleet, node, driver)
    agent = fleet.agent(name, node)
    if agent is None:
        raise PlaygroundError(f"{name} does not run on {node}.")
    return agent


def trouble_of(fleet: Fleet, node: str, driver: str) -> Trouble:
    return fleet.trouble(driver_name(fleet, node, driver), node)


def publish_soon(fleet: Fleet, node: str, driver: str) -> None:
    fleet.site.turns.wake(("publish", node, driver_name(fleet, node, driver)))


def slices_of(fleet: Fleet, agent: NodeAgent, node: str) -> list[Obj]:
    fields = f"spec.nodeName={node},spec.driver={agent.name}"
    return list(agent.gateway.list("ResourceSlice", fields=fields).items)


def pod_uids(kubelet: Kubelet, program: str) -> list[str]:
    return [
        pod["metadata"]["uid"]
        for pod in kubelet.site.sight.objects("Pod")
        if pod["spec"].get("nodeName") == kubelet.name
        and pod["metadata"].get("annotations", {}).get(PROGRAM) == program
        and pod["metadata"]["uid"] in kubelet.pods.runs
    ]


def pod_uid(kubelet: Kubelet, program: str) -> str:
    uids = pod_uids(kubelet, program)
    if not uids:
        raise PlaygroundError(f"{program} has no Pod on {kubelet.name}.")
    return uids[0]


def plugins_of(fleet: Fleet, kubelet: Kubelet) -> list[Plugin]:
    return [one for one in fleet.spec.plugins if one.devices.get(kubelet.group.name)]
