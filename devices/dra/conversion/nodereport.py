"""What a node says of itself: the answer of Berth's node probe, as its Pod's status keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from devices.dra.pods import Pod
from devices.dra.reading import Unreadable, mapping, moment, number, sequence, texts


@dataclass(frozen=True, slots=True)
class NodeReport:
    """One look at a node from inside.

    ``devices``: ids of the plugin's devices that Pods hold, by the resource that was asked for;
    ``omitted`` more are held. ``claims_in_use``: claims that the kubelet has prepared, by driver.
    ``kubelet_started`` is a second off at most. The look lies between ``began`` and ``ended`` (the
    container's times, in whole seconds). Being looked at makes the kubelet forget plugin
    allocations of Pods that are gone.
    """

    node: str
    devices: Mapping[str, tuple[str, ...]]
    omitted: int
    claims_in_use: Mapping[str, int]
    kubelet_started: datetime
    began: datetime
    ended: datetime


def read_report(pod: Pod) -> NodeReport:
    """The report of a probe's Pod that has ended; raises Unreadable, saying what it lacks."""
    statuses = sequence(mapping(pod.raw.get("status"), "status").get("containerStatuses"), "status")
    ended: Mapping[str, Any] = {}
    for status in statuses:
        ended = mapping(mapping(status.get("state"), "state").get("terminated"), "terminated")
    if not ended:
        raise Unreadable("the probe has not ended")
    try:
        told = mapping(json.loads(ended.get("message") or ""), "message")
    except ValueError as error:
        raise Unreadable("the probe said nothing that can be read") from error
    if ended.get("exitCode") != 0:
        raise Unreadable(f"the probe failed: {told.get('error') or 'it says not why'}")
    started = moment(told.get("kubeletStarted"))
    times = (moment(ended.get("startedAt")), moment(ended.get("finishedAt")))
    if started is None or times[0] is None or times[1] is None:
        raise Unreadable("the probe's times cannot be read")
    return NodeReport(
        node=pod.node_name,
        devices={
            resource: texts(ids, f"devices.{resource}")
            for resource, ids in mapping(told.get("devices"), "devices").items()
        },
        omitted=number(told.get("devicesOmitted") or 0, "devicesOmitted"),
        claims_in_use={
            driver: number(amount, f"claimsInUse.{driver}")
            for driver, amount in mapping(told.get("claimsInUse"), "claimsInUse").items()
        },
        kubelet_started=started,
        began=times[0],
        ended=times[1],
    )


def whole_second(moment: datetime) -> datetime:
    """As Pods' times are told: in whole seconds, rounded down."""
    return moment.replace(microsecond=0)
