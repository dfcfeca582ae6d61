"""Closing and opening nodes and devices: taints of a Node, and the rules that taint devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from devices.cluster.gateway import Gateway, NotServed, Ref

Obj = dict[str, Any]


def set_taints(gateway: Gateway, node: Obj, after: Sequence[Obj]) -> Obj:
    """Gives a Node, as it was just read, other taints; returns it as it is then.

    Taints are one list in a Node: patched with a test on the list that was read, and on the uid,
    for another machine may have the name. Raises `Conflict` where it changed meanwhile.
    """
    meta, before = node["metadata"], node["spec"].get("taints") or []
    if list(after) == before:
        return node
    same: Obj = {"op": "test", "path": "/metadata/uid", "value": meta["uid"]}
    unchanged: Obj = {"op": "test", "path": "/spec/taints", "value": before}
    version: Obj = {
        "op": "test", "path": "/metadata/resourceVersion", "value": meta["resourceVersion"],
    }  # fmt: skip
    change: Obj = {"op": "add", "path": "/spec/taints", "value": list(after)}
    # A list that is not there cannot be tested; then the whole node must be as it was read.
    tests = [same, unchanged if before else version]
    return gateway.patch(Ref("Node", meta["name"]), [*tests, change])


def remove_rule(gateway: Gateway, name: str) -> None:
    """Deletes a DeviceTaintRule, the one that is seen; where none are served none was ever made."""
    ref = Ref("DeviceTaintRule", name)
    try:
        if (rule := gateway.get(ref)) is not None:
            gateway.delete(ref, uid=rule["metadata"]["uid"])
    except NotServed:
        return
