"""The cluster's own words, of every row that is known, → codes."""

from __future__ import annotations

import pytest

from devices.dra.messages import (
    TABLES,
    Speaker,
    meaning,
    more_than_the_quota,
    scheduler_says,
)

S, C, K = Speaker.SCHEDULER, Speaker.CONTROLLER, Speaker.KUBELET
PREPARE = "Failed to prepare dynamic resources: prepare dynamic resources: "
REFUSED = PREPARE + "NodePrepareResources failed for ResourceClaim g: "


MESSAGES = [
    (S, "cannot allocate all claims", "NO_MATCHING_DEVICE_FREE", {}),
    (S, 'pod "ns/a": ResourceClaim not created yet', "CLAIM_NOT_GENERATED", {}),
    (
        S,
        "ResourceClaim ns/a-gpu-x was not created for Pod ns/a (Pod is not owner)",
        "CLAIM_OF_ANOTHER_POD",
        {"claim": "a-gpu-x"},
    ),
    (S, 'resourceclaim "x" is being deleted', "CLAIM_BEING_DELETED", {"claim": "x"}),
    (
        S,
        'resourceclaim.resource.k8s.io "x" not found',
        "CLAIM_MISSING",
        {"claim": "x"},
    ),
    (S, "resourceclaim in use", "CLAIM_IN_USE", {}),
    (S, 'resource claim template "t": not found', "TEMPLATE_MISSING", {}),
    (S, "resourceclaim not available on the node", "CLAIM_ELSEWHERE", {}),
    (
        S,
        "resource claim ns/c9 is in the process of being allocated",
        "CLAIM_BEING_ALLOCATED",
        {"claim": "c9"},
    ),
    (
        S,
        "request gpu: device class gpu.nvidia.com does not exist",
        "CLASS_MISSING",
        {"class": "gpu.nvidia.com"},
    ),
    (
        S,
        'claim c, request r: could not retrieve device class x.y: deviceclass "x.y" not found',
        "CLASS_MISSING",
        {"class": "x.y"},
    ),
    (
        S,
        "node big-1: timed out trying to allocate devices",
        "ALLOCATION_TIMED_OUT",
        {"node": "big-1"},
    ),
    (S, "filter operation aborted: context canceled", "ALLOCATION_TIMED_OUT", {}),
    (S, "invalid resource pools were encountered", "POOL_INVALID", {}),
    (
        S,
        "claim c, request r: asks for all devices, but resource pool a/b is currently being"
        " updated",
        "POOL_INCOMPLETE",
        {"pool": "a/b"},
    ),
    (
        S,
        "claim c, request r: asks for all devices, but resource pool a/b is currently invalid",
        "POOL_INVALID",
        {"pool": "a/b"},
    ),
    (
        S,
        "claim c: number of requested devices 33 exceeds the claim limit of 32",
        "TOO_MANY_DEVICES",
        {},
    ),
    (
        S,
        "claim c, request r: adding 3 devices exceeds the claim limit of 32, with 30 already",
        "TOO_MANY_DEVICES",
        {},
    ),
    (S, "claim c, request r: exact count 99 is too large", "TOO_MANY_DEVICES", {}),
    (S, "class x: selector #0: CEL compile error: oops", "SELECTOR_INVALID", {}),
    (
        S,
        "claim c: selector #0 on device d/p/x: CEL runtime error: no such key: model",
        "SELECTOR_NO_SUCH_KEY",
        {"key": "model"},
    ),
    (S, "class x: selector #0: CEL runtime error: no such overload", "SELECTOR_FAILS", {}),
    (
        S,
        "claim c, request r: cannot add device d because a claim constraint would not be satisfied",
        "CONSTRAINT_NOT_SATISFIED",
        {},
    ),
    (
        S,
        "claim c, request r: has capacity requests, but the DRAConsumableCapacity feature is"
        " disabled",
        "FEATURE_OFF",
        {"feature": "DRAConsumableCapacity"},
    ),
    (S, "admin access is requested, but the feature is disabled", "FEATURE_OFF", {}),
    (S, "cannot schedule extended resource claim", "EXTENDED_RESOURCE_SHORT", {}),
    (S, "cannot fit resource", "EXTENDED_RESOURCE_SHORT", {}),
    (
        S,
        "node allocatable resource claim cpu has a mapped device and cannot be shared across pods",
        "CLAIM_NOT_SHAREABLE",
        {"claim": "cpu"},
    ),
    (
        S,
        "node allocatable resource claim cpu is already used by another pod",
        "CLAIM_NOT_SHAREABLE",
        {"claim": "cpu"},
    ),
    (
        S,
        "claim idle: node-allocatable resource claim not referenced by any container within the"
        " pod",
        "CLAIM_NOT_REFERENCED",
        {"claim": "idle"},
    ),
    (
        S,
        "pod level request for cpu is insufficient to cover the aggregated container and"
        " node-allocatable DRA requests",
        "POD_BUDGET_TOO_SMALL",
        {"resource": "cpu"},
    ),
    (S, "Insufficient memory", "NODE_RESOURCES_SHORT", {"resource": "memory"}),
    (S, "deallocation of ResourceClaim completed", "SCHEDULER_FREED_CLAIM", {}),
    (S, "deletion of ResourceClaim completed", "SCHEDULER_FREED_CLAIM", {}),
    (
        S,
        "claim c got allocated elsewhere in the meantime",
        "ALLOCATION_RACE",
        {"claim": "c"},
    ),
    (S, "claim c got deleted in the meantime", "ALLOCATION_RACE", {"claim": "c"}),
    (
        S,
        "add allocation and reservation to claim c: conflict",
        "ALLOCATION_RACE",
        {"claim": "c"},
    ),
    (
        S,
        'add reservation to claim c: resourceclaims "c" is forbidden: changing'
        ' status.allocation or status.reservedFor requires resource="resourceclaims/binding"',
        "SCHEDULER_FORBIDDEN",
        {},
    ),
    (S, "add finalizer to claim c: x is forbidden", "SCHEDULER_FORBIDDEN", {}),
    (
        S,
        "waiting for binding conditions for device on node n1",
        "BINDING_PENDING",
        {"node": "n1"},
    ),
    (S, "device binding timeout: claim=c", "BINDING_TIMED_OUT", {"claim": "c"}),
    (S, "claim c binding timeout", "BINDING_TIMED_OUT", {"claim": "c"}),
    (
        S,
        'device binding failed: claim=c, reason=AttachError, message="port down"',
        "BINDING_FAILED",
        {"claim": "c"},
    ),
    (S, "claim c binding failed: reason=X", "BINDING_FAILED", {"claim": "c"}),
    (
        S,
        'running Score plugins: plugin "DynamicResources" failed with: number of allocations 1'
        " is smaller than number of claims 2",
        "SCHEDULER_ERROR",
        {},
    ),
    (S, "node(s) had untolerated taint {a: b}", "NODE_TAINTED", {"taint": "a: b"}),
    (S, "node(s) didn't match Pod's node affinity/selector", "NODE_NOT_SELECTED", {}),
    (S, "node(s) didn't satisfy plugin(s) [NodeAffinity]", "NODE_NOT_SELECTED", {}),
    (S, "node(s) were unschedulable", "NODE_CLOSED", {}),
    (S, "the moon is in the wrong place", "UNMAPPED_MESSAGE", {}),
    (
        C,
        'PodResourceClaim gpu: resource claim template "one": resourceclaimtemplate'
        '.resource.k8s.io "one" not found',
        "TEMPLATE_MISSING",
        {"template": "one"},
    ),
    (
        C,
        "PodResourceClaim gpu: create ResourceClaim : exceeded quota: devices, requested:"
        " a/devices=1, used: a/devices=2, limited: a/devices=2",
        "QUOTA_EXCEEDED",
        {"quota": "devices"},
    ),
    (
        C,
        "admin access to devices requires the `resource.kubernetes.io/admin-access: true` label"
        " on the containing namespace",
        "ADMIN_ACCESS_DENIED",
        {},
    ),
    (
        C,
        "ValidatingAdmissionPolicy 'berth-classes' with binding 'b' denied request: no",
        "REFUSED_BY_CLUSTER",
        {"policy": "berth-classes"},
    ),
    (C, 'ResourceClaim "a" is invalid: spec.devices: Too many', "CLAIM_INVALID", {}),
    (C, "the moon again", "CLAIM_CREATION_FAILED", {}),
    (
        K,
        PREPARE + "DRA driver gpu.example.com is not registered",
        "PREPARE_DRIVER_UNREACHABLE",
        {"driver": "gpu.example.com"},
    ),
    (
        K,
        PREPARE + "fetch ResourceClaim c: not found",
        "PREPARE_CLAIM_UNREADABLE",
        {"claim": "c"},
    ),
    (K, PREPARE + "ResourceClaim c: not allocated", "PREPARE_NOT_RESERVED", {"claim": "c"}),
    (
        K,
        PREPARE + "pod p (1) is not allowed to use ResourceClaim c (2)",
        "PREPARE_NOT_RESERVED",
        {"claim": "c"},
    ),
    (
        K,
        PREPARE + "old ResourceClaim with same name c and different UID 1 still exists"
        " (previous pod force-deleted?!)",
        "PREPARE_LEFTOVER",
        {"claim": "c"},
    ),
    (
        K,
        PREPARE + "ResourceClaim c is being unprepared",
        "PREPARE_BEING_UNPREPARED",
        {"claim": "c"},
    ),
    (
        K,
        PREPARE + "NodePrepareResources: rpc error: code = DeadlineExceeded desc = x",
        "PREPARE_CALL_FAILED",
        {"grpc": "DeadlineExceeded"},
    ),
    (
        K,
        REFUSED + 'error decoding config: unknown field "a"',
        "PREPARE_CONFIG_REFUSED",
        {"claim": "g"},
    ),
    (
        K,
        REFUSED + "requested device gpu-0 is already allocated to different claim 9",
        "PREPARE_ALREADY_IN_USE",
        {"device": "gpu-0"},
    ),
    (K, REFUSED + "device handle from UUID: Not Found", "PREPARE_DEVICE_FAULT", {"claim": "g"}),
    (K, REFUSED + "the moon", "PREPARE_FAILED", {"claim": "g"}),
    (
        K,
        PREPARE + "NodePrepareResources skipped 2 ResourceClaims",
        "PREPARE_DRIVER_SKIPPED",
        {},
    ),
    (K, "Error: unresolvable CDI devices vendor.com/gpu=0", "CDI_DEVICES_MISSING", {}),
    (K, PREPARE + "checkpoint ResourceClaim cache: disk full", "NODE_STATE_BROKEN", {}),
    (K, "Failed to prepare dynamic resources: the moon", "PREPARE_FAILED", {}),
    (
        K,
        "Error: endpoint not found in cache for a registered resource: example.com/gpu",
        "KUBELET_TRAP",
        {"resource": "example.com/gpu"},
    ),
    (K, "the moon", "UNMAPPED_MESSAGE", {}),
    (S, "add finalizer to claim c: conflict", "ALLOCATION_RACE", {"claim": "c"}),
    (S, "add reservation to claim c: conflict", "ALLOCATION_RACE", {"claim": "c"}),
    (S, "conflicting concurrent modification", "ALLOCATION_RACE", {}),
    (S, "claim c, request r, selector #0: CEL expression empty", "SELECTOR_INVALID", {}),
    (S, "allocation requires DRAOptionalNodeOperations feature on the node", "FEATURE_OFF", {}),
    (S, "claim c, request r: unsupported count mode X", "FEATURE_OFF", {}),
    (S, "resource claim c, request r: unknown request type", "FEATURE_OFF", {}),
    (
        S,
        "node allocatable resource claim cpu shared by multiple pods",
        "CLAIM_NOT_SHAREABLE",
        {"claim": "cpu"},
    ),
    (
        S,
        "pod level limit for hugepages-2Mi is insufficient to cover",
        "POD_BUDGET_TOO_SMALL",
        {"resource": "hugepages-2Mi"},
    ),
    (S, "asked by caller to stop allocating devices: x", "ALLOCATION_TIMED_OUT", {}),
    (S, "Too many pods", "NODE_RESOURCES_SHORT", {}),
    (S, "internal error, have 1 allocations", "SCHEDULER_ERROR", {}),
    (S, "deallocation and deletion of ResourceClaims completed", "SCHEDULER_FREED_CLAIM", {}),
    (S, "deallocation of PodGroup ResourceClaim completed", "SCHEDULER_FREED_CLAIM", {}),
    (S, "ResourceClaim unreserved for PodGroup", "SCHEDULER_FREED_CLAIM", {}),
    (
        S,
        "Scheduling is blocked due to non-empty scheduling gates",
        "SCHEDULING_GATED",
        {},
    ),
    (C, "template includes subrequests, but the feature is disabled", "FEATURE_OFF", {}),
    (C, "ResourceClaim n/c was not created for Pod n/p (x)", "CLAIM_OF_ANOTHER_POD", {}),
    (
        C,
        'admission webhook "claims.example.com" denied the request: no',
        "REFUSED_BY_CLUSTER",
        {"policy": "claims.example.com"},
    ),
    (C, "resourceclaims is forbidden: User cannot", "REFUSED_BY_CLUSTER", {}),
    (C, "must specify one of: resourceClaimName, resourceClaimTemplateName", "CLAIM_INVALID", {}),
    (K, PREPARE + "ResourceClaim n/c was not created for Pod n/p", "CLAIM_OF_ANOTHER_POD", {}),
    (
        K,
        PREPARE + "NodePrepareResources returned result for unknown claim UID 7",
        "PREPARE_DRIVER_SKIPPED",
        {},
    ),
    (K, "NodeUnprepareResources failed for ResourceClaim c: x", "UNPREPARE_FAILED", {}),
    (K, "unprepare dynamic resources: x", "UNPREPARE_FAILED", {}),
    (K, PREPARE + "internal error: unable to get claim info", "NODE_STATE_BROKEN", {}),
    (
        K,
        PREPARE + "DRAOptionalNodeOperations feature gate is disabled on kubelet",
        "FEATURE_OFF",
        {},
    ),
]


@pytest.mark.parametrize("speaker, text, code, facts", MESSAGES)
def test_a_text_means_a_code(speaker, text, code, facts) -> None:
    found = meaning(text, speaker)
    assert (found.code, found.facts, found.text) == (code, facts, text)


@pytest.mark.parametrize("speaker", Speaker)
def test_no_row_hides_behind_an_earlier_one(speaker) -> None:
    reached = {meaning(text, spoken).rank for spoken, text, *_ in MESSAGES if spoken is speaker}
    assert [r.fragment for n, r in enumerate(TABLES[speaker]) if n not in reached] == []


def test_reasons_are_counted_by_node_and_the_dominant_one_stands_first() -> None:
    says = scheduler_says(
        "0/10 nodes are available: 1 resourceclaim not available on the node, 2 Insufficient cpu,"
        " 2 node(s) had untolerated taint(s), 5 cannot allocate all claims. still not schedulable,"
        " preemption: 0/10 nodes are available: 10 Preemption is not helpful for scheduling."
    )
    assert says.nodes == 10
    assert [(r.code, r.nodes) for r in says.reasons] == [
        ("NO_MATCHING_DEVICE_FREE", 5),
        ("CLAIM_ELSEWHERE", 1),
        ("NODE_RESOURCES_SHORT", 2),
        ("NODE_TAINTED", 2),
    ]
    assert says.after.startswith("still not schedulable")


@pytest.mark.parametrize(
    "message, reasons",
    [
        pytest.param("", [], id="nothing said"),
        pytest.param("the moon", [("UNMAPPED_MESSAGE", None)], id="no count of nodes"),
        pytest.param(
            "0/3 nodes are available: request gpu: device class a.b does not exist. preemption: x",
            [("CLASS_MISSING", None)],
            id="a reason for all nodes carries no count, and names may hold dots",
        ),
        pytest.param(
            "0/3 nodes are available: 1 the moon, at night, 2 Insufficient cpu.",
            [("NODE_RESOURCES_SHORT", 2), ("UNMAPPED_MESSAGE", 1)],
            id="an unknown reason is kept, commas and all",
        ),
        pytest.param(
            "0/0 nodes are available: . deallocation of ResourceClaim completed",
            [],
            id="no node at all",
        ),
    ],
)
def test_messages_are_taken_apart(message, reasons) -> None:
    assert [(r.code, r.nodes) for r in scheduler_says(message).reasons] == reasons


@pytest.mark.parametrize(
    "text, answer",
    [
        ("exceeded quota: q, requested: a/d=4, used: a/d=0, limited: a/d=2", True),
        ("exceeded quota: q, requested: a/d=1, used: a/d=2, limited: a/d=2", False),
        (
            "exceeded quota: q, requested: a/d=1,b/d=9, used: a/d=2,b/d=0, limited: a/d=2,b/d=8",
            True,
        ),
        ("something else", False),
    ],
)
def test_a_request_above_the_whole_quota_never_fits(text, answer) -> None:
    assert more_than_the_quota(text) is answer
