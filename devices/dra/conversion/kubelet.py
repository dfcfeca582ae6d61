"""Proofs about the kubelet's memory of a device plugin, which outlives plugin and Pods.

Kubelets of 1.36 and 1.37 keep what a plugin gave until somebody asks (a podresources List, as the
node probe does). While anything is remembered, and once the five minutes after the plugin's stop
are over, Pods that ask for the resource and get it from DRA do not start: the *trap*. The notes on
disk are written a last time at the end of those minutes, so only a List before that cures for good.
Source: pkg/kubelet/cm/devicemanager/manager.go, GetCapacity and UpdateAllocatedDevices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from devices.dra.conversion.nodereport import NodeReport, whole_second
from devices.dra.conversion.place import (
    DEFAULT_TIMES,
    Look,
    Place,
    Times,
    node_of,
    obstacle,
    silent,
)
from devices.dra.conversion.proof import Proof, not_known, not_yet, proved, refuted
from devices.dra.messages import Speaker, meaning
from devices.dra.ownership import capacity
from devices.dra.pods import Pod

TRAP: Final = "KUBELET_TRAP"
KEPT: Final = "KUBELET_MEMORY_KEPT"


def kubelet_trap(pod: Pod) -> str:
    """The extended resource because of which the kubelet starts no container of the Pod, or "".

    As the API shows it: a container that waits, also one that ran before, with the kubelet's words.
    """
    for words in _waiting(pod):
        known = meaning(words, Speaker.KUBELET)
        if known.code == TRAP:
            return known.facts.get("resource", "")
    return ""


def memory_is_clean(
    place: Place,
    reports: Sequence[NodeReport],
    *,
    plugin_off: datetime,
    times: Times = DEFAULT_TIMES,
) -> Proof:
    """That the kubelet has forgotten the plugin's allocations for good, and holds none.

    ``plugin_off`` is when the plugin was proved to be off. Of the reports the newest decides by its
    devices; one of the same kubelet process within the grace is the cure.
    """
    after = [each for each in reports if each.began >= whole_second(plugin_off)]
    if not after:
        return not_known("the node has not been asked since the plugin stopped")
    newest = max(after, key=lambda each: each.ended)
    if place.resource not in newest.devices:
        return not_known(f"the node was not asked about {place.resource}")
    held = newest.devices[place.resource]
    if held or newest.omitted:
        return not_yet(f"the node says that Pods hold {len(held) + newest.omitted} devices", *held)
    end = max(plugin_off, newest.kubelet_started) + times.grace - times.margin
    if any(_same_process(each, newest) and each.ended <= end for each in after):
        return proved("the node was asked in time, and holds no device of the plugin")
    return refuted("the node was asked too late: its notes keep what it has forgotten", name=KEPT)


def settling_is_over(
    place: Place,
    look: Look,
    now: datetime,
    *,
    plugin_off: datetime,
    reports: Sequence[NodeReport],
    times: Times = DEFAULT_TIMES,
) -> Proof:
    """That a Pod which starts now meets no trap, and neither will a later one.

    Capacity 0 alone proves nothing: a kubelet that restarts says 0 at once and begins the five
    minutes anew. So the time counts from the later of the plugin's stop and the start of the
    kubelet, which only the node itself tells, and tells again at the end.
    """
    if blocked := obstacle(place, look, now) or silent(place, look):
        return blocked
    due = plugin_off + times.settling
    for report in reports:
        due = max(due, report.kubelet_started + times.settling)
    if now < due:
        return not_yet("settling", again=due)
    left = capacity(node_of(place, look)).get(place.resource)
    if left is not None and left.nanos > 0:
        return not_yet(f"the node still shows a capacity of {left} {place.resource}")
    if not any(each.began >= whole_second(due) for each in reports):
        return not_known("the node has to be asked again whether its kubelet was restarted")
    clean = memory_is_clean(place, reports, plugin_off=plugin_off, times=times)
    return proved("settled, and no restart of the kubelet since") if clean.proved else clean


def _waiting(pod: Pod) -> Iterator[str]:
    """Messages of the Pod's containers that wait."""
    status = pod.raw.get("status")
    for part in ("initContainerStatuses", "containerStatuses"):
        for one in (status.get(part) if isinstance(status, Mapping) else None) or ():
            state: Mapping[str, Any] = one.get("state") or {}
            yield (state.get("waiting") or {}).get("message") or ""


def _same_process(one: NodeReport, other: NodeReport) -> bool:
    """Process times are told to a hundredth of a second, and rounded."""
    return abs(one.kubelet_started - other.kubelet_started) < timedelta(seconds=1)
