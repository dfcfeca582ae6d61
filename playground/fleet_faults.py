"""What can go wrong with machines, drivers and devices of a fleet, and how each is mended.

Every pair is `begin_…` and `end_…`, the latter with those keywords that it needs. They leave no
state of their own: what is wrong is kept with the part it concerns, so that one process may break
and another mend.
"""

from __future__ import annotations

from devices.cluster.gateway import Ref
from playground.build import PlaygroundError
from playground.fault_parts import (
    agent_of,
    kubelet_and_agent,
    kubelet_of,
    pod_uid,
    pod_uids,
    publish_soon,
    slices_of,
    trouble_of,
)
from playground.fleet.fleet import Fleet

# Drivers


def begin_driver_down(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """The driver on a node crashes and does not come up again."""
    kubelet, agent = kubelet_and_agent(fleet, node, driver)
    kubelet.pods.crash(pod_uid(kubelet, f"driver:{agent.name}"), hold=True)
    return f"{agent.name} on {node} is down"


def end_driver_down(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """It starts again at once, and publishes what it has."""
    kubelet = kubelet_of(fleet, node)
    for one in fleet.spec.drivers:
        if driver in ("", one.name):
            for uid in pod_uids(kubelet, f"driver:{one.name}"):
                kubelet.pods.let_go(uid)
    return f"{driver or 'every driver'} on {node} may run"


def begin_driver_restart(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """The driver on a node dies and is started again by the kubelet; its slices stay."""
    kubelet, agent = kubelet_and_agent(fleet, node, driver)
    kubelet.pods.crash(pod_uid(kubelet, f"driver:{agent.name}"))
    return f"{agent.name} on {node} restarts"


def begin_slices_stale(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """The driver goes on preparing, but publishes no change any more."""
    trouble_of(fleet, node, driver).silent = True
    return f"slices of {node} are not kept up to date"


def end_slices_stale(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """It publishes again what is true now."""
    trouble_of(fleet, node, driver).silent = False
    publish_soon(fleet, node, driver)
    return f"slices of {node} are kept up to date"


def begin_slices_older(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """A slice of the generation before appears beside the newest, as by a driver gone astray."""
    agent = agent_of(fleet, node, driver)
    newest = slices_of(fleet, agent, node)
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
    publish_soon(fleet, node, driver)
    return f"older slices of {node} are deleted"


def begin_slices_removed(fleet: Fleet, *, node: str, driver: str = "", stay: bool = False) -> str:
    """All slices of the driver on a node are deleted; it restores them at its next re-sync.

    With `stay` it does not.
    """
    agent = agent_of(fleet, node, driver)
    agent.trouble.silent = stay
    for one in slices_of(fleet, agent, node):
        agent.gateway.delete(Ref("ResourceSlice", one["metadata"]["name"]))
    return f"slices of {agent.name} on {node} are deleted"


end_slices_removed = end_slices_stale


# Devices


def begin_device_gone(fleet: Fleet, *, node: str, device: str, driver: str = "") -> str:
    """A device vanishes from its slice, used or not."""
    trouble_of(fleet, node, driver).gone.add(device)
    publish_soon(fleet, node, driver)
    return f"{device} on {node} is published no more"


def end_device_gone(fleet: Fleet, *, node: str, device: str, driver: str = "") -> str:
    """It is back."""
    trouble_of(fleet, node, driver).gone.discard(device)
    publish_soon(fleet, node, driver)
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
    trouble_of(fleet, node, driver).taints[device] = [{"key": key, "effect": effect}]
    publish_soon(fleet, node, driver)
    return f"{device} on {node} has taint {key}:{effect}"


def end_device_tainted(fleet: Fleet, *, node: str, device: str, driver: str = "") -> str:
    """The taint is taken away."""
    trouble_of(fleet, node, driver).taints.pop(device, None)
    publish_soon(fleet, node, driver)
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
    agent = agent_of(fleet, node, driver)
    agent.trouble.health[device] = (health, message)
    kubelet_of(fleet, node).health_changed(agent.name)
    return f"{device} on {node} is {health}: {message}"


def end_device_unhealthy(fleet: Fleet, *, node: str, device: str, driver: str = "") -> str:
    """It is well again."""
    agent = agent_of(fleet, node, driver)
    agent.trouble.health.pop(device, None)
    kubelet_of(fleet, node).health_changed(agent.name)
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
    trouble = trouble_of(fleet, node, driver)
    trouble.refuse, trouble.broken = ("", message) if rpc else (message, "")
    trouble.hang = hang
    trouble.claims, trouble.left = claims, times or None
    return f"preparing {claims} on {node} {'hangs' if hang else 'fails'}"


def end_prepare_fails(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """Preparing works; the kubelet finds out at its next try."""
    trouble = trouble_of(fleet, node, driver)
    trouble.refuse, trouble.broken, trouble.hang, trouble.left = "", "", False, 0
    return f"preparing on {node} works"


def begin_unprepare_fails(
    fleet: Fleet, *, node: str, driver: str = "", message: str = "simulated: device is busy"
) -> str:
    """Giving back fails: Pods hang in Terminating, without an event."""
    trouble_of(fleet, node, driver).unprepare = message
    return f"unpreparing on {node} fails"


def end_unprepare_fails(fleet: Fleet, *, node: str, driver: str = "") -> str:
    """Giving back works."""
    trouble_of(fleet, node, driver).unprepare = ""
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
