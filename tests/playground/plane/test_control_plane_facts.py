"""What Kubernetes itself does with devices, on each release: the ground Berth is built on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.playground.planes import RELEASES, StartPlane
from tests.playground.world import World


@pytest.fixture(params=RELEASES)
def world(request: pytest.FixtureRequest, start_plane: StartPlane) -> Iterator[World]:
    world = World(start_plane(request.param), request.param)
    yield world
    world.remove()


def claim_of(world: World, name: str = "work") -> dict[str, str]:
    world.create(
        "ResourceClaimTemplate",
        {"metadata": {"name": name}, "spec": {"spec": world.claim_spec()}},
    )
    return {"name": "gpu", "resourceClaimTemplateName": name}


def mapping(release: str) -> dict[str, Any]:
    """One device brings 2 CPUs of its node: the field's shape in either release."""
    if release.startswith("1.36"):
        return {"nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "2"}}}
    return {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "2"}}}}


def test_a_claim_from_a_template_lives_and_dies_with_its_pod(world: World) -> None:
    world.a_class()
    node = world.node()
    assert world.offer(node, 1).status == 201
    world.pod("work", claims=[claim_of(world)])
    assert world.bound("work") == node
    (claim,) = world.items("ResourceClaim")
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["driver"], result["pool"], result["device"]) == (world.driver, node, "dev-0")
    assert [user["name"] for user in claim["status"]["reservedFor"]] == ["work"]
    reasons = world.until(lambda: {event["reason"] for event in world.items("Event")})
    assert "Scheduled" in reasons
    world.delete("Pod", "work", grace=0)
    world.until(lambda: not world.items("ResourceClaim"))


def test_a_mapping_needs_the_node_to_declare_the_feature_since_1_37(world: World) -> None:
    node = world.node()
    answer = world.offer(node, 1, **mapping(world.release))
    if world.is_136:
        assert answer.status == 201
        return
    assert answer.status in (403, 422)
    text = f'node "{node}" does not support DRANodeAllocatableResources feature'
    assert text in answer.json()["message"]
    world.set_status("Node", node, {"declaredFeatures": ["DRANodeAllocatableResources"]})
    world.until(lambda: world.offer(node, 1, **mapping(world.release)).status == 201)


def test_the_pods_status_tells_what_the_devices_bring(world: World) -> None:
    world.a_class()
    declared = {} if world.is_136 else {"declaredFeatures": ["DRANodeAllocatableResources"]}
    node = world.node(**declared)
    world.until(lambda: world.offer(node, 1, **mapping(world.release)).status == 201)
    world.pod("work", claims=[claim_of(world)])
    assert world.bound("work") == node
    (told,) = world.until(
        lambda: world.get("Pod", "work")["status"].get("nodeAllocatableResourceClaimStatuses")
    )
    assert told["containers"] == ["main"]
    assert told["resourceClaimName"].startswith("work-gpu-")
    if world.is_136:
        assert told["resources"] == {"cpu": "2"}
    else:
        assert told["mapping"] == [{"name": "cpu", "quantity": "2"}]


def test_an_overhead_is_told_apart_from_a_mapping_since_1_37(world: World) -> None:
    if world.is_136:
        answer = world.plane.ask("/openapi/v3/apis/resource.k8s.io/v1")
        assert b'"nodeAllocatableResources"' not in answer.body
        assert b'"nodeAllocatableResourceMappings"' in answer.body
        return
    world.a_class()
    node = world.node(declaredFeatures=["DRANodeAllocatableResources"])
    overhead = {"memory": {"overhead": {"perPod": "2Gi", "perContainer": "512Mi"}}}
    world.until(lambda: world.offer(node, 1, nodeAllocatableResources=overhead).status == 201)
    world.pod("work", claims=[claim_of(world)])
    world.bound("work")
    (told,) = world.until(
        lambda: world.get("Pod", "work")["status"].get("nodeAllocatableResourceClaimStatuses")
    )
    assert told["overhead"] == [{"name": "memory", "perPod": "2Gi", "perContainer": "512Mi"}]


def test_an_extended_resource_gets_no_device_with_a_mapping(world: World) -> None:
    """Two releases, two reasons; in 1.37 the scheduler chooses and then fails to say so."""
    name = f"example.com/gpu-{world.tag}"
    world.a_class(extendedResourceName=name)
    declared = {} if world.is_136 else {"declaredFeatures": ["DRANodeAllocatableResources"]}
    node = world.node(**declared)
    world.until(lambda: world.offer(node, 1, **mapping(world.release)).status == 201)
    world.pod("work", limits={name: "1"})
    said = world.unschedulable("work")
    if world.is_136:
        assert (
            "claim <extended-resources>: node-allocatable resource claim not referenced by any "
            "container within the pod"
        ) in said
    else:
        assert said.startswith('running PreBind plugin "DynamicResources"')
        assert (
            'resourceClaimName: Invalid value: "<extended-resources>": '
            "no mapping found in pod reference"
        ) in said


def test_one_pod_spec_runs_on_the_plugins_node_and_on_the_drivers(world: World) -> None:
    name = f"example.com/gpu-{world.tag}"
    world.a_class(extendedResourceName=name)
    plugin_node = world.node({name: "1"})
    world.pod("first", limits={name: "1"})
    assert world.bound("first") == plugin_node
    assert "extendedResourceClaimStatus" not in world.get("Pod", "first")["status"]
    dra_node = world.node()
    assert world.offer(dra_node, 1).status == 201
    world.pod("second", limits={name: "1"})
    assert world.bound("second") == dra_node
    status = world.until(
        lambda: world.get("Pod", "second")["status"].get("extendedResourceClaimStatus")
    )
    claim = world.get("ResourceClaim", status["resourceClaimName"])
    assert claim["metadata"]["name"].startswith("second-extended-resources-")
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["pool"], result["device"]) == (dra_node, "dev-0")


def test_nobody_in_kubernetes_objects_to_two_owners(world: World) -> None:
    """2 devices, advertised by the plugin and by the driver: 4 uses of them."""
    name = f"example.com/gpu-{world.tag}"
    world.a_class(extendedResourceName=name)
    node = world.node({name: "2"})
    assert world.offer(node, 2).status == 201
    for number in range(2):
        world.pod(f"by-name-{number}", limits={name: "1"})
        assert world.bound(f"by-name-{number}") == node
        assert "extendedResourceClaimStatus" not in world.get("Pod", f"by-name-{number}")["status"]
    world.create("ResourceClaim", {"metadata": {"name": "both"}, "spec": world.claim_spec(2)})
    world.pod("by-claim", claims=[{"name": "gpu", "resourceClaimName": "both"}])
    assert world.bound("by-claim") == node
    results = world.get("ResourceClaim", "both")["status"]["allocation"]["devices"]["results"]
    assert {result["device"] for result in results} == {"dev-0", "dev-1"}
    world.pod("by-name-2", limits={name: "1"})
    assert "Insufficient" in world.unschedulable("by-name-2"), "the plugin's count alone serves it"


def test_the_quota_of_a_class_refuses_the_claim_above_it(world: World) -> None:
    name = f"example.com/gpu-{world.tag}"
    world.a_class(extendedResourceName=name)
    key = f"{world.device_class}.deviceclass.resource.k8s.io/devices"
    world.create("ResourceQuota", {"metadata": {"name": "gpus"}, "spec": {"hard": {key: "1"}}})
    world.until(lambda: world.get("ResourceQuota", "gpus").get("status", {}).get("used"))
    world.create("ResourceClaim", {"metadata": {"name": "a"}, "spec": world.claim_spec()})
    second = {"metadata": {"name": "b"}, "spec": world.claim_spec()}
    answer = world.send("ResourceClaim", second)
    assert answer.status == 403
    assert answer.json()["message"] == (
        f'resourceclaims.resource.k8s.io "b" is forbidden: exceeded quota: gpus, '
        f"requested: {key}=1, used: {key}=1, limited: {key}=1"
    )


def test_the_quota_of_an_extended_resource_counts_claims_too(world: World) -> None:
    name = f"example.com/gpu-{world.tag}"
    world.a_class(extendedResourceName=name)
    hard = {f"requests.{name}": "1"}
    world.create("ResourceQuota", {"metadata": {"name": "gpus"}, "spec": {"hard": hard}})
    world.until(lambda: world.get("ResourceQuota", "gpus").get("status", {}).get("used"))
    answer = world.send("ResourceClaim", {"metadata": {"name": "a"}, "spec": world.claim_spec(2)})
    assert answer.status == 403
    assert f"requested: requests.{name}=2, used: requests.{name}=0" in answer.json()["message"]


def test_a_policy_reads_the_namespaces_list_of_classes(world: World) -> None:
    policy = f"classes-{world.tag}"
    allowed = "namespaceObject.metadata.annotations['berth.dev/device-classes'].split(',')"
    rule = {
        "apiGroups": ["resource.k8s.io"],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["resourceclaims"],
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}
    world.create(
        "ValidatingAdmissionPolicy",
        {
            "metadata": {"name": policy},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
                "validations": [
                    {
                        "expression": "object.spec.devices.requests.all(r, "
                        f"r.exactly.deviceClassName in {allowed})",
                        "message": "this class is not yours",
                    }
                ],
            },
        },
    )
    world.create(
        "ValidatingAdmissionPolicyBinding",
        {
            "metadata": {"name": f"{policy}-here"},
            "spec": {"policyName": policy, "validationActions": ["Deny"]},
        },
    )
    annotations = {"berth.dev/device-classes": "cpu.example.com,other.example.com"}
    path = world.path("Namespace", world.namespace)
    world.plane.ask(
        path,
        method="PATCH",
        body={"metadata": {"annotations": annotations}},
        content_type="application/merge-patch+json",
    )
    dry_run = {"metadata": {"generateName": "x-"}, "spec": world.claim_spec()}

    def refused() -> Any:
        answer = world.send("ResourceClaim", dry_run)
        return answer if answer.status != 201 else None

    answer = world.until(refused)  # policies need a moment to be in force
    assert answer.status == 422
    assert answer.json()["message"].endswith(
        f"ValidatingAdmissionPolicy '{policy}' with binding '{policy}-here' denied request: "
        "this class is not yours"
    )
    allowed_spec = world.claim_spec()
    allowed_spec["devices"]["requests"][0]["exactly"]["deviceClassName"] = "cpu.example.com"
    world.create("ResourceClaim", {"metadata": {"name": "fine"}, "spec": allowed_spec})


def eviction(world: World, rule: str) -> dict[str, Any]:
    conditions = world.get("DeviceTaintRule", rule).get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == "EvictionInProgress"), {})


def test_a_taint_rule_says_what_it_would_evict_and_then_does(world: World) -> None:
    world.a_class()
    node = world.node()
    assert world.offer(node, 1).status == 201
    world.pod("work", claims=[claim_of(world)])
    world.bound("work")
    rule = f"rule-{world.tag}"
    selector = {"driver": world.driver, "pool": node, "device": "dev-0"}
    taint = {"key": "example.com/broken", "value": "yes", "effect": "None"}
    world.create(
        "DeviceTaintRule",
        {"metadata": {"name": rule}, "spec": {"deviceSelector": selector, "taint": taint}},
    )
    told = world.until(lambda: eviction(world, rule))
    assert (told["status"], told["reason"]) == ("False", "NoEffect")
    assert told["message"].startswith(
        "1 published device selected. 1 allocated device selected. "
        "1 pod would be evicted in 1 namespace if the effect was NoExecute. "
        "This information will not be updated again"
    )
    assert "deletionTimestamp" not in world.get("Pod", "work")["metadata"]
    world.plane.ask(
        world.path("DeviceTaintRule", rule),
        method="PATCH",
        body={"spec": {"taint": {**taint, "effect": "NoExecute"}}},
        content_type="application/merge-patch+json",
    )
    told = world.until(lambda: (e := eviction(world, rule)).get("status") == "True" and e)
    assert told["reason"] == "PodsPendingEviction"
    world.until(lambda: "deletionTimestamp" in world.get("Pod", "work")["metadata"])
    world.delete("Pod", "work", grace=0)  # there is no kubelet that would
    told = world.until(lambda: (e := eviction(world, rule)).get("status") == "False" and e)
    assert told["reason"] == "Completed"
    assert "1 pod evicted since starting the controller." in told["message"]


def test_a_pools_status_is_counted_on_request(world: World) -> None:
    world.a_class()
    node = world.node()
    assert world.offer(node, 3).status == 201
    world.pod("work", claims=[claim_of(world)])
    world.bound("work")
    name = f"count-{world.tag}"
    world.create(
        "ResourcePoolStatusRequest",
        {"metadata": {"name": name}, "spec": {"driver": world.driver}},
    )
    status = world.until(lambda: world.get("ResourcePoolStatusRequest", name).get("status"))
    assert status["poolCount"] == 1
    (pool,) = status["pools"]
    counts = {key: pool[f"{key}Devices"] for key in ("total", "allocated", "available")}
    assert counts == {"total": 3, "allocated": 1, "available": 2}
    assert pool.get("unavailableDevices", 0) == 0
    assert (pool["poolName"], pool["nodeName"]) == (node, node)
