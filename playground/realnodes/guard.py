"""Keeps the real nodes of a demo: a process of its own, whose end, however it comes, is theirs.

    python -m playground.realnodes.guard FOLDER COUNT SCENARIO

FOLDER is the control plane's. It builds what is missing, starts the nodes, says so in one line, and
starts again what crashes on them, as a machine's service manager would.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from playground.building.gobuild import Progress
from playground.errors import PlaygroundError
from playground.fleet.spec import FleetSpec
from playground.plane.controlplane import ControlPlane
from playground.realnodes import described, nodes
from playground.realnodes.held import NODE
from playground.realnodes.node import RealNode

READY = "Ready:"  # the demo waits for this word
LOOK_EVERY = 1.0
SNIPPET_IMAGE = "busybox:stable"  # in the manifests that Berth gives to paste


def mend(node: RealNode) -> list[str]:
    """Starts again what crashed, and not what a fault keeps down; returns what that was."""
    mended: list[str] = []
    if (held := node.held) == NODE:
        return mended
    if not node.running:
        node.start(tied=True, wait=False)
        return [node.name]
    if not node.containerd_pid:
        node.start_containerd()
        mended.append("containerd")
    if not node.kubelet_pid and not held:
        node.start_kubelet(wait=False)
        mended.append("kubelet")
    return mended


def images_of(spec: FleetSpec) -> tuple[str, ...]:
    """The images that a fleet's workloads name, and Berth's own manifests, in full."""
    found = [SNIPPET_IMAGE]
    for workload in spec.workloads:
        pod = workload.get("spec", {}).get("template", workload).get("spec", {})
        found += [container["image"] for container in pod.get("containers", ())]
    return tuple(dict.fromkeys(full_name(image) for image in found))


def full_name(image: str) -> str:
    """An image's name with everything that people leave out.

    >>> full_name("busybox:stable")
    'docker.io/library/busybox:stable'
    >>> full_name("localhost/berth/app:1")
    'localhost/berth/app:1'
    """
    host, _, rest = image.partition("/")
    if not rest:
        return f"docker.io/library/{image}"
    if "." in host or ":" in host or host == "localhost":
        return image
    return f"docker.io/{image}"


def _show(progress: Progress) -> None:
    if not progress.total or progress.done % max(progress.total // 20, 1) == 0:
        print(progress, flush=True)


def main(arguments: list[str]) -> int:
    """Runs until TERM."""
    folder, count, scenario = Path(arguments[0]), int(arguments[1]), arguments[2]
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    plane = ControlPlane.open(folder)
    nodes.stop(plane)  # what a killed demo left is not tied to us
    try:
        spec = described.spec_of(scenario)
        aliases = images_of(spec)
        made = nodes.start(plane, count, spec, aliases=aliases, tied=True, tell=_show)
        print(READY, ", ".join(node.name for node in made), flush=True)
        while not ended.wait(LOOK_EVERY):
            for node in made:
                for what in mend(node):
                    print(f"{what} of {node.name} had ended; started again", flush=True)
    except PlaygroundError as error:
        print(error, flush=True)
        return 1
    finally:
        nodes.stop(plane)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
