"""One real node: what it is, what survives what, and that a claim's devices reach a container."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
import pytest

from playground.plane.https import words
from playground.realnodes.node import RealNode
from tests.playground.conftest import a_claim, a_pod, condition
from tests.playground.planes import OLDER
from tests.playground.probing import install_probe, look
from tests.playground.realnode import RealGround, StartRealNode

pytestmark = pytest.mark.cluster


def started(pod: dict[str, object]) -> str:
    """When a Pod's first container started."""
    return str(pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"])  # type: ignore[index]


def test_the_node_says_what_it_is(real_node: RealNode, real_ground: RealGround) -> None:
    node = real_ground.node(real_node.name)
    assert node["status"]["nodeInfo"]["kubeletVersion"] == f"v{real_node.release}"
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
    assert "DRANodeAllocatableResources" in node["status"]["declaredFeatures"]
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == real_node.name


def test_a_pod_runs_and_its_words_are_kept(real_node: RealNode, real_ground: RealGround) -> None:
    began = time.monotonic()
    real_ground.make(a_pod("a", node=real_node.name))
    pod = real_ground.ready("a")
    print(f"Pod Ready after {time.monotonic() - began:.2f} s")
    assert pod["spec"]["nodeName"] == real_node.name
    seen = real_ground.wait("its words", lambda: real_ground.seen(real_node, "a"))
    assert "KUBERNETES_SERVICE_HOST" in seen["environment"]
    assert any(one.pid in real_node.cgroup.processes() for one in real_node.processes())


def test_a_claim_reaches_a_container_and_is_given_back(
    real_node: RealNode, real_ground: RealGround
) -> None:
    began = time.monotonic()

    def told(what: str) -> None:
        print(f"{what} after {time.monotonic() - began:.2f} s")

    name = real_node.name
    driver = real_ground.wait("the driver's Pod", lambda: real_ground.driver_pod(name))
    ready = lambda: condition(real_ground.driver_pod(name) or {}, "Ready") == "True"  # noqa: E731
    real_ground.wait(f"{driver['metadata']['name']} Ready", ready)
    told("driver's DaemonSet Pod Ready")
    real_ground.wait("the slice", lambda: real_ground.devices(name) == {"gpu-0", "gpu-1"})
    told("slice published")
    real_ground.make(a_claim("one", "l40s", template=True))
    real_ground.make(a_pod("a", template="one", node=name))
    real_ground.ready("a")
    told("Pod with a claim Ready")
    seen = real_ground.wait("what the container sees", lambda: real_ground.seen(real_node, "a"))
    given = [one["path"] for one in seen["devices"]]
    assert given in (["/dev/berth/gpu-0"], ["/dev/berth/gpu-1"])
    assert [one["kind"] for one in seen["devices"]] == ["c"]
    device = Path(given[0]).name
    assert seen["environment"][f"BERTH_DEVICE_{device.upper().replace('-', '_')}"] == device
    [claim] = real_ground.admin.list("ResourceClaim", namespace=real_ground.namespace).items
    [result] = real_ground.results(claim["metadata"]["name"])
    assert (result["pool"], result["device"]) == (name, device)
    real_ground.delete("Pod", "a")
    real_ground.gone("Pod", "a")
    real_ground.gone("ResourceClaim", claim["metadata"]["name"])
    told("given back")
    assert not list(real_node.path("/run/cdi").glob(f"*{claim['metadata']['uid']}*"))


def test_a_killed_kubelet_leaves_pods_running(real_node: RealNode, real_ground: RealGround) -> None:
    real_ground.make(a_pod("a", node=real_node.name))
    before = started(real_ground.ready("a"))
    real_node.kill_kubelet()
    lost = lambda: real_node.condition()["status"] == "Unknown"  # noqa: E731
    real_ground.wait("the Node lost", lost, seconds=60)
    assert real_node.condition()["reason"] == "NodeStatusUnknown"
    real_node.start_kubelet()
    assert started(real_ground.ready("a")) == before
    real_ground.restart_driver(real_node.name)


def test_a_killed_containerd_leaves_pods_running(
    real_node: RealNode, real_ground: RealGround
) -> None:
    real_ground.make(a_pod("a", node=real_node.name))
    before = started(real_ground.ready("a"))
    containers = real_node.cgroup.processes()
    real_node.kill_containerd()
    assert real_node.cgroup.processes() == containers != set()
    real_node.start_containerd()
    real_ground.make(a_pod("b", node=real_node.name))
    real_ground.ready("b", seconds=30)
    assert started(real_ground.pod("a")) == before


def test_the_machine_is_as_before(start_real_node: StartRealNode, real_ground: RealGround) -> None:
    """What a kubelet mounts and sets stays on its node; after it nothing is left anywhere."""
    sysctls = [Path("/proc/sys") / name for name in ("kernel/panic", "vm/overcommit_memory")]
    before = [path.read_text() for path in sysctls], mounts()
    node = start_real_node("brief")
    real_ground.make(a_pod("a", node="brief"))
    real_ground.ready("a")
    assert ([path.read_text() for path in sysctls], mounts()) == before
    assert node.enter("cat", "/proc/sys/kernel/panic").stdout == "10\n"
    processes, cgroups = node.processes(), node.cgroup.folders
    assert {"containerd", "kubelet", "pause", "stand-in"} <= {one.name() for one in processes}
    assert cgroups
    began = time.monotonic()
    node.stop()
    print(f"gone after {time.monotonic() - began:.2f} s")
    assert not [one for one in processes if psutil.pid_exists(one.pid)]
    assert not any(path.exists() for path in cgroups)
    assert not [path for path in node.folder.rglob("*") if path.is_socket()]
    assert mounts() == before[1]
    real_ground.delete("Pod", "a", grace_seconds=0)


def test_a_kubelets_numbers_can_be_read(real_node: RealNode) -> None:
    answer = real_node.metrics()
    assert answer.status == 200, words(answer)
    assert b"kubernetes_build_info" in answer.body


@pytest.mark.long
def test_a_node_may_be_a_release_older(
    start_real_node: StartRealNode, real_ground: RealGround
) -> None:
    start_real_node("older", release=OLDER)
    version = real_ground.node("older")["status"]["nodeInfo"]["kubeletVersion"]
    assert version == f"v{OLDER}"
    real_ground.wait("the slice", lambda: real_ground.devices("older") == {"gpu-0", "gpu-1"})
    real_ground.make(a_claim("one", "l40s", template=True))
    real_ground.make(a_pod("a", template="one", node="older"))
    real_ground.ready("a")
    install_probe(real_ground)
    told = look(real_ground, "older", "helios.example/gpu")
    assert told["devices"] == {"helios.example/gpu": []}
    assert told["claimsInUse"] == {"gpu.helios.example": 1}


def mounts() -> set[str]:
    return set(Path("/proc/self/mountinfo").read_text().splitlines())
