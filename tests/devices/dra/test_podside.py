"""Asks without a claim of their own: where they stand, from their Pods alone."""

from __future__ import annotations

from typing import Any

import pytest

from devices.dra.lifecycle import State
from devices.dra.podside import scheduler_claims, status_by_pods

Obj = dict[str, Any]
NAME = "x.example/gpu"


def a_pod(
    name: str = "p", *, node: str = "", phase: str = "Pending", said: str = "", **status: Any
) -> Obj:
    conditions = [
        {
            "type": "PodScheduled",
            "status": "True" if node else "False",
            "reason": "" if node else "Unschedulable",
            "message": said,
        }
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "n",
            "uid": name,
            "creationTimestamp": "2026-11-02T12:00:00Z",
        },
        "spec": {
            **({"nodeName": node} if node else {}),
            "containers": [{"name": "main", "resources": {"limits": {NAME: "2"}}}],
        },
        "status": {"phase": phase, "conditions": conditions, **status},
    }


GIVEN = [
    {
        "name": "main",
        "state": {"running": {"startedAt": "2026-11-02T12:00:09Z"}},
        "allocatedResourcesStatus": [
            {"name": NAME, "resources": [{"resourceID": f"dev-{n}"} for n in (0, 1)]}
        ],
    }
]
SHORT = f"0/3 nodes are available: 3 Insufficient {NAME}."


@pytest.mark.parametrize(
    ("pods", "state", "code", "devices"),
    [
        pytest.param([], State.APPLIED, "WAITING_FOR_POD", [], id="no Pod yet"),
        pytest.param(
            [a_pod(phase="Succeeded", node="n1")],
            State.APPLIED,
            "WAITING_FOR_POD",
            [],
            id="one that has ended holds nothing",
        ),
        pytest.param(
            [a_pod(said=SHORT)],
            State.PENDING,
            "EXTENDED_RESOURCE_SHORT",
            [],
            id="no node has enough of them",
        ),
        pytest.param([a_pod(node="n1")], State.ALLOCATED, None, [], id="bound: it holds them"),
        pytest.param(
            [a_pod(node="n1", phase="Running", containerStatuses=GIVEN)],
            State.IN_USE,
            "",
            ["dev-0", "dev-1"],
            id="running, and the kubelet names the devices",
        ),
        pytest.param(
            [a_pod("a", said=SHORT), a_pod("b", node="n1", phase="Running")],
            State.IN_USE,
            "EXTENDED_RESOURCE_SHORT",
            [],
            id="one runs and the other waits",
        ),
    ],
)
def test_where_it_stands(
    pods: list[Obj], state: State, code: str | None, devices: list[str]
) -> None:
    found = status_by_pods(resources=[(NAME, 2)], claims=[], pods=pods)
    assert found.state is state
    assert code is None or found.code == code
    assert [device.device for device in found.placed] == devices
    assert [pod.name for pod in found.pods] == [pod["metadata"]["name"] for pod in pods]
    if not pods:
        assert f"2 × {NAME}" in found.why


def test_the_claim_that_the_scheduler_made_says_the_rest() -> None:
    status = {"extendedResourceClaimStatus": {"resourceClaimName": "p-extended-resources-x7"}}
    pod = a_pod(node="n1", **status)
    assert scheduler_claims([pod, a_pod("q")]) == ["p-extended-resources-x7"]
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "p-extended-resources-x7", "namespace": "n", "uid": "c"},
        "spec": {"devices": {"requests": []}},
        "status": {
            "allocation": {
                "devices": {
                    "results": [
                        {"request": "r", "driver": "d.example", "pool": "n1", "device": "gpu-3"}
                    ]
                }
            }
        },
    }
    found = status_by_pods(resources=[(NAME, 1)], claims=[claim], pods=[pod])
    assert found.state is State.ALLOCATED
    assert [(device.driver, device.device) for device in found.placed] == [("d.example", "gpu-3")]
