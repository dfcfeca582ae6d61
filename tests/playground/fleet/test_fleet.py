"""Drivers, plugins and controllers of a fleet: what they publish, offer and attach, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from devices.cluster.gateway import Forbidden, Gateway, Ref, Rejected
from playground.faults.table import broken
from playground.fleet.clock import Pace
from playground.fleet.install import PROGRAM
from tests.playground.conftest import Ground, a_claim, a_pod, condition

Obj = dict[str, Any]

GPU = "gpu.helios.example"
RESOURCE = "helios.example/gpu"
FABRIC = "fabric.weave.example"


@pytest.fixture
def label(ground: Ground) -> Any:
    """`label(node, key, value)` changes a label as an admin; undone afterwards, Pods first: they
    cannot give their devices back without the driver."""
    changed: dict[tuple[str, str], str | None] = {}

    def change(node: str, key: str, value: str | None) -> None:
        changed.setdefault((node, key), ground.node(node)["metadata"]["labels"].get(key))
        ground.admin.merge(Ref("Node", node), {"metadata": {"labels": {key: value}}})

    yield change
    ground.empty()
    for (node, key), value in changed.items():
        ground.admin.merge(Ref("Node", node), {"metadata": {"labels": {key: value}}})


def program_pods(ground: Ground, program: str, node: str) -> list[Obj]:
    return [
        pod
        for pod in ground.admin.list("Pod", fields=f"spec.nodeName={node}").items
        if pod["metadata"].get("annotations", {}).get(PROGRAM) == program
    ]


def offered(ground: Ground, node: str) -> tuple[str, str]:
    """Capacity and allocatable of the plugin's resource; "" where the key is absent."""
    status = ground.node(node)["status"]
    return status["capacity"].get(RESOURCE, ""), status["allocatable"].get(RESOURCE, "")


# Drivers


def test_a_pool_is_published_over_several_slices_owned_by_the_node(ground: Ground) -> None:
    slices = sorted(ground.slices("gpu-1"), key=lambda one: one["metadata"]["name"])
    assert [len(one["spec"]["devices"]) for one in slices] == [2, 2]
    assert [one["metadata"]["name"][:12] for one in slices] == ["00000-gpu.he", "00001-gpu.he"]
    for one in slices:
        pool = one["spec"]["pool"]
        assert (pool["name"], pool["resourceSliceCount"]) == ("gpu-1", 2)
        (owner,) = one["metadata"]["ownerReferences"]
        assert owner["uid"] == ground.node("gpu-1")["metadata"]["uid"]
    numa = [
        device["attributes"]["resource.kubernetes.io/numaNode"]["int"]
        for one in slices
        for device in one["spec"]["devices"]
    ]
    assert numa == [0, 0, 1, 1]


def test_a_driver_runs_exactly_where_its_daemon_set_s_label_is(ground: Ground, label: Any) -> None:
    label("gpu-2", "helios.example/driver", None)
    ground.wait("no driver Pod", lambda: not program_pods(ground, f"driver:{GPU}", "gpu-2"))
    ground.wait("no slices", lambda: not ground.slices("gpu-2"))
    label("gpu-2", "helios.example/driver", "true")
    ground.wait("slices", lambda: len(ground.devices("gpu-2")) == 4)


def test_a_driver_that_restarts_in_time_leaves_its_slices_as_they_are(ground: Ground) -> None:
    before = [one["metadata"]["resourceVersion"] for one in ground.slices("gpu-1")]

    def restarts() -> int:
        (pod,) = program_pods(ground, f"driver:{GPU}", "gpu-1")
        (container,) = pod["status"]["containerStatuses"]
        return int(container["restartCount"])

    count = restarts()
    with broken(ground.fleet, "driver-restart", node="gpu-1"):
        ground.wait("a restart", lambda: restarts() == count + 1)
        ground.wait("registered", lambda: ground.fleet.agent(GPU, "gpu-1"))
    assert [one["metadata"]["resourceVersion"] for one in ground.slices("gpu-1")] == before


def test_a_driver_that_is_down_loses_its_slices_and_holds_up_pods(ground: Ground) -> None:
    ground.make(a_claim("old"), a_pod("old", claim="old", node="gpu-1"))
    ground.ready("old")
    ground.make(a_claim("new"))
    with broken(ground.fleet, "driver-down", node="gpu-1"):
        # Still scheduled onto the dead driver, whose slices live on for a while.
        ground.make(a_pod("new", claim="new", node="gpu-1"))
        said = ground.wait("the event", lambda: ground.said("new", "FailedPrepareDynamicResources"))
        assert said == (
            "Failed to prepare dynamic resources: prepare dynamic resources:"
            f" DRA driver {GPU} is not registered"
        )
        ground.wait("no slices", lambda: not ground.slices("gpu-1"))
        assert condition(ground.pod("old"), "Ready") == "True"
        assert ground.results("old"), "an allocation outlives the slice"
        ground.delete("Pod", "old")
        unknown = lambda: not ground.fleet.kubelets["gpu-1"].drivers  # noqa: E731
        ground.wait("unregistered", unknown)
        assert ground.pod("old")["metadata"]["deletionTimestamp"], "nobody can unprepare"
    ground.gone("Pod", "old")
    ground.ready("new")


def test_more_than_one_changed_slice_is_a_new_generation(ground: Ground) -> None:
    def generations() -> set[int]:
        return {one["spec"]["pool"]["generation"] for one in ground.slices("gpu-1")}

    (before,) = generations()
    gone = {"node": "gpu-1", "device": "gpu-0"}
    # The devices behind the missing one move up, so both slices change.
    with broken(ground.fleet, "device-gone", **gone):
        ground.wait("the next generation", lambda: generations() == {before + 1})
    ground.wait("and the next", lambda: generations() == {before + 2})
    with broken(ground.fleet, "device-gone", node="gpu-1", device="gpu-3"):
        ground.wait("three devices", lambda: len(ground.devices("gpu-1")) == 3)
        assert generations() == {before + 2}, "one changed slice keeps the generation"
    ground.wait("four devices", lambda: len(ground.devices("gpu-1")) == 4)


# Rights


def test_a_driver_s_account_writes_slices_of_its_own_node_and_driver_only(ground: Ground) -> None:
    agent = ground.fleet.agent(GPU, "gpu-1")
    assert agent is not None

    def a_slice(node: str, driver: str) -> Obj:
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"generateName": "forged-"},
            "spec": {
                "driver": driver,
                "nodeName": node,
                "pool": {"name": "forged", "generation": 1, "resourceSliceCount": 1},
                "devices": [],
            },
        }

    agent.gateway.create(a_slice("gpu-1", GPU), dry_run=True)
    with pytest.raises(Rejected, match="only write slices of node gpu-1"):
        agent.gateway.create(a_slice("gpu-2", GPU), dry_run=True)
    with pytest.raises(Rejected, match=f"only write slices of driver {GPU}"):
        agent.gateway.create(a_slice("gpu-1", FABRIC), dry_run=True)


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(
            lambda gateway, pod: gateway.merge(
                Ref("Pod", pod["metadata"]["name"], pod["metadata"]["namespace"]),
                {"status": {"phase": "Failed"}},
                subresource="status",
            ),
            id="the status of another node's Pod",
        ),
        pytest.param(
            lambda gateway, pod: gateway.merge(
                Ref("Node", "gpu-1"), {"metadata": {"labels": {"x": "y"}}}
            ),
            id="another Node",
        ),
        pytest.param(
            lambda gateway, pod: gateway.get(
                Ref("ResourceClaim", "c", pod["metadata"]["namespace"])
            ),
            id="a claim of another node's Pod",
        ),
    ],
)
def test_a_kubelet_has_no_right_to(ground: Ground, act: Callable[[Gateway, Obj], Any]) -> None:
    ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-1"))
    pod = ground.ready("work")
    with pytest.raises((Forbidden, Rejected)):
        act(ground.fleet.kubelets["gpu-2"].gateway, pod)


# Plugins, and both paths


def test_a_plugin_s_pod_is_given_a_device_by_the_kubelet(ground: Ground) -> None:
    ground.wait("two devices", lambda: offered(ground, "dual-1") == ("2", "2"))
    ground.make(a_pod("work", limits={RESOURCE: "2"}, node="dual-1"))
    pod = ground.ready("work")
    assert "extendedResourceClaimStatus" not in pod["status"]
    (container,) = pod["status"]["containerStatuses"]
    assert container["allocatedResources"] == {RESOURCE: "2"}
    assert container["allocatedResourcesStatus"] == [
        {
            "name": RESOURCE,
            "resources": [{"resourceID": f"dev-{n}", "health": "Healthy"} for n in (0, 1)],
        }
    ]


def test_the_kubelet_refuses_a_pod_for_which_no_device_is_left(ground: Ground) -> None:
    ground.wait("two devices", lambda: offered(ground, "dual-1") == ("2", "2"))
    ground.make(a_pod("first", limits={RESOURCE: "1"}, node="dual-1"))
    ground.ready("first")
    ground.make(a_pod("greedy", limits={RESOURCE: "2"}, bound="dual-1"))
    ground.wait("refused", lambda: ground.pod("greedy")["status"]["phase"] == "Failed")
    status = ground.pod("greedy")["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert status["message"] == (
        "Pod was rejected: Allocate failed due to requested number of devices unavailable for"
        f" {RESOURCE}. Requested: 2, Available: 1, which is unexpected"
    )


def test_one_pod_runs_on_whichever_path_its_node_has(ground: Ground, label: Any) -> None:
    pace: Pace = ground.fleet.site.pace
    # The plugin goes: nothing allocatable at once, capacity only after the grace, the key stays.
    ground.wait("two devices", lambda: offered(ground, "dual-2") == ("2", "2"))
    label("dual-2", "helios.example/plugin", None)
    ground.wait("nothing allocatable", lambda: offered(ground, "dual-2") == ("2", "0"))
    ground.wait(
        "no capacity",
        lambda: offered(ground, "dual-2") == ("0", "0"),
        seconds=pace.plugin_grace + 10,
    )
    # The driver comes: the same Pod is now given a device by the scheduler.
    label("dual-2", "helios.example/driver", "true")
    ground.wait("two devices by DRA", lambda: len(ground.devices("dual-2")) == 2)
    ground.make(a_pod("work", limits={RESOURCE: "1"}, node="dual-2"))
    pod = ground.ready("work")
    told = pod["status"]["extendedResourceClaimStatus"]
    (result,) = ground.results(told["resourceClaimName"])
    assert (result["driver"], result["pool"]) == (GPU, "dual-2")
    (container,) = pod["status"]["containerStatuses"]
    assert "allocatedResourcesStatus" not in container
    claim = ground.get("ResourceClaim", told["resourceClaimName"]) or {}
    annotations = claim["metadata"]["annotations"]
    assert annotations["resource.kubernetes.io/extended-resource-claim"] == "true"


def test_the_kubelet_s_memory_of_a_plugin_holds_up_pods_on_the_new_path(
    ground: Ground, label: Any
) -> None:
    kubelet = ground.fleet.kubelets["dual-1"]
    ground.wait("two devices", lambda: offered(ground, "dual-1") == ("2", "2"))
    ground.make(a_pod("before", limits={RESOURCE: "1"}, node="dual-1"))
    ground.ready("before")
    ground.delete("Pod", "before")
    ground.gone("Pod", "before")
    label("dual-1", "helios.example/plugin", None)
    ground.wait("no capacity", lambda: offered(ground, "dual-1") == ("0", "0"))
    label("dual-1", "helios.example/driver", "true")
    ground.wait("two devices by DRA", lambda: len(ground.devices("dual-1")) == 2)
    ground.make(a_pod("after", limits={RESOURCE: "1"}, node="dual-1"))
    words = f"Error: endpoint not found in cache for a registered resource: {RESOURCE}"
    ground.wait("the trap", lambda: ground.said("after", "Failed") == words)

    def waiting() -> str:
        (container,) = ground.pod("after")["status"]["containerStatuses"]
        return str(container["state"]["waiting"]["reason"])

    ground.wait("the reason", lambda: waiting() == "CreateContainerConfigError")
    kubelet.report()  # as a podresources List does, which is the cure
    ground.ready("after")


def test_a_plugin_that_crashes_offers_nothing_until_it_is_back(ground: Ground) -> None:
    ground.wait("two devices", lambda: offered(ground, "dual-1") == ("2", "2"))
    ground.make(a_pod("holder", limits={RESOURCE: "1"}, node="dual-1"))
    before = ground.ready("holder")
    with broken(ground.fleet, "plugin-down", node="dual-1"):
        ground.wait("nothing allocatable", lambda: offered(ground, "dual-1") == ("2", "0"))
        assert ground.pod("holder")["status"] == before["status"], "it still says Healthy"
        ground.make(a_pod("late", limits={RESOURCE: "1"}, bound="dual-1"))
        refused = lambda: ground.pod("late")["status"].get("reason", "")  # noqa: E731
        ground.wait("refused", lambda: refused() == "UnexpectedAdmissionError")
        assert "no healthy devices present" in ground.pod("late")["status"]["message"]
    ground.wait("two devices again", lambda: offered(ground, "dual-1") == ("2", "2"))


def test_both_paths_at_once_offer_the_same_devices_twice(ground: Ground) -> None:
    with broken(ground.fleet, "both-paths", node="dual-1"):
        ground.wait("by DRA", lambda: len(ground.devices("dual-1")) == 2)
        ground.wait("by the plugin", lambda: offered(ground, "dual-1") == ("2", "2"))
        ground.make(a_pod("plugin", limits={RESOURCE: "2"}, node="dual-1"))
        ground.make(a_claim("c", "l40s"), a_pod("claim", claim="c", node="dual-1"))
        ground.ready("plugin")
        ground.ready("claim")
        ground.empty()
    ground.wait("one path", lambda: not ground.slices("dual-1"))


# Fabric


def test_a_device_on_the_fabric_is_allocated_first_and_attached_before_the_pod_is_bound(
    ground: Ground,
) -> None:
    ground.wait("the pool", lambda: pool(ground))
    ground.make(a_claim("c", "fabric"), a_pod("work", claim="c"))
    ground.wait("allocated", lambda: ground.results("c"))
    assert not ground.pod("work")["spec"].get("nodeName"), "attaching takes a second"
    pod = ground.ready("work")
    assert pod["spec"]["nodeName"] in ("fabric-1", "fabric-2")
    (told,) = (ground.get("ResourceClaim", "c") or {})["status"]["devices"]
    assert [one["type"] for one in told["conditions"]] == ["weave.example/attached"]


def test_a_device_that_cannot_be_attached_is_given_up_and_tried_again(ground: Ground) -> None:
    ground.wait("the pool", lambda: pool(ground))
    with broken(ground.fleet, "attach-fails", driver=FABRIC, times=1):
        ground.make(a_claim("c", "fabric"), a_pod("work", claim="c"))
        failed = lambda: "binding failed" in ground.said("work", "FailedScheduling")  # noqa: E731
        ground.wait("the failure told", failed)
        ground.ready("work", seconds=60)


def pool(ground: Ground) -> list[Obj]:
    return list(ground.admin.list("ResourceSlice", fields=f"spec.driver={FABRIC}").items)


# Node-allocatable resources


def test_cores_of_a_claim_count_into_the_node_s_own_account(ground: Ground) -> None:
    ground.wait("the zones", lambda: len(ground.devices("cpu-1", "cpu.numa.example")) == 2)
    wish = {"requests": {"cpu.numa.example/cores": "20"}}
    ground.make(a_claim("c", "cores", capacity=wish), a_pod("work", claim="c"))
    pod = ground.ready("work")
    (told,) = pod["status"]["nodeAllocatableResourceClaimStatuses"]
    if ground.fleet.plane.release.startswith("1.36"):
        assert told["resources"] == {"cpu": "20"}
    else:
        assert told["mapping"] == [{"name": "cpu", "quantity": "20"}]
    (device, *_) = ground.slices("cpu-1", "cpu.numa.example")[0]["spec"]["devices"]
    shapes = {key for key in device if key.startswith("nodeAllocatable")}
    assert len(shapes) == 1, "a driver knows the shape of its release only"
