"""Pools, reaches and taints in sentences. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from devices.dra.nodes import NodeTaint
from devices.dra.pools import Pool
from devices.dra.slices import Reach, Slice
from devices.dra.taints import DeviceTaint

#: Why devices cannot be had, or are not known, as it reads after a number.
REASONS: Final = {
    "CAPACITY_TAKEN": "all of their capacity taken",
    "DEVICE_TAINTED": "closed by a taint",
    "FEATURE_OFF": "in need of what the cluster does not serve",
    "LEAK_DEVICE_VANISHED": "held, and no longer published",
    "NODE_UNKNOWN": "of a node that is gone",
    "POOL_INCOMPLETE": "in an incomplete pool",
    "POOL_INVALID": "in an invalid pool",
    "SELECTOR_FAILS": "on which the class's selector fails",
}


def validity(pool: Pool) -> tuple[str, str]:
    """Whether devices are given from a pool, as a word, and why not, as a sentence."""
    if pool.invalid:
        return "invalid", f"The scheduler refuses the whole pool: {pool.invalid}."
    if pool.incomplete:
        here, all_of_it = len(pool.slices), pool.expected
        if here > all_of_it:
            return "incomplete", (
                f"Generation {pool.generation} has {here} slices and says that there are "
                f"{all_of_it}; nothing is given from it until that agrees."
            )
        return "incomplete", (
            f"{here} of {all_of_it} slices of generation {pool.generation} are there; nothing is "
            "given from it until the driver has published the others."
        )
    return "complete", ""


def reach_words(slices: Iterable[Slice]) -> str:
    """From where the devices of slices can be used."""
    nodes = nodes_of(slices)
    others = {
        place_words(reach)
        for piece in slices
        for reach in ([d.reach for d in piece.devices] if piece.reach.per_device else [piece.reach])
        if not reach.node_name
    }
    said = sorted(others)
    if len(nodes) == 1:
        said.insert(0, next(iter(nodes)))
    elif nodes:
        said.insert(0, f"{len(nodes)} nodes")
    return ", ".join(said)


def nodes_of(slices: Iterable[Slice]) -> set[str]:
    return {
        name
        for piece in slices
        for name in (
            [device.reach.node_name for device in piece.devices]
            if piece.reach.per_device
            else [piece.reach.node_name]
        )
        if name
    }


def place_words(reach: Reach) -> str:
    """From where one device can be used."""
    if reach.node_name:
        return reach.node_name
    if reach.all_nodes:
        return "every node"
    return f"nodes with {reach.selector}" if reach.selector is not None else "nobody knows where"


def taint_words(taint: DeviceTaint) -> str:
    """What a taint on a device does."""
    match taint.effect:
        case "NoSchedule":
            does = "takes no new work; what runs keeps running"
        case "NoExecute":
            does = "takes no new work, and Pods that use it are ended"
        case _:
            does = "is marked, and nothing else happens"
    by = f" (rule {taint.rule})" if taint.rule else " (by its driver)"
    return f"{does}{by}"


def node_taint_words(taint: NodeTaint) -> str:
    """What a taint on a node does to Pods that do not tolerate it."""
    match taint.effect:
        case "NoSchedule":
            return "new Pods stay away"
        case "PreferNoSchedule":
            return "new Pods go elsewhere if they can"
        case "NoExecute":
            return "Pods are ended, and new ones stay away"
    return "unknown effect"
