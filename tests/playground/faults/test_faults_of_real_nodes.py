"""The faults of simulated nodes on real ones, by command and as Python, each mended again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from playground.commands.table import main
from playground.errors import PlaygroundError
from playground.faults.table import broken, find
from playground.realnodes.guard import mend
from playground.realnodes.node import RealNode
from tests.playground.conftest import a_claim, a_pod, condition
from tests.playground.realnode import RealGround, StartRealNode

pytestmark = pytest.mark.cluster

Obj = dict[str, Any]
Fault = Callable[..., str]

DRIVER = "gpu.helios.example"
RESOURCE = "helios.example/gpu"
FAILED = "FailedPrepareDynamicResources"


@pytest.fixture(scope="module")
def node(start_real_node: StartRealNode) -> RealNode:
    return start_real_node("broken-1")


@pytest.fixture
def ground(node: RealNode, real_ground: RealGround) -> RealGround:
    """With the node's driver at work."""
    real_ground.wait("both devices", lambda: len(real_ground.devices(node.name)) == 2, seconds=60)
    return real_ground


@pytest.fixture
def fault(node: RealNode, capsys: pytest.CaptureFixture[str]) -> Fault:
    """`fault("device-gone", "--device", "gpu-1")`, as people type it; returns what it says."""

    def command(name: str, *words: str) -> str:
        place = ["--folder", str(node.plane.folder), "--node", node.name]
        assert main(["fault", name, *place, *words]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return command


def test_preparing_fails_by_command_until_it_is_mended(
    ground: RealGround, node: RealNode, fault: Fault
) -> None:
    claims = ["--claims", f"{ground.namespace}/*"]
    said = fault("prepare-fails", *claims, "--message", "device is on fire")
    assert said == f"preparing {claims[1]} on broken-1 fails\n"
    ground.make(a_claim("c", "l40s"), a_pod("a", claim="c", node=node.name))
    words = ground.wait("the event", lambda: ground.said("a", FAILED))
    assert words.endswith("NodePrepareResources failed for ResourceClaim c: device is on fire")
    fault("prepare-fails", "--mend")
    ground.ready("a")


def test_faults_add_up_and_are_mended_one_by_one(
    ground: RealGround, node: RealNode, fault: Fault
) -> None:
    ground.make(a_claim("c", "l40s"), a_pod("a", claim="c", node=node.name))
    ground.ready("a")
    [result] = ground.results("c")
    [other] = {"gpu-0", "gpu-1"} - {result["device"]}

    def health() -> str:
        [container] = ground.pod("a")["status"]["containerStatuses"]
        return str(container.get("allocatedResourcesStatus"))

    with broken(node, "device-gone", device=other):
        ground.wait("one device", lambda: ground.devices(node.name) == {result["device"]})
        fault("device-unhealthy", "--device", result["device"], "--message", "too hot")
        ground.wait("unwell", lambda: "too hot" in health())
        assert ground.devices(node.name) == {result["device"]}, "still"
    ground.wait("both devices", lambda: len(ground.devices(node.name)) == 2)
    assert "too hot" in health()
    fault("device-unhealthy", "--device", result["device"], "--mend")
    ground.wait("well", lambda: "'Healthy'" in health())
    with broken(node, "device-tainted", device=result["device"], effect="NoExecute"):
        ground.gone("Pod", "a")


def test_preparing_is_slow(ground: RealGround, node: RealNode) -> None:
    with broken(node, "prepare-slow", seconds=1.5):
        ground.make(a_claim("c", "l40s"), a_pod("a", claim="c", node=node.name))
        began = time.monotonic()
        ground.ready("a")
    assert time.monotonic() - began >= 1.5


def test_a_driver_crashes_and_its_slices_stay(ground: RealGround, node: RealNode) -> None:
    def restarts() -> int:
        pod = ground.driver_pod(node.name) or {}
        return int(pod["status"]["containerStatuses"][0]["restartCount"])

    before, slices = restarts(), ground.slices(node.name)
    find("driver-restart").do(node, mend=False, arguments={})
    ground.wait("started anew", lambda: restarts() == before + 1, seconds=40)
    uids = {one["metadata"]["uid"] for one in ground.slices(node.name)}
    assert uids == {one["metadata"]["uid"] for one in slices}


def test_the_plugin_beside_the_driver_and_down(
    ground: RealGround, node: RealNode, fault: Fault
) -> None:
    def free() -> str:
        return str(ground.node(node.name)["status"]["allocatable"].get(RESOURCE, "none"))

    with broken(node, "both-paths"):
        ground.wait("the plugin's devices", lambda: free() == "2", seconds=40)
        with broken(node, "plugin-down"):
            ground.wait("none", lambda: free() == "0")
        ground.wait("two again", lambda: free() == "2", seconds=40)
        fault("path", "--to", "none")
        labels = ground.node(node.name)["metadata"]["labels"]
        assert not {"helios.example/driver", "helios.example/plugin"} & set(labels)
    labels = ground.node(node.name)["metadata"]["labels"]
    assert labels["helios.example/driver"] == "true"
    assert "helios.example/plugin" not in labels


def test_a_kubelet_that_a_fault_keeps_down_is_no_crash(ground: RealGround, node: RealNode) -> None:
    with broken(node, "kubelet-down"):
        assert node.held == "kubelet"
        assert mend(node) == [], "the demo's guard leaves it alone"
        assert not node.kubelet_pid
    ground.wait("its process", lambda: node.kubelet_pid)
    ready = lambda: condition(ground.node(node.name), "Ready") == "True"  # noqa: E731
    ground.wait("the node Ready", ready, seconds=60)
    ground.restart_driver(node.name)


def test_a_node_is_deleted_and_comes_back_as_another(ground: RealGround, node: RealNode) -> None:
    before = ground.node(node.name)["metadata"]["uid"]
    with broken(node, "node-deleted"):
        assert not node.running
        assert mend(node) == []
        assert ground.node(node.name) == {}
    ready = lambda: condition(ground.node(node.name), "Ready") == "True"  # noqa: E731
    ground.wait("the node Ready", ready, seconds=60)
    assert ground.node(node.name)["metadata"]["uid"] != before
    ground.wait("its slices", lambda: len(ground.devices(node.name)) == 2, seconds=60)


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        pytest.param("attach-fails", {"driver": DRIVER}, "is no fault of a node", id="a fabric's"),
        pytest.param("slices-removed", {"stay": True}, "puts its slices back", id="for ever"),
        pytest.param("kubelet-down", {"node": "real-9"}, "real-9 is not", id="another's"),
    ],
)
def test_what_a_real_node_cannot_have(
    node: RealNode, name: str, arguments: Obj, words: str
) -> None:
    with pytest.raises(PlaygroundError, match=words):
        find(name).do(node, mend=False, arguments=arguments)
