"""What can go wrong with drivers and devices of nodes, simulated or real, and how each is mended.

Every pair is `begin_…` and `end_…`, the latter with those keywords that it needs. They leave no
state of their own: what is wrong is kept with the part it concerns, so that one process may break
and another mend.
"""

from __future__ import annotations

from devices.cluster.gateway import Ref
from playground.errors import PlaygroundError
from playground.faults.parts import DRIVER, Ground, at
from playground.fleet.fleet import Fleet
from playground.realnodes.node import RealNode

# Drivers


def begin_driver_down(ground: Ground, *, node: str, driver: str = "") -> str:
    """The driver on a node crashes and does not come up again."""
    parts = at(ground, node)
    name = parts.driver(driver)
    parts.crash(DRIVER, name, hold=True)
    return f"{name} on {node} is down"


def end_driver_down(ground: Ground, *, node: str, driver: str = "") -> str:
    """It starts again at once, and publishes what it has."""
    at(ground, node).let_go(DRIVER, driver)
    return f"{driver or 'every driver'} on {node} may run"


def begin_driver_restart(ground: Ground, *, node: str, driver: str = "") -> str:
    """The driver on a node dies and is started again by the kubelet; its slices stay."""
    parts = at(ground, node)
    name = parts.driver(driver)
    parts.crash(DRIVER, name, hold=False)
    return f"{name} on {node} restarts"


def begin_slices_stale(ground: Ground, *, node: str, driver: str = "") -> str:
    """The driver goes on preparing, but publishes no change any more."""
    with at(ground, node).trouble(driver) as trouble:
        trouble.silent = True
    return f"slices of {node} are not kept up to date"


def end_slices_stale(ground: Ground, *, node: str, driver: str = "") -> str:
    """It publishes again what is true now."""
    with at(ground, node).trouble(driver) as trouble:
        trouble.silent = False
    return f"slices of {node} are kept up to date"


def begin_slices_older(ground: Ground, *, node: str, driver: str = "") -> str:
    """A slice of the generation before appears beside the newest, as by a driver gone astray.

    A real driver, by its helper, deletes it soon.
    """
    gateway, found = at(ground, node).slices(driver)
    if not found:
        raise PlaygroundError(f"Nothing is published on {node} yet.")
    one = max(found, key=lambda slice_: slice_["spec"]["pool"]["generation"])
    pool = one["spec"]["pool"]
    older = {**pool, "generation": max(0, pool["generation"] - 1)}
    gateway.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {
                "generateName": f"older-{one['spec']['driver']}-{node}-",
                "ownerReferences": one["metadata"].get("ownerReferences", []),
            },
            "spec": {**one["spec"], "pool": older},
        }
    )
    return f"pool {pool['name']} has generation {older['generation']} beside {pool['generation']}"


def end_slices_older(ground: Ground, *, node: str, driver: str = "") -> str:
    """The driver looks at its slices, and deletes the older ones."""
    at(ground, node).publish(driver)
    return f"older slices of {node} are deleted"


def begin_slices_removed(ground: Ground, *, node: str, driver: str = "", stay: bool = False) -> str:
    """All slices of the driver on a node are deleted; it restores them at its next re-sync.

    With `stay` it does not; a real driver's helper cannot be kept from it.
    """
    if stay and isinstance(ground, RealNode):
        raise PlaygroundError(f"The driver of the real node {node} always puts its slices back.")
    parts = at(ground, node)
    gateway, found = parts.slices(driver)
    with parts.trouble(driver) as trouble:
        trouble.silent = stay
    for one in found:
        gateway.delete(Ref("ResourceSlice", one["metadata"]["name"]))
    return f"slices of {parts.driver(driver)} on {node} are deleted"


end_slices_removed = end_slices_stale


# Devices


def begin_device_gone(ground: Ground, *, node: str, device: str, driver: str = "") -> str:
    """A device vanishes from its slice, used or not."""
    with at(ground, node).trouble(driver) as trouble:
        trouble.gone.add(device)
    return f"{device} on {node} is published no more"


def end_device_gone(ground: Ground, *, node: str, device: str, driver: str = "") -> str:
    """It is back."""
    with at(ground, node).trouble(driver) as trouble:
        trouble.gone.discard(device)
    return f"{device} on {node} is published again"


def begin_device_tainted(
    ground: Ground,
    *,
    node: str,
    device: str,
    driver: str = "",
    key: str = "helios.example/ecc-errors",
    effect: str = "NoSchedule",
) -> str:
    """The driver taints a device; NoExecute ends the Pods that use it."""
    with at(ground, node).trouble(driver) as trouble:
        trouble.taints[device] = [{"key": key, "effect": effect}]
    return f"{device} on {node} has taint {key}:{effect}"


def end_device_tainted(ground: Ground, *, node: str, device: str, driver: str = "") -> str:
    """The taint is taken away."""
    with at(ground, node).trouble(driver) as trouble:
        trouble.taints.pop(device, None)
    return f"{device} on {node} has no taint"


def begin_device_unhealthy(
    ground: Ground,
    *,
    node: str,
    device: str,
    driver: str = "",
    health: str = "Unhealthy",
    message: str = "ECC error",
) -> str:
    """The driver's health stream tells that a device is not well; Pods that use it show it."""
    with at(ground, node).health_told(driver) as trouble:
        trouble.health[device] = (health, message)
    return f"{device} on {node} is {health}: {message}"


def end_device_unhealthy(ground: Ground, *, node: str, device: str, driver: str = "") -> str:
    """It is well again."""
    with at(ground, node).health_told(driver) as trouble:
        trouble.health.pop(device, None)
    return f"{device} on {node} is Healthy"


# Claims on the node


def begin_prepare_fails(
    ground: Ground,
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
    with at(ground, node).trouble(driver) as trouble:
        trouble.refuse, trouble.broken = ("", message) if rpc else (message, "")
        trouble.hang = hang
        trouble.claims, trouble.left = claims, times or None
    return f"preparing {claims} on {node} {'hangs' if hang else 'fails'}"


def end_prepare_fails(ground: Ground, *, node: str, driver: str = "") -> str:
    """Preparing works; the kubelet finds out at its next try."""
    with at(ground, node).trouble(driver) as trouble:
        trouble.prepare_works()
    return f"preparing on {node} works"


def begin_prepare_slow(
    ground: Ground, *, node: str, driver: str = "", seconds: float = 5.0, claims: str = "*"
) -> str:
    """Preparing takes `seconds` longer; beyond the kubelet's deadline of 45 s it fails."""
    with at(ground, node).trouble(driver) as trouble:
        trouble.prepare_works()
        trouble.slow, trouble.claims, trouble.left = seconds, claims, None
    return f"preparing {claims} on {node} takes {seconds:g} s longer"


end_prepare_slow = end_prepare_fails


def begin_unprepare_fails(
    ground: Ground, *, node: str, driver: str = "", message: str = "simulated: device is busy"
) -> str:
    """Giving back fails: Pods hang in Terminating, without an event."""
    with at(ground, node).trouble(driver) as trouble:
        trouble.unprepare = message
    return f"unpreparing on {node} fails"


def end_unprepare_fails(ground: Ground, *, node: str, driver: str = "") -> str:
    """Giving back works."""
    with at(ground, node).trouble(driver) as trouble:
        trouble.unprepare = ""
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
    fleet.trouble(driver).prepare_works()
    return f"{driver} attaches"
