"""Driver and device plugin in Go on a real node: what they give, how they fail on demand."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from playground.building.go_programs import build_program
from playground.building.releases import releases
from playground.realnodes.node import RealNode
from tests.playground.conftest import a_claim, a_pod
from tests.playground.realnode import SETTINGS, RealGround, StartRealNode

pytestmark = pytest.mark.cluster

Obj = dict[str, Any]

OLDEST = releases()[-1]
DRIVER = "gpu.helios.example"
RESOURCE = "helios.example/gpu"
FAILED = "Failed to prepare dynamic resources: prepare dynamic resources: "


class Broken:
    """Switches of one real node."""

    def __init__(self, node: RealNode) -> None:
        self.node = node

    def driver(self, **faults: Any) -> None:
        self.node.write_faults({"drivers": {DRIVER: faults}})

    def plugin(self, **faults: Any) -> None:
        self.node.write_faults({"plugins": {RESOURCE: faults}})

    def mend(self) -> None:
        self.node.write_faults({})


@pytest.fixture
def broken(real_node: RealNode, real_ground: RealGround) -> Iterator[Broken]:
    """The node real-1 with its driver running; mended afterwards."""
    name = real_node.name
    real_ground.wait("the slice", lambda: real_ground.devices(name) == {"gpu-0", "gpu-1"})
    found = Broken(real_node)
    yield found
    found.mend()


def restarts(ground: RealGround, node: str, part: str = "driver") -> int:
    pod = ground.driver_pod(node, part)
    assert pod is not None
    return int(pod["status"]["containerStatuses"][0]["restartCount"])


@pytest.mark.parametrize(
    "rule, said",
    [
        pytest.param(
            {"claims": "*/c", "fail": "simulated: device is on fire"},
            FAILED
            + "NodePrepareResources failed for ResourceClaim c: simulated: device is on fire",
            id="one claim is refused",
        ),
        pytest.param(
            {"fail": "simulated: rpc broken", "wholeCall": True},
            FAILED + "NodePrepareResources: rpc error: code = Unknown desc ="
            " prepare resource claims: simulated: rpc broken",
            id="the whole call fails",
        ),
    ],
)
def test_preparing_fails_in_the_driver_s_words(
    broken: Broken, real_ground: RealGround, rule: Obj, said: str
):
    broken.driver(prepare=[rule])
    real_ground.make(a_claim("c", "l40s"), a_pod("a", claim="c", node=broken.node.name))
    event = "FailedPrepareDynamicResources"
    assert real_ground.wait("the event", lambda: real_ground.said("a", event)) == said
    broken.mend()
    real_ground.ready("a")


def test_a_rule_about_other_claims_and_one_that_is_slow(broken: Broken, real_ground: RealGround):
    broken.driver(prepare=[{"claims": "*/other", "fail": "x"}, {"slowMilliseconds": 1500}])
    real_ground.make(a_claim("c", "l40s"), a_pod("a", claim="c", node=broken.node.name))
    began = time.monotonic()
    real_ground.ready("a")
    assert time.monotonic() - began >= 1.5


def told_health(ground: RealGround) -> Obj:
    """What the status of Pod a says of its only device."""
    [container] = ground.pod("a")["status"]["containerStatuses"]
    [claim] = container.get("allocatedResourcesStatus") or [{}]
    [one] = claim.get("resources") or [{}]
    return dict(one)


def test_a_device_s_health_reaches_the_pod(broken: Broken, real_ground: RealGround):
    ground = real_ground
    ground.make(a_claim("c", "l40s"), a_pod("a", claim="c", node=broken.node.name))
    ground.ready("a")
    [result] = ground.results("c")
    ground.wait("healthy", lambda: told_health(ground).get("health") == "Healthy")
    broken.driver(health={result["device"]: {"state": "Unhealthy", "message": "ECC error"}})
    ground.wait("unhealthy", lambda: told_health(ground).get("health") == "Unhealthy")
    uid = (ground.get("ResourceClaim", "c") or {})["metadata"]["uid"]
    assert told_health(ground) == {
        "health": "Unhealthy",
        "message": "ECC error",
        "resourceID": f"{DRIVER}/device={uid}-{result['device']}",
    }
    broken.mend()
    ground.wait("well again", lambda: told_health(ground).get("health") == "Healthy")


def test_devices_go_come_back_and_are_tainted(broken: Broken, real_ground: RealGround):
    name = broken.node.name
    taint = {"key": "helios.example/ecc", "effect": "NoSchedule"}
    broken.driver(gone=["gpu-1"], taints={"gpu-0": [taint]})
    real_ground.wait("one device", lambda: real_ground.devices(name) == {"gpu-0"})
    [device] = real_ground.slices(name)[0]["spec"]["devices"]
    assert [{key: one[key] for key in taint} for one in device["taints"]] == [taint]
    broken.driver(silent=True)
    time.sleep(1)
    assert real_ground.devices(name) == {"gpu-0"}, "a silent driver publishes nothing"
    broken.mend()
    real_ground.wait("both devices", lambda: real_ground.devices(name) == {"gpu-0", "gpu-1"})


def test_a_driver_is_down_until_it_is_let_up(broken: Broken, real_ground: RealGround):
    name = broken.node.name
    before = restarts(real_ground, name)
    broken.driver(down=True)
    real_ground.wait("restarted", lambda: restarts(real_ground, name) == before + 1, seconds=40)
    real_ground.make(a_claim("c", "l40s"), a_pod("a", claim="c", node=name))
    event = "FailedPrepareDynamicResources"
    words = real_ground.wait("the event", lambda: real_ground.said("a", event))
    assert words.startswith(FAILED), words
    broken.mend()
    real_ground.ready("a")
    assert len(real_ground.devices(name)) == 2, "thirty seconds have not passed"


def test_a_container_reads_its_device_s_attributes(broken: Broken, real_ground: RealGround):
    real_ground.make(a_claim("c", "l40s"), a_pod("a", claim="c", node=broken.node.name))
    real_ground.ready("a")
    seen = real_ground.wait("its words", lambda: real_ground.seen(broken.node, "a"))
    [path] = seen["metadata"]
    assert path.startswith("/var/run/kubernetes.io/dra-device-attributes/")
    claim = real_ground.get("ResourceClaim", "c") or {}
    [told] = claim["status"]["devices"]
    assert [(one["type"], one["status"]) for one in told["conditions"]] == [("Ready", "True")]


@pytest.fixture(scope="module")
def plugin_node(start_real_node: StartRealNode) -> RealNode:
    """A node that has the plugin and never had the driver."""
    settings = replace(SETTINGS, labels={"helios.example/plugin": "true"}, status_seconds=1.0)
    return start_real_node("plugin-1", settings=settings)


def offered(ground: RealGround, node: str) -> tuple[str | None, str | None]:
    status = ground.node(node)["status"]
    return status["capacity"].get(RESOURCE), status["allocatable"].get(RESOURCE)


def test_the_plugin_s_devices(plugin_node: RealNode, real_ground: RealGround):
    name, ground, broken = plugin_node.name, real_ground, Broken(plugin_node)
    ground.wait("two devices", lambda: offered(ground, name) == ("2", "2"), seconds=40)
    ground.make(a_pod("a", limits={RESOURCE: "1"}, node=name))
    ground.ready("a")
    seen = ground.wait("its words", lambda: ground.seen(plugin_node, "a"))
    [device] = seen["devices"]
    assert (device["kind"], device["major"], device["minor"]) == ("c", 1, 3)
    held = device["path"].removeprefix("/dev/berth/")
    assert seen["environment"][f"BERTH_DEVICE_{held.upper().replace('-', '_')}"] == held

    broken.plugin(health={held: {"state": "Unhealthy", "message": "ECC error"}})
    ground.wait("one is well", lambda: offered(ground, name) == ("2", "1"))
    broken.plugin(gone=[held])
    ground.wait("one is there", lambda: offered(ground, name) == ("1", "1"))
    broken.mend()
    ground.wait("two again", lambda: offered(ground, name) == ("2", "2"))

    broken.plugin(allocate=[{"fail": "simulated: no more"}])
    ground.make(a_pod("b", limits={RESOURCE: "1"}, node=name))
    why = lambda: ground.pod("b")["status"].get("reason", "")  # noqa: E731
    assert ground.wait("refused", why) == "UnexpectedAdmissionError"
    assert "simulated: no more" in ground.pod("b")["status"]["message"]


def test_the_plugin_registers_with_a_new_kubelet(plugin_node: RealNode, real_ground: RealGround):
    name, ground, broken = plugin_node.name, real_ground, Broken(plugin_node)
    ground.wait("two devices", lambda: offered(ground, name) == ("2", "2"), seconds=40)
    broken.plugin(ignoreKubelet=True)
    time.sleep(0.5)
    plugin_node.kill_kubelet()
    plugin_node.start_kubelet()
    ground.wait("none, for it is ignored", lambda: offered(ground, name) == ("0", "0"))
    broken.mend()
    ground.wait("two devices again", lambda: offered(ground, name) == ("2", "2"))
    before = restarts(ground, name, "plugin")
    broken.plugin(crash=int(time.time()))
    ground.wait("started anew", lambda: restarts(ground, name, "plugin") == before + 1)
    ground.wait("two devices at last", lambda: offered(ground, name) == ("2", "2"))


def test_the_plugin_as_a_plain_process(real_node: RealNode, real_ground: RealGround):
    node, ground = real_node, real_ground
    control = "/var/lib/kubelet/berth"
    files = [f"--devices={control}/devices.json", f"--faults={control}/faults.json"]
    program = [str(build_program("simplugin", node.release)), f"--resource={RESOURCE}"]
    node.machine.start("simplugin", [*program, *files])
    ground.wait("two devices", lambda: offered(ground, node.name) == ("2", "2"), seconds=40)
    ground.make(a_pod("a", limits={RESOURCE: "1"}, node=node.name))
    ground.ready("a")
    seen = ground.wait("its words", lambda: ground.seen(node, "a"))
    assert len(seen["devices"]) == 1
    ground.empty()
    node.machine.end("simplugin", signal.SIGTERM)
    ground.wait("none", lambda: offered(ground, node.name) == ("2", "0"))


def test_the_older_release_s_driver_as_a_plain_process(
    plugin_node: RealNode, real_ground: RealGround
):
    """It tells health and metadata by other calls than the newest one; the kubelet takes both."""
    node, ground = plugin_node, real_ground
    control = "/var/lib/kubelet/berth"
    node.machine.start(
        "simdriver",
        [
            str(build_program("simdriver", OLDEST)),
            f"--driver={DRIVER}",
            f"--node={node.name}",
            f"--devices={control}/devices.json",
            f"--faults={control}/faults.json",
            f"--kubeconfig={node.plane.admin_kubeconfig}",
        ],
    )
    ground.wait("the slice", lambda: ground.devices(node.name) == {"gpu-0", "gpu-1"})
    ground.make(a_claim("c", "l40s"), a_pod("a", claim="c", node=node.name))
    ground.ready("a")
    [result] = ground.results("c")
    sick = {result["device"]: {"state": "Unhealthy", "message": "ECC error"}}
    Broken(node).driver(health=sick)
    ground.wait("unhealthy", lambda: told_health(ground).get("message") == "ECC error")
    seen = ground.wait("its words", lambda: ground.seen(node, "a"))
    assert [one["path"] for one in seen["devices"]] == [f"/dev/berth/{result['device']}"]
    assert len(seen["metadata"]) == 1
    ground.empty()
    node.machine.end("simdriver", signal.SIGTERM)
    assert not list(node.path(f"/var/lib/kubelet/plugins/{DRIVER}").glob("*.sock"))
