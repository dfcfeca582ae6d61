"""Proofs by Pods of Berth's own: one that must not be placed, and one that must run.

That a taint stands in a Node does not mean that the scheduler knows of it, and that a driver
publishes does not mean that Pods start. So each is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from devices.dra.conversion.kubelet import TRAP, kubelet_trap
from devices.dra.conversion.nodereport import whole_second
from devices.dra.conversion.place import Look, Place, node_of, obstacle
from devices.dra.conversion.proof import Proof, not_known, not_yet, proved, refuted
from devices.dra.messages import scheduler_says
from devices.dra.nodes import NodeSelector, NodeTaint
from devices.dra.ownership import Owner
from devices.dra.pods import Pod
from devices.dra.podstatus import plugin_devices, read_pod_status
from devices.dra.snapshot import CLAIM, POD, SLICE
from devices.dra.taints import CLOSING

HOSTNAME: Final = "kubernetes.io/hostname"

#: Namespace and name.
PodKey = tuple[str, str]


def taint_holds(
    place: Place, look: Look, now: datetime, *, taint: str, trial: PodKey | None
) -> Proof:
    """That the scheduler keeps Pods off the node because of the taint with that key.

    ``trial`` is a Pod that may run on this node only, tolerates every taint but this one, and was
    made after the taint.
    """
    if blocked := obstacle(place, look, now, POD):
        return blocked
    node = node_of(place, look)
    closing = [each for each in node.taints if each.effect in CLOSING]
    if not any(each.key == taint for each in closing):
        return not_yet(f"node {place.node} has no taint {taint}")
    pod = look.snapshot.pods.get(trial) if trial is not None else None
    if pod is None:
        return not_yet("the node has the taint, and nobody has tried it")
    if not _pinned(pod, place.node):
        return not_known(f"{pod} may run on other nodes too, so that it waits tells nothing")
    if others := [str(each) for each in closing if each.key != taint and not _bears(pod, each)]:
        return not_known(f"{pod} is kept off by other taints as well", *others)
    if any(_bears(pod, each) for each in closing if each.key == taint):
        return not_known(f"{pod} tolerates the taint that it is to try")
    if pod.node_name:
        return not_yet(f"{pod} was placed before the scheduler knew of the taint: try another")
    said = read_pod_status(pod.raw).conditions.get("PodScheduled")
    if said is None or said.true:
        return not_yet(f"the scheduler has not looked at {pod}")
    reasons = scheduler_says(said.message).reasons
    if not any(each.code == "NODE_TAINTED" for each in reasons):
        return not_yet(f"{pod} waits for another reason: {said.message}")
    return proved(f"{pod} is kept off the node by its taints", str(pod))


def canary_started(
    place: Place, look: Look, now: datetime, *, canary: PodKey, since: datetime
) -> Proof:
    """That the canary Pod runs on the node, with containers that started at ``since`` or later.

    What started earlier proves nothing for Pods that start now.
    """
    if blocked := obstacle(place, look, now, POD):
        return blocked
    pod = look.snapshot.pods.get(canary)
    if pod is None:
        return not_known("there is no such Pod: " + "/".join(canary))
    if pod.node_name and pod.node_name != place.node:
        return refuted(f"{pod} runs on {pod.node_name}")
    if resource := kubelet_trap(pod):
        return refuted(f"{pod} is caught: the kubelet remembers {resource}", str(pod), name=TRAP)
    if pod.finished or pod.meta.deleted is not None:
        return refuted(f"{pod} has ended: {_reason(pod)}", str(pod))
    status = read_pod_status(pod.raw)
    if not pod.node_name:
        said = status.conditions.get("PodScheduled")
        return not_yet(f"{pod} is not placed: {said.message if said else 'nobody has looked'}")
    if not status.containers or not all(each.running for each in status.containers):
        waiting = ", ".join(each.waiting for each in status.containers if each.waiting)
        return not_yet(f"{pod} does not run: {waiting or pod.phase or 'not begun'}")
    early = whole_second(since)
    if any(each.started is None or each.started < early for each in status.containers):
        return not_known(f"{pod} started too early to tell: make another")
    return proved(f"{pod} runs", str(pod))


def canary_proves(
    place: Place, look: Look, now: datetime, *, canary: PodKey, since: datetime, path: Owner
) -> Proof:
    """That a Pod which asks for the resource gets a device on this path, and runs.

    By DRA: the scheduler made a claim for it, with devices of the driver in a pool of this node. By
    the plugin: no such claim, and the kubelet names a device of the plugin. ``path`` is PLUGIN or
    DRA; anything else raises ValueError.
    """
    if path not in (Owner.PLUGIN, Owner.DRA):
        raise ValueError(f"{path} is no path of a Pod")
    if blocked := obstacle(place, look, now, POD, CLAIM, SLICE):
        return blocked
    started = canary_started(place, look, now, canary=canary, since=since)
    if not started.proved:
        return started
    pod = look.snapshot.pods[canary]
    if not any(place.resource in container.limits for container in pod.containers):
        return not_known(f"{pod} does not ask for {place.resource}")
    by_driver = any(resource == place.resource for _, resource in pod.extended_requests)
    if by_driver != (path is Owner.DRA):
        other = "the driver" if by_driver else "the plugin"
        return refuted(f"{pod} got its device from {other}", str(pod), name="OWNER_CONFLICT")
    return _of_driver(place, look, pod) if by_driver else _of_plugin(place, pod)


def _of_driver(place: Place, look: Look, pod: Pod) -> Proof:
    claim = look.snapshot.claims.get((pod.meta.namespace, pod.extended_claim))
    if claim is None or claim.allocation is None:
        return not_known(f"the claim of {pod} was not seen", pod.extended_claim)
    pools: Mapping[str, str] = {
        one.pool: one.reach.node_name for one in look.snapshot.slices if one.driver == place.driver
    }
    devices = ["/".join(result.key) for result in claim.allocation.results]
    for result in claim.allocation.results:
        if result.driver != place.driver or pools.get(result.pool) != place.node:
            return refuted(f"{pod} got devices of another driver or node", *devices)
    return proved(f"{pod} runs with a device of the driver", str(claim), *devices)


def _of_plugin(place: Place, pod: Pod) -> Proof:
    devices = plugin_devices(pod.raw, place.resource)
    if not devices:
        return not_yet(f"the kubelet names no device of {pod} yet")
    return proved(f"{pod} runs with a device of the plugin", *devices)


def _pinned(pod: Pod, node: str) -> bool:
    if pod.affinity is not None and NodeSelector(pod.affinity).only_node == node:
        return True
    return pod.node_selector.get(HOSTNAME) == node


def _bears(pod: Pod, taint: NodeTaint) -> bool:
    return any(each.tolerates(taint) for each in pod.tolerations)


def _reason(pod: Pod) -> str:
    status = pod.raw.get("status")
    told = status if isinstance(status, Mapping) else {}
    return str(told.get("message") or told.get("reason") or pod.phase or "it is being deleted")
