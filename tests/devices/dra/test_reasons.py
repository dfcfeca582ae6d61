"""Why a Pod stands where it stands: the cases of the real world, and what no message says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from devices.dra.claims import Claim
from devices.dra.codes import Class, Who
from devices.dra.events import Event, newest, read_event
from devices.dra.meta import Meta, Owner
from devices.dra.pods import Pod, PodClaim
from devices.dra.podstatus import Condition, ContainerSeen, PodStatus, read_pod_status
from devices.dra.reasons import Around, Reason, pod_reason
from tests.devices.dra.cases import by_number, objects, snapshot

NOW = datetime(2026, 6, 4, 9, 5, tzinfo=UTC)


def reason(number: str, name: str, now: datetime | None = None) -> Reason:
    """The reason for one Pod of a case, from its objects and events."""
    cluster = snapshot(by_number(number))
    pod = next(pod for pod in cluster.pods.values() if pod.meta.name == name)
    events = [read_event(obj) for obj in objects(by_number(number)) if obj["kind"] == "Event"]
    claims = {key[1]: c for key, c in cluster.claims.items() if key[0] == pod.meta.namespace}
    return pod_reason(
        pod,
        read_pod_status(pod.raw),
        Around(claims),
        [event for event in events if event.uid == pod.meta.uid],
        now,
    )


@pytest.mark.parametrize(
    "number, pod, code, class_, who, said",
    [
        ("14", "budget-small", "POD_BUDGET_TOO_SMALL", "not retryable", "tenant", "own cpu budget"),
        ("16", "second", "CLAIM_NOT_SHAREABLE", "not retryable", "tenant", "cpu-claim"),
        ("16", "third", "CLAIM_NOT_REFERENCED", "not retryable", "tenant", "idle-claim"),
        ("29", "alive", "RUNNING", "information", "nobody", ""),
        ("30", "nccl-0", "DEVICE_NOT_READY", "retryable", "platform", "1 of 4 devices"),
        ("31", "infer-5", "PREPARE_DRIVER_UNREACHABLE", "retryable", "nobody", "gpu.nvidia.com"),
        ("36", "p-class", "CLASS_MISSING", "not retryable", "platform", "gpu.nvidia.com"),
        ("36", "p-mixed", "NO_MATCHING_DEVICE_FREE", "retryable", "nobody", ""),
        ("36", "p-inuse", "CLAIM_IN_USE", "retryable", "tenant", ""),
        ("36", "p-deleting", "CLAIM_BEING_DELETED", "needs cleanup", "tenant", "old-claim"),
        ("36", "p-waiting", "CLAIM_NOT_GENERATED", "retryable", "nobody", ""),
        ("36", "p-template", "TEMPLATE_MISSING", "not retryable", "tenant", "single-gpu"),
        ("36", "p-timeout", "ALLOCATION_TIMED_OUT", "retryable", "tenant", "node big-1"),
        ("36", "p-score", "SCHEDULER_ERROR", "retryable", "platform", ""),
        ("36", "p-gated", "SCHEDULING_GATED", "retryable", "tenant", "kueue.x-k8s.io/admission"),
        ("36", "p-inflight", "CLAIM_BEING_ALLOCATED", "retryable", "nobody", "c9"),
        (
            "37",
            "f-notregistered",
            "PREPARE_DRIVER_UNREACHABLE",
            "retryable",
            "nobody",
            "compute-domain.nvidia.com",
        ),
        ("37", "f-config", "PREPARE_CONFIG_REFUSED", "not retryable", "platform", "settings"),
        ("37", "f-overlap", "PREPARE_ALREADY_IN_USE", "needs cleanup", "platform", "gpu-0"),
        ("37", "f-notallowed", "PREPARE_NOT_RESERVED", "not retryable", "tenant", ""),
        ("37", "f-handle", "PREPARE_DEVICE_FAULT", "needs cleanup", "platform", "hardware"),
        ("37", "f-terminating", "UNPREPARE_FAILED", "needs cleanup", "platform", "gpu.nvidia.com"),
        ("38", "w-0", "BINDING_PENDING", "retryable", "nobody", "FabricDeviceReady"),
        ("44", "w-0", "DEVICE_UNHEALTHY", "needs cleanup", "platform", "XID 79"),
        ("44", "w-1", "CLAIM_NOT_GENERATED", "retryable", "nobody", ""),
        ("45", "rank-256", "CLAIM_CONSUMERS_FULL", "retryable", "tenant", "256 consumers"),
    ],
)
def test_a_pod_of_the_real_world(number, pod, code, class_, who, said) -> None:
    found = reason(number, pod)
    assert (found.code.name, found.code.class_, found.who) == (code, class_, who)
    assert said in found.sentence


def test_lesser_reasons_of_a_message_are_kept_with_their_nodes() -> None:
    found = reason("36", "p-mixed")
    assert found.nodes == 10
    assert [(other.code, other.nodes) for other in found.others] == [
        ("CLAIM_ELSEWHERE", 1),
        ("NODE_RESOURCES_SHORT", 2),
        ("NODE_TAINTED", 2),
    ]


def test_a_gate_is_named_with_its_owner_and_what_it_waits_for() -> None:
    assert reason("36", "p-gated").facts == {
        "gate": "kueue.x-k8s.io/admission",
        "owner": "Kueue",
        "waits_for": "its queue's quota, not devices",
    }


@pytest.mark.parametrize(
    "now, code", [("09:10:00", "BINDING_PENDING"), ("09:11:00", "BINDING_OVERDUE")]
)
def test_attaching_is_overdue_after_the_schedulers_limit(now, code) -> None:
    found = reason("38", "w-0", datetime.fromisoformat(f"2026-06-04T{now}Z"))
    assert found.code.name == code
    assert found.facts["until"] == "2026-06-04T09:10:00+00:00"


def test_a_failed_attachment_is_tried_again_by_the_scheduler() -> None:
    cluster = snapshot(by_number("38"))
    claim = cluster.claims["team-a", "broken"]
    pod = a_pod(claims=(PodClaim("g", claim="broken"),))
    found = pod_reason(pod, PodStatus(), Around({"broken": claim}))
    assert (found.code.name, found.code.class_) == ("BINDING_FAILED", Class.RETRYABLE)
    assert found.text == "FabricDeviceFailed: fabric port down"


# --- what the scheduler does not say ---


def a_pod(**parts: object) -> Pod:
    return Pod(**{"meta": Meta("p", "ns", "u1", created=NOW), "phase": "Pending", **parts})


def said_no(message: str, reason: str = "Unschedulable") -> PodStatus:
    return PodStatus({"PodScheduled": Condition("PodScheduled", "False", reason, message, NOW)})


NAMED = (PodClaim("g", claim="c"),)
GENERATED = (PodClaim("g", template="t"),)
DELETED = Claim(Meta("c", "ns", deleted=NOW), spec=None)
FOREIGN = Claim(Meta("c", "ns", owners=(Owner("Pod", "q", "u9", True),)), spec=None)
QUOTA = Event(
    "Pod",
    "ns",
    "p",
    "u1",
    "FailedResourceClaimCreation",
    "PodResourceClaim g: create ResourceClaim : exceeded quota: q, requested: a/d=4, used: a/d=0,"
    " limited: a/d=2",
)


@pytest.mark.parametrize(
    "pod, status, around, events, code",
    [
        pytest.param(
            a_pod(claims=NAMED),
            PodStatus(),
            Around({}, every_claim=True),
            [],
            "CLAIM_MISSING",
            id="silence: the named claim is not there",
        ),
        pytest.param(
            a_pod(claims=NAMED),
            PodStatus(),
            Around({}),
            [],
            "NOT_SCHEDULED_YET",
            id="a claim that nobody read is not called missing",
        ),
        pytest.param(
            a_pod(claims=GENERATED),
            PodStatus(),
            Around({}, templates=frozenset()),
            [],
            "TEMPLATE_MISSING",
            id="silence: the template is not there",
        ),
        pytest.param(
            a_pod(claims=GENERATED),
            PodStatus(),
            Around({}, templates=frozenset({"t"})),
            [],
            "CLAIM_NOT_GENERATED",
            id="silence: the controller has not made the claim",
        ),
        pytest.param(
            a_pod(claims=GENERATED),
            PodStatus(),
            Around({}),
            [QUOTA],
            "QUOTA_TOO_SMALL",
            id="more than the whole quota",
        ),
        pytest.param(
            a_pod(claims=GENERATED, generated={"g": "c"}),
            PodStatus(),
            Around({"c": FOREIGN}),
            [],
            "CLAIM_OF_ANOTHER_POD",
            id="the generated claim belongs to another Pod",
        ),
        pytest.param(
            a_pod(claims=NAMED),
            PodStatus(),
            Around({"c": DELETED}),
            [],
            "CLAIM_BEING_DELETED",
            id="silence: the claim is being deleted",
        ),
        pytest.param(
            a_pod(claims=GENERATED, generated={"g": None}),
            PodStatus(),
            Around({}),
            [],
            "NOT_SCHEDULED_YET",
            id="no claim was needed",
        ),
        pytest.param(
            a_pod(claims=NAMED),
            said_no("something new"),
            Around({}),
            [],
            "UNMAPPED_MESSAGE",
            id="unknown words stay unknown",
        ),
        pytest.param(
            a_pod(),
            PodStatus(),
            Around({}),
            [Event("Pod", "ns", "p", "u1", "FailedScheduling", "0/1 nodes are available: x.")],
            "UNMAPPED_MESSAGE",
            id="an event speaks where no condition does",
        ),
        pytest.param(
            a_pod(node_name="n", phase="Pending"),
            PodStatus(),
            Around({}),
            [],
            "PREPARING",
            id="on a node, and silent",
        ),
        pytest.param(
            a_pod(node_name="n"),
            PodStatus({"PodReadyToStartContainers": Condition("", "True")}),
            Around({}),
            [Event("Pod", "ns", "p", "u1", "FailedPrepareDynamicResources", "old trouble")],
            "STARTING",
            id="prepared since: an older failure is over",
        ),
        pytest.param(
            a_pod(node_name="n"),
            PodStatus(
                {"PodReadyToStartContainers": Condition("", "True")},
                (ContainerSeen("m", "ImagePullBackOff", "no such image"),),
            ),
            Around({}),
            [],
            "CONTAINER_NOT_STARTING",
            id="it is the image, not the device",
        ),
        pytest.param(
            a_pod(node_name="n"),
            PodStatus(
                {"PodReadyToStartContainers": Condition("", "True")},
                (
                    ContainerSeen(
                        "m",
                        "CreateContainerConfigError",
                        "endpoint not found in cache for a registered resource: example.com/gpu",
                    ),
                ),
            ),
            Around({}),
            [],
            "KUBELET_TRAP",
            id="the node remembers a plugin that is gone",
        ),
        pytest.param(
            a_pod(node_name="n"),
            PodStatus(
                containers=(
                    ContainerSeen("m", "CreateContainerError", "unresolvable CDI devices a/b=c"),
                )
            ),
            Around({}),
            [],
            "CDI_DEVICES_MISSING",
            id="after a reboot of the node",
        ),
        pytest.param(
            a_pod(meta=Meta("p", "ns", "u1", deleted=NOW), node_name="n", phase="Running"),
            PodStatus(),
            Around({}),
            [],
            "ENDING",
            id="ending as usual",
        ),
        pytest.param(
            a_pod(phase="Running", node_name="n"),
            PodStatus(
                {
                    "DisruptionTarget": Condition(
                        "DisruptionTarget", "True", "DeletionByDeviceTaintManager", "x"
                    )
                }
            ),
            Around({}),
            [],
            "EVICTED_BY_DEVICE_TAINT",
            id="taken out of service",
        ),
        pytest.param(a_pod(phase="Failed"), PodStatus(), Around({}), [], "ENDED", id="over"),
    ],
)
def test_what_only_the_objects_show(pod, status, around, events, code) -> None:
    assert pod_reason(pod, status, around, events).code.name == code


def test_given_devices_outweigh_an_older_message() -> None:
    claim = snapshot(by_number("29")).claims["team-a", "c-used"]
    pod = a_pod(
        meta=Meta("alive", "team-a", claim.reserved_for[0].uid),
        claims=(PodClaim("c", claim="c-used"),),
    )
    around = Around({"c-used": claim})
    found = pod_reason(
        pod, said_no("0/1 nodes are available: 1 cannot allocate all claims."), around
    )
    assert found.code.name == "BEING_BOUND"


def test_a_claim_pinned_to_a_node_that_is_gone_needs_cleanup() -> None:
    claim = snapshot(by_number("31")).claims["team-a", "lost-node"]
    pod = a_pod(claims=(PodClaim("g", claim="lost-node"),))
    message = "0/1 nodes are available: 1 resourceclaim not available on the node."
    gone = pod_reason(pod, said_no(message), Around({"lost-node": claim}, nodes=frozenset()))
    assert gone.code.name == "CLAIM_ON_LOST_NODE" and "node-c3" in gone.sentence
    unread = pod_reason(pod, said_no(message), Around({"lost-node": claim}))
    assert unread.code.name == "CLAIM_ELSEWHERE"


@pytest.mark.parametrize("minutes, who", [(6, Who.NOBODY), (7, Who.PLATFORM)])
def test_waiting_too_long_makes_it_the_platforms_job(minutes, who) -> None:
    event = Event(
        "Pod",
        "ns",
        "p",
        "u1",
        "FailedPrepareDynamicResources",
        "Failed to prepare dynamic resources: DRA driver d is not registered",
        first=NOW,
    )
    pod = a_pod(node_name="n")
    found = pod_reason(pod, PodStatus(), Around({}), [event], NOW + timedelta(minutes=minutes))
    assert (found.who, found.overdue) == (who, who is Who.PLATFORM)


def test_both_kinds_of_events_are_read_and_the_newest_is_found() -> None:
    older = {
        "involvedObject": {"kind": "Pod", "namespace": "ns", "name": "p", "uid": "u1"},
        "reason": "R",
        "message": "old",
        "type": "Warning",
        "count": 3,
        "firstTimestamp": "2026-06-04T09:00:00Z",
        "lastTimestamp": "2026-06-04T09:01:00Z",
        "source": {"component": "kubelet"},
    }
    newer = {
        "regarding": {"kind": "Pod", "namespace": "ns", "name": "p", "uid": "u1"},
        "reason": "R",
        "note": "new",
        "eventTime": "2026-06-04T09:02:00.5Z",
        "series": {"count": 9, "lastObservedTime": "2026-06-04T09:03:00Z"},
        "reportingController": "kubelet",
    }
    events = [read_event(newer), read_event(older)]
    found = newest(events, "R", "u1")
    assert found is not None and (found.message, found.count, found.source) == ("new", 9, "kubelet")
    assert (events[1].count, events[1].warning, events[1].source) == (3, True, "kubelet")
    assert newest(events, "R", "other") is None and newest(events, "Q") is None
