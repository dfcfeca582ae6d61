"""What can go wrong with kubelets, plugins and paths of nodes, and how each is mended."""

from __future__ import annotations

from devices.cluster.gateway import Ref
from playground.errors import PlaygroundError
from playground.faults.parts import PLUGIN, Ground, NodeParts, at, label


def begin_kubelet_down(ground: Ground, *, node: str) -> str:
    """The kubelet dies: no heartbeat, no news of Pods; containers and drivers go on."""
    at(ground, node).stop_kubelet()
    return f"the kubelet of {node} is down"


def end_kubelet_down(ground: Ground, *, node: str) -> str:
    """It starts: wipes the node's slices, registers drivers again, takes up its Pods."""
    at(ground, node).start_kubelet()
    return f"the kubelet of {node} runs"


def begin_kubelet_restart(ground: Ground, *, node: str) -> str:
    """The kubelet dies and is started again a moment later."""
    parts = at(ground, node)
    parts.stop_kubelet()
    parts.start_kubelet()
    return f"the kubelet of {node} restarts"


def begin_node_deleted(ground: Ground, *, node: str) -> str:
    """The machine dies, and its Node object is deleted."""
    parts = at(ground, node)
    parts.power_off()
    parts.admin.delete(Ref("Node", node))
    return f"{node} is gone"


def end_node_deleted(ground: Ground, *, node: str) -> str:
    """A machine of that name comes up: the same name, another uid."""
    at(ground, node).power_on()
    return f"{node} registers as a new node"


# Plugins and paths


def begin_plugin_down(ground: Ground, *, node: str) -> str:
    """The device plugin on a node crashes and does not come up again."""
    parts = at(ground, node)
    for plugin in parts.plugins():
        parts.crash(PLUGIN, plugin, hold=True)
    return f"the device plugin of {node} is down"


def end_plugin_down(ground: Ground, *, node: str) -> str:
    """It starts again, and registers."""
    at(ground, node).let_go(PLUGIN, "")
    return f"the device plugin of {node} may run"


def begin_both_paths(ground: Ground, *, node: str) -> str:
    """Driver and device plugin run on one node: the same devices are offered twice."""
    begin_path(ground, node=node, to="both")
    return f"driver and plugin both offer the devices of {node}"


def begin_path(ground: Ground, *, node: str, to: str) -> str:
    """Sets the switch labels of a node: `to` is plugin, dra, both or none."""
    if to not in ("plugin", "dra", "both", "none"):
        raise PlaygroundError(f"There is no path {to}: plugin, dra, both or none.")
    parts = at(ground, node)
    on: dict[str, str | None] = {}
    for labels, wanted in zip(_switches(parts, node), ("dra", "plugin"), strict=True):
        on |= {key: value if to in (wanted, "both") else None for key, value in labels.items()}
    label(parts, node, on)
    return f"{node} is on {to}"


def end_path(ground: Ground, *, node: str) -> str:
    """Back to the labels that the fleet file gives the node."""
    parts = at(ground, node)
    given = parts.given()
    keys = [key for labels in _switches(parts, node) for key in labels]
    label(parts, node, {key: given.get(key) for key in keys})
    return f"{node} has the labels of its group"


end_both_paths = end_path


def _switches(parts: NodeParts, node: str) -> tuple[dict[str, str], dict[str, str]]:
    """The labels that switch the DaemonSets of this node's driver and of its plugin."""
    driver, plugin = parts.switches()
    if not driver or not plugin:
        raise PlaygroundError(f"The devices of {node} have one path only.")
    return dict(driver), dict(plugin)
