"""Whatever is killed, and by whatever: no process, mount, cgroup or socket of a real node stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from playground.plane.controlplane import ControlPlane
from playground.realnodes.cgroups import hierarchies
from playground.realnodes.node import RealNode
from tests.playground.conftest import a_pod
from tests.playground.planes import NEWEST, built
from tests.playground.realnode import ALIASES, SETTINGS, RealGround, real_nodes_built

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).resolve().parents[3]
OUTER = ("unshare", "nsenter")
# Another process starts a node and shows that it is up; it never ends by itself.
STARTER = """
import sys, time
from pathlib import Path
from playground.plane.controlplane import ControlPlane
from playground.realnodes.node import RealNode
from tests.playground.realnode import ALIASES, SETTINGS
plane = ControlPlane.open(Path(sys.argv[1]))
node = RealNode(Path(sys.argv[2]), plane, "killed", settings=SETTINGS, aliases=ALIASES)
node.start(tied=sys.argv[3] == "tied")
print("up", flush=True)
time.sleep(1000)
"""


class Left:
    """What there is of a node on this machine, counted."""

    def __init__(self, node: RealNode):
        self.node = node
        self.processes = node.processes()
        self.outer = [found for found in map(_outer, node.processes()) if found]

    def count(self) -> dict[str, int]:
        alive = [one for one in (*self.processes, *self.outer) if _alive(one)]
        cgroups = [root / self.node.cgroup.name for root in hierarchies()]
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        listening = [
            one.laddr.port
            for one in psutil.net_connections("tcp")
            if one.status == psutil.CONN_LISTEN and one.laddr.port in self.node.ports.values()
        ]
        return {
            "processes": len(alive),
            "cgroups": sum(path.exists() for path in cgroups),
            "mounts": sum(str(self.node.folder) in line for line in mounts),
            "sockets": sum(path.is_socket() for path in self.node.folder.rglob("*")),
            "ports": len(listening),
        }


NOTHING = {"processes": 0, "cgroups": 0, "mounts": 0, "sockets": 0, "ports": 0}


def _outer(process: psutil.Process) -> psutil.Process | None:
    """The `unshare` or `nsenter` that a process of the node was started by."""
    with contextlib.suppress(psutil.Error):
        parent = process.parent()
        if parent and parent.name() in OUTER:
            return parent
    return None


def _alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@pytest.fixture
def node(real_plane: ControlPlane, tmp_path: Path) -> Iterator[RealNode]:
    """A node that no other test uses, off."""
    made = RealNode(tmp_path / "a node", real_plane, "killed", settings=SETTINGS, aliases=ALIASES)
    yield made
    made.wipe()


@pytest.fixture
def starter(node: RealNode, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """A process that has started the node, tied to itself or not."""
    command = [sys.executable, "-c", STARTER, node.plane.folder, node.folder, request.param]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def with_a_pod(node: RealNode, ground: RealGround) -> Left:
    """The node's remains to be, while a Pod runs on it."""
    ground.make(a_pod("a", bound=node.name))
    ground.ready("a", seconds=30)
    left = Left(node)
    assert left.count() | {"sockets": 0} == {
        "processes": len(left.processes) + len(left.outer),
        "cgroups": len(hierarchies()),
        "mounts": 0,
        "sockets": 0,
        "ports": 2,
    }
    assert {"containerd", "kubelet", "pause", "stand-in"} <= {one.name() for one in left.processes}
    assert len(left.outer) == 3
    return left


def forget_pod(ground: RealGround) -> None:
    ground.delete("Pod", "a", grace_seconds=0)


@pytest.mark.parametrize("starter", ["tied"], indirect=True)
def test_the_playground_killed_takes_its_nodes_along(
    node: RealNode, starter: subprocess.Popen[str], real_ground: RealGround
) -> None:
    left = with_a_pod(node, real_ground)
    starter.kill()
    starter.wait()
    until = time.monotonic() + 10
    while left.count() | {"sockets": 0} != NOTHING and time.monotonic() < until:
        time.sleep(0.05)
    assert left.count() | {"sockets": 0} == NOTHING, "without anybody's help"
    node.stop()
    assert left.count() == NOTHING
    forget_pod(real_ground)


@pytest.mark.parametrize("starter", ["untied"], indirect=True)
def test_a_node_that_outlived_its_playground_is_taken_down(
    node: RealNode, starter: subprocess.Popen[str], real_ground: RealGround
) -> None:
    left = with_a_pod(node, real_ground)
    starter.kill()
    starter.wait()
    assert node.running
    RealNode.open(node.folder, node.plane).stop()
    assert left.count() == NOTHING
    forget_pod(real_ground)


def kill_kubelet_and_containerd(node: RealNode) -> None:
    node.kill_kubelet()
    node.kill_containerd()


def kill_the_first_process(node: RealNode) -> None:
    os.kill(node.machine.first_pid, signal.SIGKILL)


def kill_what_holds_the_namespaces(node: RealNode) -> None:
    parent = psutil.Process(node.machine.first_pid).parent()
    assert parent is not None
    parent.kill()


def kill_what_led_into_the_namespaces(node: RealNode) -> None:
    for process in node.processes():
        parent = process.parent()
        if parent and parent.name() == "nsenter":
            parent.kill()


def freeze_everything(node: RealNode) -> None:
    for process in node.processes():
        process.suspend()


@pytest.mark.parametrize(
    "kill",
    [
        pytest.param(kill_kubelet_and_containerd, id="kubelet and containerd"),
        pytest.param(kill_the_first_process, id="the first process"),
        pytest.param(kill_what_holds_the_namespaces, id="unshare"),
        pytest.param(kill_what_led_into_the_namespaces, id="both nsenters"),
        pytest.param(freeze_everything, id="nothing, but all are frozen"),
    ],
)
def test_nothing_stays_after(
    kill: Callable[[RealNode], None], node: RealNode, real_ground: RealGround
) -> None:
    node.start()
    left = with_a_pod(node, real_ground)
    kill(node)
    node.stop()
    assert left.count() == NOTHING
    forget_pod(real_ground)


def playground(*words: str | Path, user: str = "") -> subprocess.CompletedProcess[str]:
    """`python -m playground …`, as root or as another user who may read root's built programs."""
    other = ["setpriv", f"--reuid={user}", "--regid=nogroup", "--clear-groups"]
    other += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--"]
    command = [*(other if user else ()), sys.executable, "-m", "playground", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "a plane"
    yield folder
    playground("down", "--wipe", "--folder", folder)


def test_up_and_down_as_people_type_it(folder: Path) -> None:
    real_nodes_built()
    up = playground("up", "--folder", folder, "--real-nodes", "2")
    assert up.returncode == 0, up.stderr
    assert f"Node real-2 is Ready, with a real kubelet {NEWEST}" in up.stdout
    plane = ControlPlane.open(folder)
    left = [Left(RealNode.open(folder / "nodes" / name, plane)) for name in ("real-1", "real-2")]
    for one in left:
        assert {"kubelet", "containerd"} <= {process.name() for process in one.processes}
    status = playground("status", "--folder", folder)
    assert status.returncode == 0
    assert "real node real-2" in status.stdout
    down = playground("down", "--folder", folder)
    assert down.returncode == 0, down.stderr
    assert [one.count() for one in left] == [NOTHING, NOTHING]


def test_an_ordinary_user_gets_one_sentence_and_the_rest(folder: Path) -> None:
    real_nodes_built()
    built(NEWEST)
    small = ["--without", "kube-scheduler", "--without", "kube-controller-manager"]
    up = playground("up", "--folder", folder, "--real-nodes", "1", *small, user="nobody")
    assert up.returncode == 0, up.stderr
    assert up.stderr == "Real nodes need root; the simulated ones run as any user.\n"
    assert f"Kubernetes {NEWEST} answers" in up.stdout
    assert not (folder / "nodes").exists()
