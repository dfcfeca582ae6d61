"""What can go wrong with machines, drivers and devices of a fleet, and how each is mended.

Every pair is `begin_…` and `end_…`, the latter with those keywords that it needs. They leave no
state of their own: what is wrong is kept with the part it concerns, so that one process may break
and another mend.
"""

from __future__ import annotations

from typing import Any

from devices.cluster.gateway import Ref
from playground.build import PlaygroundError
from playground.fleet.driver import NodeAgent, Trouble
from playground.fleet.fleet import Fleet
from playground.fleet.install import PROGRAM
from playground.fleet.kubelet import Kubelet

Obj = dict[str, Any]


# Drivers


def begin_driver_down(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """The driver on a node crashes and does not come up again."""
    kubelet, agent = _agent(fleet, node, driver)
    kubelet.pods.crash(_pod_uid(kubelet, f"driver:{agent.name}"), hold=True)
    return f"{agent.name} on {node} is down"


def end_driver_down(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """It starts again at once, and publishes what it has."""
    kubelet = _kubelet(fleet, node)
    for one in fleet.spec.drivers:
        if driver in ("", one.name):
            for uid in _pod_uids(kubelet, f"driver:{one.name}"):
                kubelet.pods.let_go(uid)
    return f"{driver or 'every driver'} on {node} may run"


def begin_driver_restart(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """The driver on a node dies and is started again by the kubelet; its slices stay."""
    kubelet, agent = _agent(fleet, node, driver)
    kubelet.pods.crash(_pod_uid(kubelet, f"driver:{agent.name}"))
    return f"{agent.name} on {node} restarts"


def begin_slices_stale(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """The driver goes on preparing, but publishes no change any more."""
    _trouble(fleet, node, driver).silent = True
    return f"slices of {node} are not kept up to date"


def end_slices_stale(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """It publishes again what is true now."""
    _trouble(fleet, node, driver).silent = False
    _publish(fleet, node, driver)
    return f"slices of {node} are kept up to date"


def begin_slices_older(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """A slice of the generation before appears beside the newest, as by a driver gone astray."""
    agent = _program(fleet, node, driver)
    newest = _slices(fleet, agent, node)
    if not newest:
        raise PlaygroundError(f"{agent.name} has published nothing on {node} yet.")
    one = max(newest, key=lambda slice_: slice_["spec"]["pool"]["generation"])
    pool = one["spec"]["pool"]
    older = {**pool, "generation": max(0, pool["generation"] - 1)}
    agent.gateway.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {
                "generateName": f"older-{agent.name}-{node}-",
                "ownerReferences": one["metadata"].get("ownerReferences", []),
            },
            "spec": {**one["spec"], "pool": older},
        }
    )
    return f"pool {pool['name']} has generation {older['generation']} beside {pool['generation']}"


def end_slices_older(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """The driver looks at its slices, and deletes the older ones."""
    _publish(fleet, node, driver)
    return f"older slices of {node} are deleted"


def begin_slices_removed(fleet: Fleet, *, node: str, driver: str = "", stay: bool = False) -> str:
    """All slices of the driver on a node are deleted; it restores them at its next re-sync.

    With `stay` it does not.
    """
    agent = _program(fleet, node, driver)
    agent.trouble.silent = stay
    for one in _slices(fleet, agent, node):
        agent.gateway.delete(Ref("ResourceSlice", one["metadata"]["name"]))
    return f"slices of {agent.name} on {node} are deleted"


end_slices_removed = end_slices_stale


# Devices


def begin_device_gone(fleet: Fleet, *, node: str, device: str, driver: str = "") -> str:
    """A device vanishes from its slice, used or not."""
    _trouble(fleet, node, driver).gone.add(device)
    _publish(fleet, node, driver)
    return f"{device} on {node} is published no more"


def end_device_gone(fleet: Fleet, *, node: str, device: str, driver: str = "") -> str:
    """It is back."""
    _trouble(fleet, node, driver).gone.discard(device)
    _publish(fleet, node, driver)
    return f"{device} on {node} is published again"


def begin_device_tainted(
    fleet: Fleet,
    *,
    node: str,
    device: str,
    driver: str = "",
    key: str = "helios.example/ecc-errors",
    effect: str = "NoSchedule",
) -> str:
    """The driver taints a device; NoExecute ends the Pods that use it."""
    _trouble(fleet, node, driver).taints[device] = [{"key": key, "effect": effect}]
    _publish(fleet, node, driver)
    return f"{device} on {node} has taint {key}:{effect}"


def end_device_tainted(fleet: Fleet, *, node: str, device: str, driver: str = "") -> str:
    """The taint is taken away."""
    _trouble(fleet, node, driver).taints.pop(device, None)
    _publish(fleet, node, driver)
    return f"{device} on {node} has no taint"


def begin_device_unhealthy(
    fleet: Fleet,
    *,
    node: str,
    device: str,
    driver: str = "",
    health: str = "Unhealthy",
    message: str = "ECC error",
) -> str:
    """The driver's health stream tells that a device is not well; Pods that use it show it."""
    agent = _program(fleet, node, driver)
    agent.trouble.health[device] = (health, message)
    _kubelet(fleet, node).health_changed(agent.name)
    return f"{device} on {node} is {health}: {message}"


def end_device_unhealthy(fleet: Fleet, *, node: str, device: str, driver: str = "") -> str:
    """It is well again."""
    agent = _program(fleet, node, driver)
    agent.trouble.health.pop(device, None)
    _kubelet(fleet, node).health_changed(agent.name)
    return f"{device} on {node} is Healthy"


# Claims on the node


def begin_prepare_fails(
    fleet: Fleet,
    *,
    node: str,
    driver: str = "",
    message: str = "simulated: device is on fire",
    times: int = 0,
    claims: str = "*",
    rpc: bool = False,
    hang: bool = False,
) -> str:
    """Preparing fails: `times` times, or for ever (0), for claims "namespace/name" (wildcards).

    `rpc` breaks the call itself, `hang` lets it run into the kubelet's deadline.
    """
    trouble = _trouble(fleet, node, driver)
    trouble.refuse, trouble.broken = ("", message) if rpc else (message, "")
    trouble.hang = hang
    trouble.claims, trouble.left = claims, times or None
    return f"preparing {claims} on {node} {'hangs' if hang else 'fails'}"


def end_prepare_fails(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """Preparing works; the kubelet finds out at its next try."""
    trouble = _trouble(fleet, node, driver)
    trouble.refuse, trouble.broken, trouble.hang, trouble.left = "", "", False, 0
    return f"preparing on {node} works"


def begin_unprepare_fails(
    fleet: Fleet, *, node: str, driver: str = "", message: str = "simulated: device is busy"
) -> str:
    """Giving back fails: Pods hang in Terminating, without an event."""
    _trouble(fleet, node, driver).unprepare = message
    return f"unpreparing on {node} fails"


def end_unprepare_fails(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """Giving back works."""
    _trouble(fleet, node, driver).unprepare = ""
    return f"unpreparing on {node} works"


def begin_attach_fails(
    fleet: Fleet,
    *,
    driver: str,
    message: str = "fabric port down",
    times: int = 0,
    hang: bool = False,
) -> str:
    """A fabric's controller cannot attach devices: it says so, or (`hang`) says nothing."""
    trouble = fleet.trouble(driver)
    trouble.refuse, trouble.hang, trouble.left = message, hang, times or None
    return f"{driver} {'does not finish' if hang else 'fails in'} attaching"


def end_attach_fails(fleet: Fleet, *, driver: str) -> str:
    """Attaching works."""
    trouble = fleet.trouble(driver)
    trouble.refuse, trouble.hang, trouble.left = "", False, 0
    return f"{driver} attaches"


# Nodes


def begin_kubelet_down(fleet: Fleet, *, node: str) -> str:
    """The kubelet dies: no heartbeat, no news of Pods; containers and drivers go on."""
    _kubelet(fleet, node).stop()
    return f"the kubelet of {node} is down"


def end_kubelet_down(fleet: Fleet, *, node: str) -> str:
    """It starts: wipes the node's slices, registers drivers again, takes up its Pods."""
    _kubelet(fleet, node).start()
    return f"the kubelet of {node} runs"


def begin_kubelet_restart(fleet: Fleet, *, node: str) -> str:
    """The kubelet dies and is started again a moment later."""
    kubelet = _kubelet(fleet, node)
    kubelet.stop()
    kubelet.start()
    return f"the kubelet of {node} restarts"


def begin_node_deleted(fleet: Fleet, *, node: str) -> str:
    """The machine dies, and its Node object is deleted."""
    kubelet = _kubelet(fleet, node)
    kubelet.power_off()
    fleet.admin.delete(Ref("Node", node))
    return f"{node} is gone"


def end_node_deleted(fleet: Fleet, *, node: str) -> str:
    """A machine of that name comes up empty: the same name, another uid."""
    _kubelet(fleet, node).start()
    return f"{node} registers as a new node"


def begin_both_paths(fleet: Fleet, *, node: str) -> str:
    """Driver and device plugin run on one node: the same devices are offered twice."""
    _label(fleet, node, _switches(fleet, node, driver=True, plugin=True))
    return f"driver and plugin both offer the devices of {node}"


def end_both_paths(fleet: Fleet, *, node: str) -> str:
    """Back to the labels that the fleet file gives the node."""
    switches = _switches(fleet, node, driver=True, plugin=True)
    given = _kubelet(fleet, node).group.labels
    _label(fleet, node, {key: given.get(key) for key in switches})
    return f"{node} has the labels of its group"


def begin_path(fleet: Fleet, *, node: str, to: str) -> str:
    """Sets the switch labels of a node: `to` is plugin, dra, both or none."""
    if to not in ("plugin", "dra", "both", "none"):
        raise PlaygroundError(f"There is no path {to}: plugin, dra, both or none.")
    switches = _switches(fleet, node, driver=to in ("dra", "both"), plugin=to in ("plugin", "both"))
    _label(fleet, node, switches)
    return f"{node} is on {to}"


def end_path(fleet: Fleet, *, node: str) -> str:
    """Back to the labels that the fleet file gives the node."""
    return end_both_paths(fleet, node=node)


def _switches(fleet: Fleet, node: str, *, driver: bool, plugin: bool) -> dict[str, str | None]:
    """The labels that switch the DaemonSets of this node's plugin and of its driver."""
    group = _kubelet(fleet, node).group
    plugins = [one for one in fleet.spec.plugins if one.devices.get(group.name)]
    drivers = [
        one for one in fleet.spec.drivers if any(pool.group == group.name for pool in one.pools)
    ]
    if not plugins or not drivers:
        raise PlaygroundError(f"The devices of {node} have one path only.")
    labels: dict[str, str | None] = {}
    for on, parts in ((plugin, plugins), (driver, drivers)):
        for part in parts:
            labels |= {key: value if on else None for key, value in part.node_labels.items()}
    return labels


def _label(fleet: Fleet, node: str, labels: dict[str, Any]) -> None:
    fleet.admin.merge(Ref("Node", node), {"metadata": {"labels": labels}})


# Finding parts


def _kubelet(fleet: Fleet, node: str) -> Kubelet:
    try:
        return fleet.kubelets[node]
    except KeyError:
        raise PlaygroundError(f"The fleet has no node {node}.") from None


def _driver_name(fleet: Fleet, node: str, driver: str) -> str:
    """The driver asked for, or the only one that may publish on this node."""
    if driver:
        return driver
    group = _kubelet(fleet, node).group
    names = [
        one.name
        for one in fleet.spec.drivers
        if any(pool.group == group.name for pool in one.pools)
    ]
    if len(names) != 1:
        choice = " or ".join(names) or "none is there"
        raise PlaygroundError(f"Which driver on {node}: {choice}?")
    return names[0]


def _agent(fleet: Fleet, node: str, driver: str) -> tuple[Kubelet, NodeAgent]:
    return _kubelet(fleet, node), _program(fleet, node, driver)


def _program(fleet: Fleet, node: str, driver: str) -> NodeAgent:
    name = _driver_name(fleet, node, driver)
    agent = fleet.agent(name, node)
    if agent is None:
        raise PlaygroundError(f"{name} does not run on {node}.")
    return agent


def _trouble(fleet: Fleet, node: str, driver: str) -> Trouble:
    return fleet.trouble(_driver_name(fleet, node, driver), node)


def _publish(fleet: Fleet, node: str, driver: str) -> None:
    fleet.site.turns.wake(("publish", node, _driver_name(fleet, node, driver)))


def _slices(fleet: Fleet, agent: NodeAgent, node: str) -> list[Obj]:
    fields = f"spec.nodeName={node},spec.driver={agent.name}"
    return list(agent.gateway.list("ResourceSlice", fields=fields).items)


def _pod_uids(kubelet: Kubelet, program: str) -> list[str]:
    return [
        pod["metadata"]["uid"]
        for pod in kubelet.site.sight.objects("Pod")
        if pod["spec"].get("nodeName") == kubelet.name
        and pod["metadata"].get("annotations", {}).get(PROGRAM) == program
        and pod["metadata"]["uid"] in kubelet.pods.runs
    ]


def _pod_uid(kubelet: Kubelet, program: str) -> str:
    uids = _pod_uids(kubelet, program)
    if not uids:
        raise PlaygroundError(f"{program} has no Pod on {kubelet.name}.")
    return uids[0]
