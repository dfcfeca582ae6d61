"""Real nodes for tests: one control plane for them per run, nodes started when first asked for.

`tests/conftest.py` imports the fixtures. A test may break a node's programs as it likes; before the
next one whatever does not run is started again. A test that pulls a node's plug makes a node of its
own (`start_real_node`).
"""

from __future__ import annotations

import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devices.cluster.gateway import Gateway, Ref
from playground.fleet.fleet import MANAGER
from playground.fleet.install import PROGRAM
from playground.fleet.site import gateway
from playground.fleet.spec import load
from playground.plane.components import Tuning
from playground.plane.controlplane import ControlPlane
from playground.realnodes import described, parts
from playground.realnodes.config import Settings
from playground.realnodes.guard import mend
from playground.realnodes.node import RealNode
from playground.realnodes.nodes import wait_ready
from tests.playground import resting
from tests.playground.conftest import Ground
from tests.playground.planes import NEWEST, built

REAL_FLEET = load(Path(__file__).parent / "realfleet.yaml")
# Who is silent for so many seconds is lost: few, but more than a kubelet is late on a busy machine.
NODE_GRACE = 20
# Heartbeats that suit it; a preparation that failed is tried again after 1 to 1.5 s.
SETTINGS = Settings(
    sync_seconds=1.0, status_seconds=2.0, kubelet={"nodeLeaseDurationSeconds": NODE_GRACE}
)
# What the tests' Pods call their image.
ALIASES = ("docker.io/library/app:1",)
Obj = dict[str, Any]
StartRealNode = Callable[..., RealNode]
RealNodes = Callable[[int], list[RealNode]]
_number = itertools.count(1)


def real_nodes_built(release: str = NEWEST) -> parts.Parts:
    """The programs of real nodes. Where Linux and root are given, missing ones are a failure."""
    if reason := parts.why_not():
        if sys.platform == "linux" and os.geteuid() == 0:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    try:
        return parts.built(release)
    except parts.PlaygroundError as error:
        pytest.fail(str(error), pytrace=False)


def start_together(nodes: Sequence[RealNode]) -> None:
    """Boots nodes side by side, for a boot is mostly waiting; returns when all are Ready."""
    with ThreadPoolExecutor(len(nodes) or 1) as threads:
        list(threads.map(partial(RealNode.start, tied=True, wait=False), nodes))
    wait_ready(nodes)


@pytest.fixture(scope="session")
def real_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The run's control plane for real nodes, of the newest release, with `REAL_FLEET`'s objects.

    None of its nodes is there yet, simulated ones neither.
    """
    real_nodes_built()
    folder = tmp_path_factory.mktemp("real")
    tuning = Tuning(node_grace=NODE_GRACE, audit=False)
    with ControlPlane(folder, built(NEWEST), tuning=tuning) as plane:
        admin = gateway(plane.admin_kubeconfig)
        for one in described.objects(REAL_FLEET, plane):
            admin.apply(one, manager=MANAGER, force=True)
        resting.planes[resting.REAL] = plane
        yield plane
        del resting.planes[resting.REAL]


@pytest.fixture(scope="session")
def start_real_node(real_plane: ControlPlane) -> Iterator[StartRealNode]:
    """`start_real_node(name, release=…, settings=…, wait=…)`: a new node, removed after the run.

    It has the labels and finds the devices of `REAL_FLEET`'s group `real`.
    """
    made: list[RealNode] = []

    def start(name: str, *, wait: bool = True, **options: Any) -> RealNode:
        settings = described.settings_of(REAL_FLEET, SETTINGS)
        options = {"settings": settings, "aliases": ALIASES} | options
        real_nodes_built(options.get("release") or NEWEST)
        node = RealNode(real_plane.folder / "nodes" / name, real_plane, name, **options)
        described.describe(node, REAL_FLEET)
        made.append(node)
        return node.start(tied=True, wait=wait)

    yield start
    for node in made:
        node.wipe()


@pytest.fixture(scope="session")
def real_nodes(start_real_node: StartRealNode) -> RealNodes:
    """`real_nodes(2)`: the run's nodes real-1 and real-2, all their programs running, Ready."""
    made: list[RealNode] = []

    def nodes(count: int) -> list[RealNode]:
        while len(made) < count:
            made.append(start_real_node(f"real-{len(made) + 1}", wait=False))
        for node in made[:count]:
            node.write_faults({})
            mend(node)
        wait_ready(made[:count])
        return made[:count]

    return nodes


@pytest.fixture
def real_node(real_nodes: RealNodes) -> RealNode:
    """The run's node real-1, all its programs running, Ready."""
    return real_nodes(1)[0]


class RealGround(Ground):
    """What tests look for in a namespace, where there is no simulated fleet."""

    def __init__(self, admin: Gateway, namespace: str) -> None:
        self.admin = admin
        self.namespace = namespace

    def driver_pod(self, node: str, part: str = "driver") -> Obj | None:
        """The Pod of the driver's (or the plugin's) DaemonSet on a node."""
        fields = f"spec.nodeName={node}"
        for pod in self.admin.list("Pod", namespace="helios", fields=fields).items:
            if pod["metadata"]["annotations"][PROGRAM].startswith(f"{part}:"):
                return pod
        return None

    def restart_driver(self, node: str) -> None:
        """Deletes the driver's Pod; returns when the next one has published.

        A kubelet that starts wipes its node's slices, and a driver that runs on would put them
        back only after 30 to 57 s.
        """
        old = self.driver_pod(node)
        if old is not None:
            self.admin.delete(Ref("Pod", old["metadata"]["name"], "helios"))
            self.gone_driver(node, old["metadata"]["uid"])
        self.wait("slices of the new driver", lambda: self.devices(node), seconds=60)

    def gone_driver(self, node: str, uid: str) -> None:
        """Returns when the driver's Pod on a node is not the one with that uid."""

        def another() -> bool:
            pod = self.driver_pod(node)
            return pod is not None and pod["metadata"]["uid"] != uid

        self.wait("another Pod of the driver", another, seconds=30)

    def seen(self, node: RealNode, pod: str) -> Obj:
        """What a Pod's container sees: {environment, devices, metadata}; {} while it is silent."""
        said = node.log(self.namespace, pod, "main")
        return dict(json.loads(said.splitlines()[-1])) if said else {}


@pytest.fixture
def real_ground(real_plane: ControlPlane) -> Iterator[RealGround]:
    """An empty namespace on the real nodes' control plane; emptied again afterwards."""
    name = f"real-test-{next(_number)}"
    found = RealGround(gateway(real_plane.admin_kubeconfig), name)
    found.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    found.wait("the namespace's account", lambda: found.get("ServiceAccount", "default"))
    yield found
    found.empty()
    found.admin.delete(Ref("Namespace", name))
