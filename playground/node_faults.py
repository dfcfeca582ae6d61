"""What can go wrong with nodes, their plugins and their paths, and how each is mended."""

from __future__ import annotations

from typing import Any

from devices.cluster.gateway import Ref
from playground.build import PlaygroundError
from playground.fault_parts import (
    kubelet_of,
    plugins_of,
    pod_uid,
    pod_uids,
)
from playground.fleet.fleet import Fleet


def begin_kubelet_down(fleet: Fleet, *, node: str) -> str:
    """The kubelet dies: no heartbeat, no news of Pods; containers and drivers go on."""
    kubelet_of(fleet, node).stop()
    return f"the kubelet of {node} is down"


def end_kubelet_down(fleet: Fleet, *, node: str) -> str:
    """It starts: wipes the node's slices, registers drivers again, takes up its Pods."""
    kubelet_of(fleet, node).start()
    return f"the kubelet of {node} runs"


def begin_kubelet_restart(fleet: Fleet, *, node: str) -> str:
    """The kubelet dies and is started again a moment later."""
    kubelet = kubelet_of(fleet, node)
    kubelet.stop()
    kubelet.start()
    return f"the kubelet of {node} restarts"


def begin_node_deleted(fleet: Fleet, *, node: str) -> str:
    """The machine dies, and its Node object is deleted."""
    kubelet = kubelet_of(fleet, node)
    kubelet.power_off()
    fleet.admin.delete(Ref("Node", node))
    return f"{node} is gone"


def end_node_deleted(fleet: Fleet, *, node: str) -> str:
    """A machine of that name comes up empty: the same name, another uid."""
    kubelet_of(fleet, node).start()
    return f"{node} registers as a new node"


# Plugins and paths


def begin_plugin_down(fleet: Fleet, *, node: str) -> str:
    """The device plugin on a node crashes and does not come up again."""
    kubelet = kubelet_of(fleet, node)
    for plugin in plugins_of(fleet, kubelet):
        kubelet.pods.crash(pod_uid(kubelet, f"plugin:{plugin.name}"), hold=True)
    return f"the device plugin of {node} is down"


def end_plugin_down(fleet: Fleet, *, node: str) -> str:
    """It starts again, and registers."""
    kubelet = kubelet_of(fleet, node)
    for plugin in plugins_of(fleet, kubelet):
        for uid in pod_uids(kubelet, f"plugin:{plugin.name}"):
            kubelet.pods.let_go(uid)
    return f"the device plugin of {node} may run"


def begin_both_paths(fleet: Fleet, *, node: str) -> str:
    """Driver and device plugin run on one node: the same devices are offered twice."""
    _label(fleet, node, _switches(fleet, node, driver=True, plugin=True))
    return f"driver and plugin both offer the devices of {node}"


def end_both_paths(fleet: Fleet, *, node: str) -> str:
    """Back to the labels that the fleet file gives the node."""
    switches = _switches(fleet, node, driver=True, plugin=True)
    given = kubelet_of(fleet, node).group.labels
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
    group = kubelet_of(fleet, node).group
    plugins = plugins_of(fleet, kubelet_of(fleet, node))
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
