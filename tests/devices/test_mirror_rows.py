"""An object's bytes become its row; whatever people wrote into it, it is stored and can be read."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import msgspec
import pytest

from devices.dra.snapshot import read_json
from devices.mirror.kinds import MIRRORED
from devices.mirror.reader import REWRITTEN
from devices.mirror.rows import uses_devices, without
from devices.mirror.shapes import PodSpec

META = {
    "name": "a",
    "namespace": "apollo",
    "uid": "u1",
    "resourceVersion": "7",
    "creationTimestamp": "2026-11-30T08:00:00Z",
}
MANAGED = [{"manager": "kubectl", "fieldsV1": {"f:spec": {'k:{"name":"x"}': {}}}}]


def read(kind, obj, **meta):
    raw = msgspec.json.encode({**obj, "metadata": {**META, **meta}})
    return MIRRORED[kind].reader.read(raw, "v1")


def row(kind, obj, **meta):
    found = read(kind, obj, **meta)[2]
    assert found is not None
    return found


def a_request(device_class):
    return {"name": "r", "exactly": {"deviceClassName": device_class}}


def pinned(*nodes, terms=1):
    match = {"key": "metadata.name", "operator": "In", "values": list(nodes)}
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": [match]}] * terms}}


@pytest.mark.parametrize(
    "kind, obj, columns",
    [
        pytest.param(
            "ResourceSlice",
            {"spec": {"driver": "gpu.x", "pool": {"name": "p", "generation": 1}, "nodeName": "n"}},
            {"driver": "gpu.x", "pool": "p", "node": "n"},
            id="a slice: driver, pool, node",
        ),
        pytest.param(
            "ResourceSlice",
            {"spec": {"driver": "nic.x", "pool": {"name": "fabric"}, "allNodes": True}},
            {"driver": "nic.x", "pool": "fabric", "node": ""},
            id="a slice of all nodes",
        ),
        pytest.param(
            "DeviceTaintRule",
            {"spec": {"deviceSelector": {"driver": "gpu.x", "pool": "p"}}},
            {"driver": "gpu.x", "pool": "p"},
            id="a taint rule: what it selects",
        ),
        pytest.param(
            "DeviceTaintRule", {"spec": {"deviceSelector": None}}, {"driver": ""}, id="no selector"
        ),
        pytest.param(
            "ResourceClaim",
            {"spec": {"devices": {"requests": [a_request("b"), a_request("a"), a_request("b")]}}},
            {"phase": "pending", "classes": ["a", "b"], "node": ""},
            id="a pending claim: its classes, once each, sorted",
        ),
        pytest.param(
            "ResourceClaim",
            {
                "spec": {
                    "devices": {
                        "requests": [
                            {
                                "name": "r",
                                "firstAvailable": [
                                    {"name": "big", "deviceClassName": "h100"},
                                    {"name": "small", "deviceClassName": "a10"},
                                ],
                            }
                        ]
                    }
                },
                "status": {"allocation": pinned("n1")},
            },
            {"phase": "allocated", "classes": ["a10", "h100"], "node": "n1"},
            id="an allocated claim: all alternatives' classes, and its one node",
        ),
        pytest.param(
            "ResourceClaim",
            {"status": {"allocation": pinned("n1", "n2"), "reservedFor": [{"uid": "p"}]}},
            {"phase": "reserved", "node": ""},
            id="a reserved claim that two nodes reach",
        ),
        pytest.param(
            "ResourceClaim",
            {"status": {"allocation": pinned("n1", terms=2)}},
            {"phase": "allocated", "node": ""},
            id="a claim of two node terms has no one node",
        ),
        pytest.param(
            "ResourceClaimTemplate",
            {"spec": {"spec": {"devices": {"requests": [a_request("gpu")]}}}},
            {"classes": ["gpu"]},
            id="a template: the classes of its claims",
        ),
        pytest.param(
            "Node",
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            {"phase": "NotReady", "node": "a"},
            id="a node that is not ready",
        ),
        pytest.param("Node", {"status": {}}, {"phase": "Unknown"}, id="a node nobody heard of"),
        pytest.param("Lease", {"spec": {}}, {"node": "a"}, id="a lease is of its node"),
        pytest.param(
            "Event",
            {"involvedObject": {"kind": "Pod", "uid": "p\x001"}, "reason": "FailedScheduling"},
            {"owner_uid": "p1", "phase": "FailedScheduling"},
            id="an event: what it is about, and its reason, without NUL",
        ),
        pytest.param(
            "Namespace", {"status": {"phase": "Terminating"}}, {"phase": "Terminating"}, id="phase"
        ),
    ],
)
def test_columns(kind, obj, columns):
    found = row(kind, obj)
    assert {name: getattr(found, name) for name in columns} == columns


def test_columns_of_every_kind():
    found = row(
        "ResourceClaim",
        {},
        labels={"berth.dev/claim": "c-1", "berth.dev/tenant": "apollo"},
        ownerReferences=[{"uid": "x"}, {"uid": "pod", "controller": True}],
        deletionTimestamp="2026-11-30T09:00:00Z",
    )
    assert (found.claim, found.tenant, found.owner_uid) == ("c-1", "apollo", "pod")
    assert found.deleting
    assert found.created_at == datetime(2026, 11, 30, 8, tzinfo=UTC)
    assert (found.uid, found.name, found.namespace) == ("u1", "a", "apollo")
    assert (found.resource_version, found.api_version) == ("7", "v1")


GPU_POD = {
    "spec": {
        "nodeName": "n1",
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "d"}]}}],
        "resourceClaims": [
            {"name": "d", "resourceClaimTemplateName": "t"},
            {"name": "e", "resourceClaimName": "shared"},
        ],
    },
    "status": {
        "phase": "Running",
        "resourceClaimStatuses": [{"name": "d", "resourceClaimName": "a-d-x7"}, {"name": "e"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "a-extended"},
    },
}


def test_a_pod_that_uses_devices_is_whole_and_names_what_it_uses():
    found = row("Pod", GPU_POD)
    assert json.loads(found.raw)["spec"] == GPU_POD["spec"]
    assert found.uses == ["a-d-x7", "a-extended", "shared", "t"]
    assert not found.small


PLAIN_POD = {
    "spec": {
        "nodeName": "n1",
        "priority": 7,
        "overhead": {"cpu": "50m"},
        "resources": {"requests": {"cpu": "4"}},
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [
            {"name": "c", "image": "i", "env": [], "resources": {"requests": {"cpu": "1"}}}
        ],
        "initContainers": [
            {"name": "s", "restartPolicy": "Always", "resources": {"limits": {"cpu": "2"}}}
        ],
    },
    "status": {
        "phase": "Running",
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "PodResizePending", "status": "True", "reason": "Infeasible"},
        ],
        "containerStatuses": [
            {"name": "c", "imageID": "x", "allocatedResources": {"cpu": "1"}, "resources": {}}
        ],
    },
}


def test_of_another_pod_what_it_occupies_is_kept():
    found = row("Pod", PLAIN_POD, labels={"app": "x"}, managedFields=MANAGED)
    assert found.small
    assert (found.node, found.phase) == ("n1", "Running")
    assert json.loads(found.raw) == {
        "metadata": META,
        "spec": {
            "nodeName": "n1",
            "priority": 7,
            "overhead": {"cpu": "50m"},
            "resources": {"requests": {"cpu": "4"}},
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "resources": {"limits": {"cpu": "2"}}}
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}],
            "containerStatuses": [
                {"name": "c", "allocatedResources": {"cpu": "1"}, "resources": {}}
            ],
        },
    }


def test_the_rules_read_the_same_requests_from_a_small_pod_as_from_the_whole():
    whole = msgspec.json.encode({**PLAIN_POD, "metadata": META})
    small = row("Pod", PLAIN_POD).raw
    (a,), (b,) = (read_json({"Pod": [raw]}).pods.values() for raw in (whole, small))
    asked = ("node_name", "phase", "priority", "containers", "pod_requests", "overhead")
    assert [getattr(a, name) for name in asked] == [getattr(b, name) for name in asked]


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param({"namespace": "berth-system"}, id="in Berth's own namespace"),
        pytest.param({"labels": {"berth.dev/claim": "c"}}, id="with a request's label"),
        pytest.param(
            {"ownerReferences": [{"kind": "DaemonSet", "uid": "d", "controller": True}]},
            id="of a DaemonSet, as drivers and plugins are",
        ),
    ],
)
def test_other_pods_that_are_kept_whole(meta):
    assert not row("Pod", PLAIN_POD, **meta).small


@pytest.mark.parametrize(
    "resources, uses",
    [
        pytest.param({"limits": {"nvidia.com/gpu": "1"}}, True, id="an extended resource"),
        pytest.param(
            {"requests": {"deviceclass.resource.kubernetes.io/gpu": "1"}}, True, id="by class"
        ),
        pytest.param({"limits": {"kubernetes.io/batteries": "1"}}, False, id="a native domain"),
        pytest.param({"limits": {"x.kubernetes.io/y": "1"}}, False, id="a native subdomain"),
        pytest.param({"limits": {"notkubernetes.io/y": "1"}}, True, id="a name that looks native"),
        pytest.param({"limits": {"hugepages-2Mi": "1Gi", "cpu": "1"}}, False, id="no device"),
        pytest.param({}, False, id="nothing"),
    ],
)
def test_who_uses_devices(resources, uses):
    for place in ("containers", "initContainers"):
        spec = {place: [{"name": "c", "resources": resources}]}
        assert uses_devices(msgspec.json.decode(msgspec.json.encode(spec), type=PodSpec)) is uses


@pytest.mark.parametrize(
    "kind, obj",
    [
        pytest.param(
            "Event", {"involvedObject": {"kind": "Deployment"}}, id="an Event about another kind"
        ),
        pytest.param(
            "Job", {"spec": {"template": PLAIN_POD}}, id="a Job whose Pods ask for no device"
        ),
    ],
)
def test_what_the_mirror_does_not_keep_has_no_row_but_moves_the_version_on(kind, obj):
    assert read(kind, obj) == ("u1", "7", None)


def test_a_job_whose_pods_ask_for_devices_is_kept():
    assert row("Job", {"spec": {"template": GPU_POD}}).name == "a"


@pytest.mark.parametrize(
    "raw, left",
    [
        pytest.param(b'{"a":1,"k":[1,{"x":"]"}],"b":2}', b'{"a":1,"b":2}', id="in the middle"),
        pytest.param(b'{"k":[1,{"x":"]"}],"b":2}', b'{"b":2}', id="first"),
        pytest.param(b'{"a":1,"k":[1,{"x":"]"}]}', b'{"a":1}', id="last"),
        pytest.param(b'{"k":[1,{"x":"]"}]}', b"{}", id="alone"),
        pytest.param(
            b'{"l":{"k":"y","z":"\\"k\\":[1]"},"k":[1,{"x":"]"}]}',
            b'{"l":{"k":"y","z":"\\"k\\":[1]"}}',
            id="beside others of that name",
        ),
        pytest.param(b'{"k": [1,{"x":"]"}]}', b'{"k": [1,{"x":"]"}]}', id="written otherwise"),
    ],
)
def test_a_member_is_cut_out_of_json_text(raw, left):
    assert without(raw, "k", msgspec.Raw(b'[1,{"x":"]"}]')) == left


def test_who_wrote_which_field_and_the_images_of_nodes_are_left_out():
    images = [{"names": ["a"], "sizeBytes": 1}]
    found = row("Node", {"status": {"images": images, "phase": "x"}}, managedFields=MANAGED)
    assert json.loads(found.raw) == {"metadata": META, "status": {"phase": "x"}}
    found = row("DeviceClass", {"spec": {}}, managedFields=MANAGED)
    assert json.loads(found.raw) == {"metadata": META, "spec": {}}


def opaque(parameters: bytes) -> bytes:
    meta = msgspec.json.encode(META)
    return b'{"metadata":%s,"spec":{"config":[{"opaque":{"parameters":%s}}]}}' % (meta, parameters)


@pytest.mark.parametrize(
    "parameters, note",
    [
        pytest.param(b'{"a":"\\u0000"}', "", id="a NUL"),
        pytest.param(b'{"a":"\\ud800"}', REWRITTEN, id="half a surrogate pair"),
        pytest.param(b'{"a":1e999}', REWRITTEN, id="a number beyond a float"),
        pytest.param(b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", REWRITTEN, id="depth"),
        pytest.param(b'{"a":"' + b"x" * 1_000_000 + b'"}', "", id="a megabyte"),
        pytest.param('{"a":"\U0001f600\u202e"}'.encode(), "", id="odd characters"),
        pytest.param(b'{"a":"\x07"}', REWRITTEN, id="a control character as it is"),
        pytest.param(b'{"managedFields":[]}', "", id="a name that means something elsewhere"),
    ],
)
def test_hostile_parameters_are_stored_in_a_form_that_everybody_can_read(parameters, note):
    uid, version, found = MIRRORED["DeviceClass"].reader.read(opaque(parameters), "v1")
    assert found is not None
    assert (uid, version, found.note) == ("u1", "7", note)
    assert msgspec.json.decode(found.raw)["metadata"]["name"] == "a"
    read_json({"DeviceClass": [found.raw]})


def test_fields_of_an_unknown_form_leave_the_name():
    found = row("ResourceSlice", {"spec": {"driver": {"name": "gpu.x"}, "pool": ["p"]}})
    assert (found.name, found.driver) == ("a", "")
    assert "form is unknown" in found.note
    assert json.loads(found.raw)["spec"]["pool"] == ["p"]


def test_of_a_slice_it_is_kept_who_wrote_it_and_of_a_pod_who_charged_it() -> None:
    charged = {"f:status": {"f:nodeAllocatableResourceClaimStatuses": {}}}
    managed = [
        {"manager": "driver", "time": "2026-11-02T12:00:00Z", "fieldsV1": {"f:spec": {}}},
        {"manager": "scheduler", "subresource": "status", "fieldsV1": charged},
    ]
    spec = {"driver": "d", "nodeName": "n1", "pool": {"name": "n1"}}
    found = row("ResourceSlice", {"spec": spec}, managedFields=managed)
    assert json.loads(found.raw)["metadata"]["managedFields"] == [
        {"manager": "driver", "time": "2026-11-02T12:00:00Z"},
        {"manager": "scheduler", "subresource": "status"},
    ]
    pod = {"spec": {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}}
    found = row("Pod", pod, managedFields=managed)
    assert json.loads(found.raw)["metadata"]["managedFields"] == [
        {"manager": "scheduler", "subresource": "status"}
    ]
    plain = row("Pod", pod, managedFields=managed[:1])
    assert "managedFields" not in json.loads(plain.raw)["metadata"]
