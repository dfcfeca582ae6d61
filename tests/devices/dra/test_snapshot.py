"""Raw objects of every served version become one frozen snapshot; what is unknown is noted."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import msgspec
import pytest

from devices.dra.gates import gates
from devices.dra.nodes import Node, read_selector
from devices.dra.quantity import parse
from devices.dra.reading import Unreadable
from devices.dra.slices import Attribute
from devices.dra.snapshot import read, read_json, read_kinds
from tests.devices.dra.cases import PATHS, objects


def a_slice(*devices, name="s", version="v1", **spec):
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {"driver": "d.example.com", "nodeName": "n", "pool": pool, "devices": list(devices)}
        | spec,
    }


def a_claim(*requests, name="c", version="v1", **status):
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "t"},
        "spec": {"devices": {"requests": list(requests)}},
        "status": status,
    }


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_case_is_read_whole(path):
    seen = read(objects(path))
    assert seen.unread == ()
    assert seen.unknown == ()


def test_a_device_of_v1beta1_stands_under_basic():
    fields = {
        "attributes": {"model": {"string": "h100"}, "index": {"int": 1}},
        "capacity": {"memory": {"value": "80Gi"}},
        "allowMultipleAllocations": True,
    }
    new = a_slice({"name": "d", **fields})
    old = a_slice({"name": "d", "basic": fields}, version="v1beta1")
    assert read([old]).slices == read([new]).slices
    [device] = read([new]).slices[0].devices
    assert device.attributes["index"] == Attribute("int", 1)
    assert device.capacity["memory"].value == parse("80Gi")
    assert device.shareable


def test_a_request_of_v1beta1_has_no_exactly():
    ask = {"deviceClassName": "c", "selectors": [{"cel": {"expression": "true"}}], "count": 2}
    new = a_claim({"name": "r", "exactly": ask})
    old = a_claim({"name": "r", **ask}, version="v1beta1")
    assert read([old]).claims["t", "c"].spec == read([new]).claims["t", "c"].spec


def test_what_the_api_server_fills_in_is_filled_in():
    [request] = (
        read([a_claim({"name": "r", "exactly": {"deviceClassName": "c"}})])
        .claims["t", "c"]
        .spec.requests
    )
    assert (request.exactly.mode, request.exactly.count) == ("ExactCount", 1)
    every = a_claim({"name": "r", "exactly": {"deviceClassName": "c", "allocationMode": "All"}})
    assert read([every]).claims["t", "c"].spec.requests[0].exactly.count == 0


@pytest.mark.parametrize(
    "attribute, kind",
    [
        ({"int": 1}, "int"),
        ({"bool": True}, "bool"),
        ({"version": "1.2.3"}, "version"),
        ({"strings": ["a", "b"]}, "strings"),
        ({"ints": []}, "ints"),
        ({"matrix": [[1]]}, "unknown"),
        ({"int": True}, "unknown"),
        ({"int": "1"}, "unknown"),
        ({}, "unknown"),
        ("h100", "unknown"),
    ],
)
def test_an_attribute_has_one_kind_and_a_strange_one_is_unknown(attribute, kind):
    seen = read([a_slice({"name": "d", "attributes": {"x": attribute}})])
    assert seen.slices[0].devices[0].attributes["x"].kind == kind
    assert bool(seen.unknown) == (kind == "unknown")


def test_true_and_one_are_kept_apart_though_python_calls_them_equal():
    values = {"a": {"bool": True}, "b": {"int": 1}, "c": {"bool": False}, "d": {"int": 0}}
    found = read([a_slice({"name": "d", "attributes": values})]).slices[0].devices[0].attributes
    assert [type(found[name].value) for name in "abcd"] == [bool, int, bool, int]
    assert len(set(found.values())) == 4


def test_unknown_fields_are_noted_where_they_stand():
    odd = a_slice(
        {"name": "d", "newThing": 1, "capacity": {"m": {"value": "1", "shape": "odd"}}}, newToo=2
    )
    claim = a_claim({"name": "r", "exactly": {"deviceClassName": "c", "mood": "good"}})
    rule = {
        "kind": "DeviceTaintRule",
        "metadata": {"name": "t"},
        "spec": {"taint": {"key": "k"}, "when": 1},
    }
    noted = {f"{found.object} {found.path}" for found in read([odd, claim, rule]).unknown}
    assert noted == {
        "ResourceSlice/s spec.devices[d].newThing",
        "ResourceSlice/s spec.devices[d].capacity[m].shape",
        "ResourceSlice/s spec.newToo",
        "ResourceClaim/t/c spec.devices.requests[r].exactly.mood",
        "DeviceTaintRule/t spec.when",
    }


@pytest.mark.parametrize(
    "field, entry, shape, key, multiplier, per_pod",
    [
        pytest.param(
            "nodeAllocatableResourceMappings", {"allocationMultiplier": "2Gi"},
            "1.36", "", "2Gi", None, id="1.36, by device",
        ),
        pytest.param(
            "nodeAllocatableResourceMappings", {"capacityKey": "cores"},
            "1.36", "cores", None, None, id="1.36, by capacity, no multiplier written",
        ),
        pytest.param(
            "nodeAllocatableResources", {"mapping": {"deviceMultiplier": "8"}},
            "1.37", "", "8", None, id="1.37, by device",
        ),
        pytest.param(
            "nodeAllocatableResources",
            {"mapping": {"capacityKey": "cores", "capacityMultiplier": "2"}},
            "1.37", "cores", "2", None, id="1.37, by capacity",
        ),
        pytest.param(
            "nodeAllocatableResources", {"overhead": {"perPod": "512Mi"}},
            "1.37", "", None, "512Mi", id="1.37, overhead",
        ),
        pytest.param(
            "nodeAllocatableResources", {"direct": {"quantity": "1"}},
            "unknown", "", None, None, id="a spelling of articles is unknown, never zero",
        ),
        pytest.param(
            "nodeAllocatableResources", {"mapping": {"capacityKey": "cores"}},
            "unknown", "", None, None, id="half a mapping is unknown",
        ),
        pytest.param(
            "nodeAllocatableResourceMappings", {"mapping": {"deviceMultiplier": "8"}},
            "unknown", "", None, None, id="1.37's content under 1.36's name",
        ),
    ],
)  # fmt: skip
def test_both_shapes_of_node_resources_are_read_side_by_side(
    field, entry, shape, key, multiplier, per_pod
):
    seen = read([a_slice({"name": "d", field: {"cpu": entry}})])
    [share] = seen.slices[0].devices[0].node_shares
    assert (share.resource, share.shape, share.capacity_key) == ("cpu", shape, key)
    assert share.multiplier == (None if multiplier is None else parse(multiplier))
    assert share.per_pod == (None if per_pod is None else parse(per_pod))
    assert bool(seen.unknown) == (shape == "unknown")


@pytest.mark.parametrize(
    "broken, why",
    [
        (a_slice(driver=""), "spec.driver"),
        (a_slice(pool={"name": "p"}), "resourceSliceCount"),
        (a_slice("d"), "spec.devices"),
        (a_slice({"name": "d", "capacity": {"m": {"value": "80GB"}}}), "80GB"),
        (a_slice(devices={"name": "d"}), "spec.devices must be a list"),
        (a_claim({"name": ""}), "requests.name"),
        ({"kind": "Node", "metadata": {"name": "n"}, "status": []}, "status must be an object"),
        ({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [3]}}, "another type"),
    ],
)
def test_what_cannot_be_read_is_left_out_with_the_reason_and_the_rest_is_read(broken, why):
    seen = read([broken, a_slice(name="good")])
    assert [piece.name for piece in seen.slices] == ["good"]
    [unread] = seen.unread
    assert unread.object.startswith(broken["kind"])
    assert why in unread.why


def test_lists_are_opened_and_other_kinds_passed_by():
    listing = {
        "kind": "ResourceSliceList",
        "items": [a_slice(name="a"), {**a_slice(name="b"), "kind": None}],
    }
    mixed = {"kind": "List", "items": [a_slice(name="c"), {"kind": "Secret", "metadata": {}}]}
    assert [piece.name for piece in read([listing, mixed]).slices] == ["a", "b", "c"]


def test_bytes_and_objects_read_the_same_in_whatever_order():
    pieces = [a_slice({"name": f"d{n}"}, name=f"s{n}") for n in range(4)]
    as_bytes = {"ResourceSlice": [json.dumps(piece).encode() for piece in reversed(pieces)]}
    assert read_json(as_bytes) == read(pieces) == read_kinds(("ResourceSlice", p) for p in pieces)
    with pytest.raises(msgspec.DecodeError):
        read_json({"ResourceSlice": [b'{"kind": "Resou']})


def test_a_snapshot_is_frozen_and_remembers_what_was_derived_from_it():
    seen = read([a_slice(name="a")])
    with pytest.raises(FrozenInstanceError):
        seen.slices = ()
    calls = []
    assert seen.once("x", calls.append) is seen.once("x", calls.append)
    assert calls == [seen]
    assert seen.node_names == ("n",)


def test_the_scheduler_of_1_36_is_told_of_no_list_attributes():
    on = {"DRAListTypeAttributes": True}
    old, new = (read([], gates=gates(release, on)) for release in ("1.36", "1.37"))
    assert old.gates.compared_lists and not old.scheduled.gates.compared_lists
    assert new.scheduled is new


@pytest.mark.parametrize(
    "operator, values, matches",
    [
        ("In", ["r1"], True),
        ("NotIn", ["r1"], False),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["0"], False),
    ],
)
def test_a_node_selector_reads_labels(operator, values, matches):
    term = {"matchExpressions": [{"key": "rack", "operator": operator, "values": values}]}
    selector = read_selector({"nodeSelectorTerms": [term]}, "s")
    assert selector.matches(Node("n", labels={"rack": "r1"})) is matches


def test_selectors_compare_whole_numbers_and_names_and_nothing_matches_nothing():
    def chooses(*terms):
        return read_selector({"nodeSelectorTerms": list(terms)}, "s").matches(
            Node("n1", labels={"gpus": "8"})
        )

    more = {"matchExpressions": [{"key": "gpus", "operator": "Gt", "values": ["7"]}]}
    this = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    other = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
    assert chooses(more) and chooses(this) and chooses(other, this)
    assert not chooses(other) and not chooses({}) and not chooses()
    assert read_selector({"nodeSelectorTerms": [this]}, "s").only_node == "n1"
    with pytest.raises(Unreadable, match="Near"):
        read_selector(
            {"nodeSelectorTerms": [{"matchFields": [{"key": "k", "operator": "Near"}]}]}, "s"
        )
