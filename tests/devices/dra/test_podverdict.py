"""Where a waiting Pod could go: devices and the node's own side together."""

from __future__ import annotations

from typing import Any

import pytest

from devices.dra.allocate import Kind, allocate
from devices.dra.gates import gates
from devices.dra.nodeside import budget_gaps
from devices.dra.podverdict import asked_by, device_cost, pod_verdicts, waiting
from devices.dra.snapshot import Snapshot, read
from tests.devices.dra.cases import by_number, objects, snapshot


def verdicts(cluster: Snapshot, name: str) -> dict[str, tuple[str, str, str]]:
    """By node: verdict, verdict on devices alone, code."""
    pod = next(pod for pod in cluster.pods.values() if pod.meta.name == name)
    return {v.node: (v.kind, v.devices, v.code) for v in pod_verdicts(cluster, pod)}


@pytest.mark.parametrize(
    "number, pod, expected",
    [
        (
            "02",
            "trainer-0",
            {"node-b1": ("OK", "OK", ""), "node-b2": ("FATAL", "FATAL", "SELECTOR_NO_SUCH_KEY")},
        ),
        ("14", "budget-small", {"node-m1": ("NO", "OK", "POD_BUDGET_TOO_SMALL")}),
        ("16", "second", {"node-o1": ("NO", "OK", "CLAIM_NOT_SHAREABLE")}),
        ("16", "third", {"node-o1": ("NO", "FATAL", "CLASS_MISSING")}),
        (
            "38",
            "w-0",
            {
                "node-g6": ("OK", "OK", ""),
                "node-g7": ("NO", "OK", "CLAIM_ELSEWHERE"),
                "node-g8": ("NO", "OK", "CLAIM_ELSEWHERE"),
            },
        ),
        (
            "47",
            "both",
            {
                node: ("NO", "NO", "NO_MATCHING_DEVICE_FREE")
                for node in ("node-o5", "node-o6", "node-o7")
            },
        ),
    ],
)
def test_a_pod_of_the_real_world(number, pod, expected) -> None:
    assert verdicts(snapshot(by_number(number)), pod) == expected


def test_a_claim_for_the_node_that_no_container_uses_is_refused_until_1_37() -> None:
    made = {"kind": "DeviceClass", "metadata": {"name": "dra.cpu"}, "spec": {}}
    every = [*objects(by_number("16")), made]
    said = {}
    for release in ("1.36", "1.37"):
        cluster = read(every, gates=gates(release, {"DRANodeAllocatableResources": True}))
        [verdict] = pod_verdicts(cluster, cluster.pods["team-a", "third"])
        said[release] = (verdict.kind, verdict.devices, verdict.code)
        [shared] = pod_verdicts(cluster, cluster.pods["team-a", "second"])
        words = "already used by another pod" if release == "1.36" else "be shared across pods"
        assert words in shared.message and shared.code == "CLAIM_NOT_SHAREABLE"
    assert said["1.36"] == ("NO", "OK", "CLAIM_NOT_REFERENCED")
    assert said["1.37"] == ("OK", "OK", "")


def test_a_budget_that_is_too_small_says_by_how_much() -> None:
    cluster = snapshot(by_number("14"))
    pod = cluster.pods["team-a", "budget-small"]
    asked = asked_by(pod, cluster)
    verdict = allocate(cluster, cluster.nodes["node-m1"], asked.wishes)
    cost = device_cost(cluster, pod, verdict, asked)
    assert {name: str(amount) for name, amount in cost.items()} == {"cpu": "4", "memory": "2Gi"}
    [gap] = budget_gaps(pod, cost)
    assert str(gap) == (
        "the Pod's cpu request 3 is smaller than containers 1 + devices 4; raise it to at least 5"
    )


# --- made nodes ---

CLASS = {
    "kind": "DeviceClass",
    "metadata": {"name": "c"},
    "spec": {"extendedResourceName": "a.com/x"},
}
TEMPLATE = {
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "t", "namespace": "ns"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}
    },
}


def a_slice(node: str, *names: str) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": name} for name in names]
    spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": f"s-{node}"}, "spec": spec}


def a_node(
    name: str, *, labels: Any = None, allocatable: Any = None, **spec: Any
) -> dict[str, Any]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "4", "pods": "2"} if allocatable is None else allocatable
        },
    }


def a_pod(*, requests: Any = None, claims: bool = True, **spec: Any) -> dict[str, Any]:
    named = [{"name": "g", "resourceClaimTemplateName": "t"}] if claims else []
    return {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {
            "containers": [{"name": "m", "resources": {"requests": requests or {"cpu": "1"}}}],
            "resourceClaims": named,
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def on_node(node: dict[str, Any], pod: dict[str, Any], *more: dict[str, Any]) -> tuple[str, str]:
    cluster = read([CLASS, TEMPLATE, a_slice("n", "x"), node, pod, *more], gates=gates("1.37"))
    [verdict] = pod_verdicts(cluster, cluster.pods["ns", "p"])
    return verdict.kind, verdict.code


BUSY = {
    "kind": "Pod",
    "metadata": {"name": "q", "namespace": "ns", "uid": "v"},
    "spec": {
        "nodeName": "n",
        "containers": [{"name": "m", "resources": {"requests": {"cpu": "3500m"}}}],
    },
    "status": {"phase": "Running"},
}
DONE = {**BUSY, "status": {"phase": "Succeeded"}}
IDLE = {**BUSY, "metadata": {"name": "r", "namespace": "ns", "uid": "w"}, "spec": {"nodeName": "n"}}
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "node, pod, more, verdict, code",
    [
        pytest.param(a_node("n"), a_pod(), (), "OK", "", id="fits"),
        pytest.param(a_node("n"), a_pod(), (BUSY,), "NO", "NODE_RESOURCES_SHORT", id="cpu is gone"),
        pytest.param(a_node("n"), a_pod(), (DONE,), "OK", "", id="an ended Pod holds no cpu"),
        pytest.param(
            a_node("n"), a_pod(), (DONE, IDLE), "OK", "", id="two Pods at most: one is there"
        ),
        pytest.param(
            a_node("n", allocatable={"cpu": "9", "pods": "1"}),
            a_pod(),
            (IDLE,),
            "NO",
            "NODE_RESOURCES_SHORT",
            id="no Pod more",
        ),
        pytest.param(
            a_node("n", allocatable={}), a_pod(), (BUSY,), "OK", "", id="nobody knows what it has"
        ),
        pytest.param(
            a_node("n", unschedulable=True), a_pod(), (), "NO", "NODE_CLOSED", id="cordon"
        ),
        pytest.param(
            a_node("n", unschedulable=True),
            a_pod(tolerations=[{"operator": "Exists"}]),
            (),
            "OK",
            "",
            id="a cordon can be tolerated",
        ),
        pytest.param(a_node("n", taints=[TAINT]), a_pod(), (), "NO", "NODE_TAINTED", id="taint"),
        pytest.param(
            a_node("n", taints=[{**TAINT, "effect": "PreferNoSchedule"}]),
            a_pod(),
            (),
            "OK",
            "",
            id="a wish is no taint",
        ),
        pytest.param(
            a_node("n", taints=[TAINT]),
            a_pod(tolerations=[{"key": "k", "value": "v"}]),
            (),
            "OK",
            "",
            id="a taint that is tolerated",
        ),
        pytest.param(
            a_node("n", labels={"a": "b"}),
            a_pod(nodeSelector={"a": "c"}),
            (),
            "NO",
            "NODE_NOT_SELECTED",
            id="node selector",
        ),
        pytest.param(
            a_node("n"),
            a_pod(
                affinity={
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchFields": [
                                        {
                                            "key": "metadata.name",
                                            "operator": "In",
                                            "values": ["other"],
                                        }
                                    ]
                                }
                            ]
                        }
                    }
                }
            ),
            (),
            "NO",
            "NODE_NOT_SELECTED",
            id="affinity",
        ),
        pytest.param(
            a_node("n"),
            a_pod(claims=False, requests={"a.com/x": "1"}),
            (),
            "OK",
            "",
            id="an extended resource by DRA",
        ),
        pytest.param(
            a_node("n"),
            a_pod(claims=False, requests={"a.com/x": "2"}),
            (),
            "NO",
            "NO_MATCHING_DEVICE_FREE",
            id="more than DRA has",
        ),
        pytest.param(
            a_node("n", allocatable={"cpu": "4", "a.com/x": "1"}),
            a_pod(claims=False, requests={"a.com/x": "2"}),
            (),
            "NO",
            "NODE_RESOURCES_SHORT",
            id="a plugin's node never mixes in DRA",
        ),
        pytest.param(
            a_node("n"),
            a_pod(claims=False, requests={"deviceclass.resource.kubernetes.io/c": "1"}),
            (),
            "OK",
            "",
            id="a class is an extended resource of its own",
        ),
    ],
)
def test_a_node_takes_a_pod(node, pod, more, verdict, code) -> None:
    assert on_node(node, pod, *more) == (verdict, code)


@pytest.mark.parametrize(
    "objects, code",
    [
        pytest.param([], "TEMPLATE_MISSING", id="no template"),
        pytest.param([TEMPLATE], "", id="read off the template"),
    ],
)
def test_a_claim_that_is_not_made_yet(objects, code) -> None:
    cluster = read([CLASS, a_slice("n", "x"), a_node("n"), a_pod(), *objects])
    [verdict] = pod_verdicts(cluster, cluster.pods["ns", "p"])
    assert verdict.code == code and (verdict.kind is Kind.OK) is (not code)


def test_a_node_that_only_slices_know_is_judged_by_its_devices() -> None:
    cluster = read([CLASS, TEMPLATE, a_slice("n", "x"), a_pod(nodeSelector={"a": "b"})])
    [verdict] = pod_verdicts(cluster, cluster.pods["ns", "p"])
    assert verdict.kind is Kind.OK and [str(given) for given in verdict.given] == ["d/n/x"]


@pytest.mark.parametrize(
    "change, waits",
    [
        ({}, True),
        ({"spec": {"nodeName": "n"}}, False),
        ({"status": {"phase": "Failed"}}, False),
        ({"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, False),
    ],
    ids=str,
)
def test_a_pod_waits_until_it_has_a_node(change, waits) -> None:
    cluster = read([a_pod() | change])
    [pod] = cluster.pods.values()
    assert waiting(pod) is waits


def test_what_devices_cost_counts_against_the_node() -> None:
    costly = a_slice("n", "x")
    costly["spec"]["devices"][0]["nodeAllocatableResources"] = {
        "cpu": {"mapping": {"deviceMultiplier": "4"}}
    }
    objects = [CLASS, TEMPLATE, costly, a_node("n"), a_pod()]
    on = gates("1.37", {"DRANodeAllocatableResources": True})
    [verdict] = pod_verdicts(read(objects, gates=on), read(objects).pods["ns", "p"])
    assert (verdict.kind, verdict.devices, verdict.code) == ("NO", "OK", "NODE_RESOURCES_SHORT")
    [verdict] = pod_verdicts(read(objects), read(objects).pods["ns", "p"])
    assert verdict.kind is Kind.OK  # the cluster does not count it
