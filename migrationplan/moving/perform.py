"""What a step asks for, done to the cluster; doing it twice changes nothing.

Taints are one list in a Node: they are patched with a test on the list that was read. Switches are
the vendors' labels, `berth.dev/path.<node pool>` is Berth's own record beside them.
"""

from __future__ import annotations

import re
from typing import Any

from django.conf import settings

from devices.cluster.gateway import Gateway, Ref
from devices.cluster.taints import set_taints
from devices.dra.conversion import NodeReport, read_report
from devices.dra.names import (
    FREEZE_MARK,
    MOVE_LABEL,
    PATH_LABEL_PREFIX,
    QUIESCING_TAINT,
    SYSTEM_NAMESPACE,
    Manager,
)
from devices.dra.ownpods import canary_pod, probe_pod, trial_pod
from devices.dra.pods import read_pod
from devices.dra.reading import Unreadable
from devices.models import NodePool
from migrationplan.models import Move
from migrationplan.moving.reports import as_json
from migrationplan.steps import Act, Direction

Obj = dict[str, Any]


def perform(act: Act, move: Move, gateway: Gateway) -> None:
    """Asks for one thing. It changes the row's names and reports; the caller stores them.

    Raises `ClusterError`.
    """
    pool = move.pool
    match act:
        case Act.CLOSE:
            _taint(move, gateway, closed=True)
        case Act.OPEN:
            record_path(move, gateway)
            _taint(move, gateway, closed=False)
        case Act.PLUGIN_ON:
            _switch(move, gateway, pool.plugin_label, on=True)
        case Act.PLUGIN_OFF:
            _switch(move, gateway, pool.plugin_label, on=False)
        case Act.DRIVER_ON:
            _switch(move, gateway, pool.driver_label, on=True)
        case Act.DRIVER_OFF:
            _switch(move, gateway, pool.driver_label, on=False)
        case Act.TRY_TAINT:
            _try(move, gateway)
        case Act.CANARY:
            _canary(move, gateway)
        case Act.PROBE:
            _probe(move, pool, gateway)
        case Act.TIDY:
            mine = f"{MOVE_LABEL}={move.public_id}"
            for pod in gateway.list("Pod", namespace=SYSTEM_NAMESPACE, labels=mine).items:
                _remove(pod["metadata"]["name"], gateway)


def _machine(move: Move, gateway: Gateway) -> Obj | None:
    """The move's own Node; None where it is gone, or another machine has its name."""
    node = gateway.get(Ref("Node", move.node))
    return node if node is not None and node["metadata"]["uid"] == move.node_uid else None


def _taint(move: Move, gateway: Gateway, *, closed: bool) -> None:
    node = _machine(move, gateway)
    if node is None:
        return
    before = node["spec"].get("taints") or []
    # A key stands once on a Node, so closing takes over from a freeze of the node pool; opening
    # leaves a freeze's, which set it again meanwhile.
    after = [
        one
        for one in before
        if one.get("key") != QUIESCING_TAINT
        or (not closed and str(one.get("value")).startswith(FREEZE_MARK))
    ]
    if closed:
        ours = {"key": QUIESCING_TAINT, "value": move.public_id, "effect": "NoSchedule"}
        after = [*after, ours]
    set_taints(gateway, node, after)


def _switch(move: Move, gateway: Gateway, label: str, *, on: bool) -> None:
    key, _, value = label.partition("=")
    node = _machine(move, gateway)
    if node is None:
        return
    labels = node["metadata"].get("labels") or {}
    if (labels.get(key) == value) == on:
        return
    # A label whose value switches nothing may be somebody's word, so only our value is taken off.
    change = {key: value if on else None}
    uid = {"uid": move.node_uid}  # another machine under this name is refused by the API server
    gateway.merge(Ref("Node", move.node), {"metadata": {**uid, "labels": change}})


def record_path(move: Move, gateway: Gateway) -> None:
    """Berth's own label says which path the node's devices take now."""
    path = Direction(move.direction).path.value
    gateway.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": move.node,
                "labels": {f"{PATH_LABEL_PREFIX}{move.pool.slug}": path},
            },
        },
        manager=Manager.NODE,
        force=True,
    )


def _try(move: Move, gateway: Gateway) -> None:
    """A trial, made after the taint; one that was placed before it held is made anew."""
    node = gateway.get(Ref("Node", move.node))
    if node is None:
        return
    taints = node["spec"].get("taints") or []
    if not any(one.get("key") == QUIESCING_TAINT for one in taints):
        return
    found = gateway.get(_ref(move.trial)) if move.trial else None
    if found is not None and not found["spec"].get("nodeName"):
        return
    if found is not None:
        _remove(move.trial, gateway)
    move.trial = _new_name(move, "trial")
    others = tuple((one["key"], one["effect"]) for one in taints if one["key"] != QUIESCING_TAINT)
    gateway.create(
        trial_pod(move.trial, move.node, settings.CANARY_IMAGE, others, move=move.public_id)
    )


def _canary(move: Move, gateway: Gateway) -> None:
    if move.canary and gateway.get(_ref(move.canary)) is not None:
        return
    move.canary = _new_name(move, "canary")
    resource = move.pool.resource
    gateway.create(
        canary_pod(move.canary, move.node, settings.CANARY_IMAGE, resource, move=move.public_id)
    )


def _probe(move: Move, pool: NodePool, gateway: Gateway) -> None:
    """Sends a probe, or reads the one that was sent and has ended."""
    found = gateway.get(_ref(move.probe)) if move.probe else None
    if found is not None:
        ended = found.get("status", {}).get("phase") in ("Succeeded", "Failed")
        report = _report(found) if ended else None
        if report is not None:
            move.reports = [*move.reports, as_json(report)][-20:]
        if ended:
            _remove(move.probe, gateway)
            move.probe = ""
        if not ended or report is not None:
            return
    node = gateway.get(Ref("Node", move.node))
    if node is None:
        return
    endpoint = node["status"].get("daemonEndpoints", {}).get("kubeletEndpoint", {})
    move.probe = _new_name(move, "probe")
    gateway.create(
        probe_pod(
            move.probe, move.node, settings.PROBE_IMAGE, pool.resource,
            str(endpoint.get("Port", 10250)), move=move.public_id,
        )
    )  # fmt: skip


def _report(pod: Obj) -> NodeReport | None:
    """What a probe saw; None where it saw nothing, and another one has to look."""
    try:
        return read_report(read_pod(pod))
    except Unreadable:
        return None


def _remove(name: str, gateway: Gateway) -> None:
    if name:
        gateway.delete(_ref(name), grace_seconds=1)


def _ref(name: str) -> Ref:
    return Ref("Pod", name, SYSTEM_NAMESPACE)


def _new_name(move: Move, role: str) -> str:
    """Unique for ever: a name that was used may still be on its way out."""
    move.tries += 1
    node = re.sub(r"[^a-z0-9-]", "-", move.node)[:30].strip("-")
    return f"{role}-{node}-{move.public_id[:6]}-{move.tries}"
