"""Proofs about the device plugin of a node: who holds its devices, whether it is off or on.

The plugin's devices have no objects: what it offers is a number in the Node's status, up to ten
seconds old, and who holds them shows only in the Pods. A DaemonSet's Pod that is Ready may be
unregistered, and capacity 0 has two meanings, so neither is ever taken for a proof.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from devices.dra.conversion.place import (
    DEFAULT_TIMES,
    Look,
    Place,
    Times,
    node_of,
    obstacle,
    pods_of,
    seen_twice,
    silent,
)
from devices.dra.conversion.proof import Proof, not_known, not_yet, proved, refuted
from devices.dra.pluginpath import whole
from devices.dra.pods import Pod
from devices.dra.podstatus import plugin_devices
from devices.dra.snapshot import POD, Snapshot
from devices.dra.wording import many


@dataclass(frozen=True, slots=True)
class PluginHolder:
    """A Pod that holds a plugin's devices; ``devices`` are their ids as far as it names them."""

    pod: Pod
    containers: tuple[str, ...]
    devices: tuple[str, ...] = ()


def plugin_holders(place: Place, snapshot: Snapshot) -> tuple[PluginHolder, ...]:
    """Pods on the node that hold, or are about to hold, devices of its plugin.

    A Pod that has not ended, with a container (or init container) whose limits ask for the resource
    and for which the scheduler made no DRA request. One that is being deleted holds on. What was
    deleted by force cannot be seen.
    """
    found = []
    for pod in snapshot.pods.values():
        if pod.node_name != place.node or pod.finished:
            continue
        containers = tuple(
            container.name
            for container in pod.containers
            if place.resource in container.limits
            and container.limits[place.resource].nanos > 0
            and (container.name, place.resource) not in pod.extended_requests
        )
        if containers:
            found.append(PluginHolder(pod, containers, plugin_devices(pod.raw, place.resource)))
    return tuple(found)


def no_plugin_holders(
    place: Place,
    look: Look,
    now: datetime,
    *,
    empty_since: datetime | None,
    times: Times = DEFAULT_TIMES,
) -> Proof:
    """That no Pod holds a device of the plugin, and none did at two looks, long enough apart.

    ``empty_since`` is when the first of an unbroken row of looks found none; None before that.
    Allocatable proves nothing here: it is 0 while Pods run on with a stopped plugin's devices.
    """
    if blocked := obstacle(place, look, now, POD):
        return blocked
    holders = plugin_holders(place, look.snapshot)
    if holders:
        return not_yet(
            f"{many(len(holders), 'Pod holds', 'Pods hold')} devices of the plugin",
            *(str(each.pod) for each in holders),
        )
    return seen_twice(empty_since, now, times)


def plugin_is_off(place: Place, look: Look, now: datetime) -> Proof:
    """That the plugin's Pod is gone from the node *and* the node offers nothing.

    The key stays at 0 when a plugin has stopped, for ever; a node that never had one lacks it.
    """
    if blocked := obstacle(place, look, now, POD):
        return blocked
    if not place.plugin_sets:
        return not_known("nobody recorded which DaemonSet runs the plugin")
    if pods := pods_of(place.plugin_sets, place, look):
        return not_yet("the plugin's Pod is still there", *pods)
    if unheard := silent(place, look):
        return unheard
    offered = node_of(place, look).allocatable.get(place.resource)
    if offered is None:
        return proved(f"no plugin Pod, and the node never offered {place.resource}")
    if offered.nanos > 0:
        return not_yet(f"the node still offers {offered} of {place.resource}")
    return proved(f"no plugin Pod, and 0 of {place.resource} allocatable")


def plugin_is_on(place: Place, look: Look, now: datetime) -> Proof:
    """That the plugin runs on the node and offers as many devices as it should."""
    if blocked := obstacle(place, look, now, POD):
        return blocked
    if place.offered is None:
        return not_known("nobody recorded how many devices the plugin offers")
    if not pods_of(place.plugin_sets, place, look):
        return not_yet("no Pod of the plugin on the node")
    if unheard := silent(place, look):
        return unheard
    amount = node_of(place, look).allocatable.get(place.resource)
    offered = 0 if amount is None else whole(amount)
    told = f"the plugin offers {offered} of {place.offered}"
    if offered > place.offered:
        return refuted(told, name="DRIFT_ALLOCATABLE_DIFFERS")
    return proved(told) if offered == place.offered else not_yet(told)
