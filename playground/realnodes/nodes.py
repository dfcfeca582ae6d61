"""All real nodes of one control plane: started beside the simulated ones, removed with it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from playground.building.gobuild import Tell, say_nothing
from playground.errors import PlaygroundError
from playground.fleet.spec import FleetSpec
from playground.plane.controlplane import ControlPlane
from playground.realnodes import described, parts
from playground.realnodes.machine import LOOK_EVERY, READY_WITHIN
from playground.realnodes.node import FILE, RealNode

FOLDER = "nodes"  # in the control plane's folder


def known(plane: ControlPlane) -> list[RealNode]:
    """The nodes that were started beside this control plane, running or not, by name."""
    folders = sorted(path.parent for path in (plane.folder / FOLDER).glob(f"*/{FILE}"))
    return [RealNode.open(folder, plane) for folder in folders]


def start(
    plane: ControlPlane,
    count: int,
    spec: FleetSpec,
    *,
    aliases: Iterable[str] = (),
    tied: bool = False,
    tell: Tell = say_nothing,
) -> list[RealNode]:
    """`count` nodes as the fleet file describes them, all Ready; builds what is missing first.

    Raises `PlaygroundError`, also where this machine can have none (`parts.why_not`), and leaves
    none running in that case.
    """
    if reason := parts.why_not():
        raise PlaygroundError(reason)
    parts.build(plane.release, tell)
    nodes, names = [], tuple(aliases)
    settings = described.settings_of(spec)
    with contextlib.ExitStack() as undo:
        for index in range(count):
            name = described.name_of(spec, index)
            folder = plane.folder / FOLDER / name
            node = RealNode(folder, plane, name, settings=settings, aliases=names)
            described.describe(node, spec, index)
            undo.callback(node.stop)
            nodes.append(node.start(tied=tied, wait=False))
        wait_ready(nodes)
        undo.pop_all()
    return nodes


def wait_ready(nodes: Iterable[RealNode]) -> None:
    """Returns when all are Ready; raises `PlaygroundError` naming those that are not."""
    waiting = list(nodes)
    until = time.monotonic() + READY_WITHIN
    while waiting := [node for node in waiting if node.condition().get("status") != "True"]:
        for node in waiting:
            node.check_kubelet()
        if time.monotonic() > until:
            told = "; ".join(
                f"{node.name}: {node.condition().get('message', 'no such Node yet')}"
                for node in waiting
            )
            raise PlaygroundError(f"Not Ready after {READY_WITHIN:.0f} s: {told}")
        time.sleep(LOOK_EVERY)


def stop(plane: ControlPlane) -> None:
    """Ends all of them, also what killed ones left; their folders stay."""
    for node in known(plane):
        node.stop()


def wipe(plane: ControlPlane) -> None:
    """Ends all of them and removes their folders."""
    for node in known(plane):
        node.wipe()
    with contextlib.suppress(OSError):  # none was there, or somebody keeps other things in it
        (plane.folder / FOLDER).rmdir()
