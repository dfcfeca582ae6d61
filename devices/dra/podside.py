"""Where an ask stands that has no claim of its own: its Pods ask by extended resource. Pure.

Such Pods are found by their label. On nodes of a device plugin the Pod itself is all there is; on
nodes of DRA the scheduler makes a claim for it, which says the rest (KEP-5004).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from devices.dra.lifecycle import State
from devices.dra.pods import read_pod
from devices.dra.podstatus import plugin_devices
from devices.dra.status import Placed, Status, status_of

Obj = Mapping[str, Any]


def status_by_pods(
    *,
    resources: Sequence[tuple[str, int]],
    claims: Sequence[Obj],
    pods: Sequence[Obj],
    events: Sequence[Obj] = (),
    now: datetime | None = None,
) -> Status:
    """The status of an ask whose Pods ask for ``resources``.

    ``claims`` are those that the scheduler made for these Pods. A Pod that is bound holds what it
    asks for: the plugin's devices are counted, not named, until the kubelet names them.
    Raises Unreadable for a claim or Pod that has not the shape of one.
    """
    found = status_of(claims=claims, template=None, pods=pods, events=events, now=now)
    live = [pod for pod in pods if not read_pod(pod).finished]
    if not live:
        words = " and ".join(f"{count} × {name}" for name, count in resources)
        return replace(
            found,
            state=State.APPLIED,
            code="WAITING_FOR_POD",
            why=f"A Pod with this claim's label that asks for {words} gets its devices.",
            placed=(),
        )
    bound = any(pod.get("spec", {}).get("nodeName") for pod in live)
    state = State.ALLOCATED if bound and found.state is State.PENDING else found.state
    placed = found.placed or tuple(_of_plugin(live, [name for name, _ in resources]))
    return replace(found, state=state, placed=placed, code=_code(found, resources))


def scheduler_claims(pods: Iterable[Obj]) -> list[str]:
    """Names of the claims that the scheduler made for Pods, as their status says."""
    return sorted({name for pod in pods if (name := read_pod(pod).extended_claim)})


def _code(found: Status, resources: Sequence[tuple[str, int]]) -> str:
    """Which it is: the scheduler says the same of a node's CPU and of a plugin's devices."""
    if found.code == "NODE_RESOURCES_SHORT" and any(
        f"Insufficient {name}" in found.why for name, _ in resources
    ):
        return "EXTENDED_RESOURCE_SHORT"
    return found.code


def _of_plugin(pods: Iterable[Obj], names: Sequence[str]) -> Iterable[Placed]:
    """Devices that the kubelet names as given by a plugin; it may name none."""
    for pod in pods:
        node = str(pod.get("spec", {}).get("nodeName", ""))
        for name in names:
            for device in plugin_devices(pod, name):
                yield Placed("", name, name, node, device, node)
