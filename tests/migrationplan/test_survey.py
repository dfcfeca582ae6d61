"""The survey of a node pool: who uses what, what would break, who goes first, and risks."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from devices.dra.gates import gates
from devices.dra.snapshot import Snapshot, read
from migrationplan.survey import Survey, survey
from migrationplan.survey.users import By, PoolFacts
from tests.factories import NOON

Obj = dict[str, Any]
GPU, DRIVER = "vendor.example/gpu", "gpu.vendor.example"
POOL = PoolFacts(
    name="Rack",
    selector={"pool": "rack"},
    resource=GPU,
    driver=DRIVER,
    device_class="h100",
    plugin_label="x.example/plugin=on",
    driver_label="x.example/dra=on",
    sets=frozenset({"gpu/plugin", "gpu/driver"}),
    devices_per_node=4,
)


def a_node(name: str, plugin: int = 4, *, ready: str = "True") -> Obj:
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"pool": "rack"}},
        "status": {
            "allocatable": {GPU: str(plugin)},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }


def a_pod(name: str, node: str = "", *, namespace: str = "team", gpus: int = 1, **more: Any) -> Obj:
    """Options: `job` and `retryable` and `ends` (hours), `claim`, `switch`."""
    resources = {"resources": {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}}}
    meta: Obj = {"name": name, "namespace": namespace, "uid": name, "labels": {}}
    if more.get("retryable"):
        meta["labels"]["berth.dev/retryable"] = "true"
    if "ends" in more:
        end = NOON + timedelta(hours=more["ends"])
        meta["annotations"] = {"berth.dev/expected-end": end.isoformat()}
    if job := more.get("job"):
        meta["ownerReferences"] = [{"kind": "Job", "name": job, "uid": job, "controller": True}]
    spec: Obj = {"containers": [{"name": "main", **(resources if gpus else {})}]}
    if node:
        spec["nodeName"] = node
    if claim := more.get("claim"):
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    if more.get("switch"):
        spec["nodeSelector"] = {"x.example/plugin": "on"}
    return {
        "kind": "Pod",
        "metadata": meta,
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


def a_claim(name: str, node: str = "") -> Obj:
    request = {"name": "r", "exactly": {"deviceClassName": "h100"}}
    claim: Obj = {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "team", "uid": f"c-{name}"},
        "spec": {"devices": {"requests": [request]}},
    }
    if node:
        result = {"request": "r", "driver": DRIVER, "pool": node, "device": "gpu-0"}
        claim["status"] = {"allocation": {"devices": {"results": [result]}}}
    return claim


def a_slice(node: str) -> Obj:
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": f"s-{node}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(4)],
        },
    }


def a_class(extended: str = "") -> Obj:
    spec: Obj = {"selectors": [{"cel": {"expression": f"device.driver == '{DRIVER}'"}}]}
    if extended:
        spec["extendedResourceName"] = extended
    return {"kind": "DeviceClass", "metadata": {"name": "h100"}, "spec": spec}


def seen(*objects: Obj) -> Snapshot:
    return read(objects, gates=gates("1.37"))


def codes(found: Survey) -> set[str]:
    return {one.code for one in found.breaks}


def test_nodes_go_in_the_order_of_risk() -> None:
    cluster = seen(
        a_class(GPU),
        *(a_node(f"n{number}") for number in range(1, 8)),
        a_node("n8", 0), a_slice("n8"),
        a_node("n9"), a_slice("n9"),
        a_pod("forever", "n1"),
        a_pod("soon", "n2", ends=2),
        a_pod("later", "n3", ends=5),
        a_pod("again", "n4", retryable=True), a_pod("again-too", "n4", retryable=True),
        a_pod("one", "n5", retryable=True),
        a_pod("mixed", "n7", retryable=True), a_pod("mixed-firm", "n7", ends=1),
    )  # fmt: skip
    found = survey(POOL, cluster)
    assert [(wave.name, wave.nodes) for wave in found.waves] == [
        ("Canary", ("n6",)),
        ("Retryable", ("n5", "n4")),
        ("Ending", ("n7", "n2", "n3")),
        ("Long-running", ("n1",)),
    ]
    assert [wave.pods for wave in found.waves] == [0, 3, 4, 1]
    assert found.waves[3].until is None
    assert dict(found.owners) == {"plugin": 7, "dra": 1, "conflict": 1}
    assert found.left_out == (
        ("n8", "it has moved"),
        ("n9", "it has two owners: a person must look first"),
    )
    assert any("Two owners on n9" in risk for risk in found.risks)
    assert any("No end is known of team/forever" in risk for risk in found.risks)


def test_workloads_are_told_by_owner_and_path() -> None:
    cluster = seen(
        a_class(GPU), a_node("a"), a_node("b", 0), a_slice("b"),
        a_pod("t-0", "a", job="train", gpus=2, ends=1), a_pod("t-1", job="train", ends=3),
        a_claim("mine", "b"), a_pod("by-claim", "b", gpus=0, claim="mine"),
        a_claim("waits"), a_pod("waiting", gpus=0, claim="waits"),
        a_pod("elsewhere", "z"), a_pod("no-device", "a", gpus=0),
        a_pod("over", "a") | {"status": {"phase": "Succeeded"}},
    )  # fmt: skip
    found = {one.name: one for one in survey(POOL, cluster).workloads}
    assert set(found) == {"train", "by-claim", "waiting"}
    train = found["train"]
    assert (train.kind, train.by, train.pods, train.devices) == ("Job", By.PLUGIN, 2, 3)
    assert (train.nodes, train.waiting, train.ends) == (("a",), 1, NOON + timedelta(hours=3))
    assert (found["by-claim"].by, found["by-claim"].devices) == (By.CLAIM, 1)
    assert (found["waiting"].by, found["waiting"].nodes) == (By.CLAIM, ())


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param((a_class(GPU), a_pod("p", "a")), set(), id="the class serves the name"),
        pytest.param((a_class(), a_pod("p", "a")), {"SURVEY_NO_PATH"}, id="nobody serves it"),
        pytest.param((a_pod("p", "a"),), {"SURVEY_NO_PATH"}, id="there is no class"),
        pytest.param((a_class(), a_claim("c"), a_pod("p", gpus=0, claim="c")), set(), id="claims"),
        pytest.param(
            (a_class(GPU), a_claim("c"), a_pod("p", claim="c")), {"SURVEY_BOTH_PATHS"}, id="both"
        ),
        pytest.param(
            (a_class(GPU), a_pod("p", "a", switch=True)), {"SURVEY_PINNED_TO_SWITCH"}, id="pinned"
        ),
    ],
)  # fmt: skip
def test_what_would_break(objects: tuple[Obj, ...], expected: set[str]) -> None:
    assert codes(survey(POOL, seen(a_node("a"), *objects))) == expected


def test_a_cluster_that_serves_no_extended_resources_by_dra_leaves_pods_without_a_path() -> None:
    cluster = seen(a_class(GPU), a_node("a"), a_pod("p", "a"))
    older = replace(cluster, gates=gates("1.34"), memo={})
    assert codes(survey(POOL, cluster)) == set()
    assert codes(survey(POOL, older)) == {"SURVEY_NO_PATH"}


def test_quotas_that_count_the_name_only_are_named() -> None:
    def quota(name: str, **hard: str) -> Obj:
        keys = {"plugin": f"requests.{GPU}", "claims": "h100.deviceclass.resource.k8s.io/devices"}
        spec = {"hard": {keys[key]: value for key, value in hard.items()}}
        return {"metadata": {"name": name, "namespace": "team"}, "spec": spec}

    quotas = [quota("old", plugin="8"), quota("both", plugin="8", claims="8"), quota("none")]
    (found,) = survey(POOL, seen(a_class(), a_node("a")), quotas=quotas).breaks
    assert (found.code, found.what) == ("SURVEY_QUOTA_BY_NAME", ("team/old: 8",))
    served = survey(POOL, seen(a_class(GPU), a_node("a")), quotas=quotas)
    assert not served.breaks, "such a name counts claims of the class too"


def test_daemonsets_that_select_on_a_switch_are_named_unless_the_pool_does() -> None:
    def daemons(name: str, spec: Obj) -> Obj:
        return {
            "metadata": {"name": name, "namespace": "gpu"},
            "spec": {"template": {"spec": spec}},
        }

    term = {"matchExpressions": [{"key": "x.example/dra", "operator": "Exists"}]}
    needed = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    sets = [
        daemons("plugin", {"nodeSelector": {"x.example/plugin": "on"}}),
        daemons("exporter", {"nodeSelector": {"x.example/plugin": "on"}}),
        daemons("labeller", {"affinity": {"nodeAffinity": needed}}),
        daemons("logs", {"nodeSelector": {"kubernetes.io/os": "linux"}}),
    ]
    (found,) = survey(POOL, seen(a_class(), a_node("a")), sets=sets).breaks
    assert found.code == "SURVEY_SWITCH_SHARED"
    assert found.what == ("gpu/exporter: x.example/plugin", "gpu/labeller: x.example/dra")


def test_risks_are_said() -> None:
    cluster = seen(a_class(GPU), a_node("a", 3), a_node("b", ready="False"), a_pod("w"))
    risks = " ".join(survey(replace(POOL, sets=frozenset()), cluster).risks)
    for said in ("Not ready: b", "than 4 on a", "No DaemonSet is named", "1 Pod waits"):
        assert said in risks
    unknown = survey(replace(POOL, devices_per_node=None), cluster)
    assert any("Nobody recorded" in risk for risk in unknown.risks)


def test_an_empty_pool_is_an_empty_survey() -> None:
    found = survey(POOL, seen())
    assert (found.nodes, found.waves, found.workloads, found.breaks) == (0, (), (), ())
