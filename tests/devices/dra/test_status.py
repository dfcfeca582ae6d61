"""Where an ask stands, from its claims, its Pods and what was said about them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from devices.dra.devicestatus import Health, device_states
from devices.dra.lifecycle import State
from devices.dra.pods import read_pod
from devices.dra.podstatus import read_pod_status
from devices.dra.progress import Stage, progress
from devices.dra.status import status_of
from tests.devices.dra.cases import by_number, objects, snapshot

TEMPLATE = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {}}}}


def a_claim(name: str = "c", *, allocated: bool = False, reserved: str = "") -> dict[str, Any]:
    status: dict[str, Any] = {}
    if allocated:
        result = {"request": "r", "driver": "d", "pool": "n1", "device": "gpu-0"}
        pin = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
        status["allocation"] = {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [pin]}]},
            "allocationTimestamp": "2026-06-04T09:00:02Z",
        }
    if reserved:
        status["reservedFor"] = [{"resource": "pods", "name": "p", "uid": reserved}]
    meta = {"name": name, "namespace": "ns", "creationTimestamp": "2026-06-04T09:00:01Z"}
    return {"metadata": meta, "spec": {"devices": {}}, "status": status}


def a_pod(name: str = "p", claim: str = "c", node: str = "", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": f"uid-{name}",
            "creationTimestamp": "2026-06-04T09:00:00Z",
        },
        "spec": {"nodeName": node, "resourceClaims": [{"name": "g", "resourceClaimName": claim}]},
        "status": {"phase": "Pending", **status},
    }


def condition(kind: str, status: str, message: str = "", at: str = "09:00:03") -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "message": message,
        "lastTransitionTime": f"2026-06-04T{at}Z",
    }


UNFIT = condition("PodScheduled", "False", "0/1 nodes are available: 1 cannot allocate all claims.")
RUNNING = {
    "phase": "Running",
    "conditions": [
        condition("PodScheduled", "True"),
        condition("PodReadyToStartContainers", "True", at="09:00:05"),
        condition("Ready", "True", at="09:00:09"),
    ],
    "containerStatuses": [
        {"name": "m", "ready": True, "state": {"running": {"startedAt": "2026-06-04T09:00:08Z"}}}
    ],
}


@pytest.mark.parametrize(
    "claims, template, pods, state, code",
    [
        pytest.param([a_claim()], None, [], State.APPLIED, "WAITING_FOR_POD", id="no Pod yet"),
        pytest.param([], TEMPLATE, [], State.APPLIED, "WAITING_FOR_POD", id="a template waits too"),
        pytest.param(
            [a_claim()],
            None,
            [a_pod(conditions=[UNFIT])],
            State.PENDING,
            "NO_MATCHING_DEVICE_FREE",
            id="no device is free",
        ),
        pytest.param(
            [a_claim(allocated=True)],
            None,
            [],
            State.ALLOCATED,
            "NOT_RESERVED",
            id="allocated, and nobody uses it",
        ),
        pytest.param(
            [a_claim(allocated=True, reserved="uid-p")],
            None,
            [a_pod()],
            State.ALLOCATED,
            "BEING_BOUND",
            id="allocated, not bound",
        ),
        pytest.param(
            [a_claim(allocated=True, reserved="uid-p")],
            None,
            [a_pod(node="n1")],
            State.ALLOCATED,
            "PREPARING",
            id="bound, not prepared",
        ),
        pytest.param(
            [a_claim(allocated=True, reserved="uid-p")],
            None,
            [a_pod(node="n1", **RUNNING)],
            State.IN_USE,
            "",
            id="running needs no reason",
        ),
        pytest.param(
            [a_claim("c", allocated=True, reserved="uid-p"), a_claim("c2")],
            TEMPLATE,
            [a_pod("p", "c", "n1", **RUNNING), a_pod("q", "c2", conditions=[UNFIT])],
            State.IN_USE,
            "NO_MATCHING_DEVICE_FREE",
            id="one runs, one waits: the state of the first, the reason of the second",
        ),
        pytest.param(
            [a_claim(allocated=True)],
            None,
            [a_pod(node="n1", phase="Succeeded")],
            State.ALLOCATED,
            "NOT_RESERVED",
            id="its only Pod has ended",
        ),
    ],
)
def test_an_ask_stands(claims, template, pods, state, code) -> None:
    status = status_of(claims=claims, template=template, pods=pods)
    assert (status.state, status.code) == (state, code)


def test_an_unknown_text_is_passed_on() -> None:
    pod = a_pod(conditions=[condition("PodScheduled", "False", "the moon is wrong")])
    status = status_of(claims=[a_claim()], template=None, pods=[pod])
    assert (status.code, status.why) == ("UNMAPPED_MESSAGE", "the moon is wrong")


def test_an_event_is_believed_for_its_own_pod_only() -> None:
    event = {
        "involvedObject": {"uid": "uid-p"},
        "reason": "FailedPrepareDynamicResources",
        "message": "Failed to prepare dynamic resources: DRA driver d is not registered",
    }
    claim = a_claim(allocated=True, reserved="uid-p")
    status = status_of(claims=[claim], template=None, pods=[a_pod(node="n1")], events=[event])
    assert (status.code, status.why) == ("PREPARE_DRIVER_UNREACHABLE", event["message"])
    other = event | {"involvedObject": {"uid": "uid-q"}}
    assert (
        status_of(claims=[claim], template=None, pods=[a_pod(node="n1")], events=[other]).code
        == "PREPARING"
    )


def test_devices_are_named_with_their_node_and_pods_with_their_stage() -> None:
    status = status_of(
        claims=[a_claim(allocated=True, reserved="uid-p")],
        template=None,
        pods=[a_pod(node="n1", **RUNNING)],
    )
    assert [device.as_json() for device in status.placed] == [
        {
            "claim": "c",
            "request": "r",
            "driver": "d",
            "pool": "n1",
            "device": "gpu-0",
            "node": "n1",
        }
    ]
    assert status.node == "n1"
    assert [(pod.stage, pod.code, pod.ready) for pod in status.pods] == [
        ("running", "RUNNING", True)
    ]


def test_stages_carry_the_clusters_own_times() -> None:
    status = status_of(
        claims=[a_claim(allocated=True, reserved="uid-p")],
        template=None,
        pods=[a_pod(node="n1", **RUNNING)],
    )
    found = status.progress
    assert found is not None
    assert {step.stage: step.at and step.at.second for step in found.steps} == {
        Stage.CREATED: 0,
        Stage.GENERATED: 1,
        Stage.ALLOCATED: 2,
        Stage.BOUND: 3,
        Stage.PREPARED: 5,
        Stage.RUNNING: 8,
    }
    assert found.took(Stage.GENERATED, Stage.ALLOCATED) == timedelta(seconds=1)
    assert found.took(Stage.ALLOCATED, Stage.PREPARED) == timedelta(seconds=3)
    assert found.ready == datetime(2026, 6, 4, 9, 0, 9, tzinfo=UTC)


def test_a_time_that_the_cluster_does_not_keep_stays_unknown() -> None:
    claim = a_claim(allocated=True, reserved="uid-p")
    del claim["status"]["allocation"]["allocationTimestamp"]
    pod = a_pod(node="n1", phase="Succeeded")
    found = status_of(claims=[claim], template=None, pods=[pod]).progress
    assert found is not None and found.stage is Stage.RUNNING  # still reserved: not released
    assert found.at(Stage.ALLOCATED) is None and found.took(Stage.ALLOCATED, Stage.BOUND) is None
    claim["metadata"]["managedFields"] = [
        {"manager": "kube-scheduler", "subresource": "status", "time": "2026-06-04T09:00:02Z"},
        {"manager": "driver", "subresource": "status", "time": "2026-06-04T09:10:00Z"},
    ]
    found = status_of(claims=[claim], template=None, pods=[pod]).progress
    assert found is not None
    assert found.at(Stage.ALLOCATED) == datetime(2026, 6, 4, 9, 0, 2, tzinfo=UTC)


def test_an_ended_pod_whose_reservation_is_gone_is_released() -> None:
    found = status_of(claims=[a_claim()], template=None, pods=[a_pod(phase="Succeeded")]).progress
    assert found is not None and found.stage is Stage.RELEASED


def test_a_pod_without_its_claim_stands_at_its_beginning() -> None:
    pod = read_pod(a_pod())
    found = progress(pod, read_pod_status(pod.raw), [None])
    assert found.stage is Stage.CREATED


def test_each_device_stands_as_its_driver_says_and_silence_is_unknown() -> None:
    claim = snapshot(by_number("30")).claims["team-net", "nccl-0-rdma-8dj8b"]
    states = device_states(claim)
    assert [(state.result.device, state.health) for state in states] == [
        ("gpu0rdma0", Health.READY),
        ("gpu1rdma0", Health.FAILED),
        ("gpu2rdma0", Health.SILENT),
        ("gpu3rdma0", Health.UNREPORTED),
    ]
    assert (states[0].interface, states[0].addresses) == ("rdma0", ("192.0.2.20/31",))


def test_a_network_device_that_is_not_published_still_shows_its_addresses() -> None:
    claim = snapshot(by_number("09")).claims["team-net", "pod1-nic-8dj8b"]
    [state] = device_states(claim)
    assert (state.health, state.interface, state.hardware) == (
        Health.READY,
        "net1",
        "02:00:00:00:00:22",
    )


def test_a_pods_health_and_charges_are_read_as_they_stand() -> None:
    [raw] = [o for o in objects(by_number("44")) if o["metadata"]["name"] == "w-0"]
    health = read_pod_status(raw).health
    assert [(h.container, h.claim, h.request, h.health) for h in health] == [
        ("main", "own", "gpu", "Healthy"),
        ("main", "shared", "", "Unhealthy"),
        ("sidecar", "own", "", "Healthy"),
        ("sidecar", "own", "", "Unknown"),
    ]


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"status": None},
        {"status": {"conditions": "x", "containerStatuses": [None, 7, {}]}},
        {"status": {"nodeAllocatableResourceClaimStatuses": [{"mapping": [{"name": "cpu"}]}, 7]}},
    ],
    ids=str,
)
def test_a_status_that_makes_no_sense_is_read_as_far_as_it_goes(raw) -> None:
    assert read_pod_status(raw).conditions == {}
