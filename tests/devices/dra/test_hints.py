"""What would let claims or a Pod in: every change was tried, and what is suggested works."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.dra.allocate import Kind, forecast
from devices.dra.claims import read_claim_spec
from devices.dra.explain import explain
from devices.dra.hints import Change, hints, nearest
from devices.dra.podhints import pod_hints
from devices.dra.podverdict import pod_verdicts
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot, read
from tests.devices.dra.cases import by_number, snapshot, wish
from tests.devices.dra.questions import a_pod, a_spec, held, one_device, questions


def texts(number: str, name: str) -> list[tuple[str, str]]:
    cluster = snapshot(by_number(number))
    return [(hint.change.name, hint.text) for hint in hints(cluster, wish(cluster, name))]


@pytest.mark.parametrize(
    "number, template, expected",
    [
        ("07", "two-halves", ["WAIT", "COUNT"]),
        ("02", "ats", ["GUARD", "CLAUSE"]),
        ("10", "twenty-on-numa0", ["WAIT", "WAIT", "WAIT", "CLAUSE", "CAPACITY"]),
        ("19", "unknown-capacity", ["CAPACITY"]),
        ("19", "five-slots", ["CAPACITY"]),
        ("24", "two", ["TOLERATE", "COUNT"]),
        ("49", "ninety", ["WAIT", "WAIT", "CAPACITY"]),
        ("15", "gpu", ["WAIT"]),
        ("01", "one-h100", []),
        ("04", "all-of-them", []),
    ],
)
def test_hints_come_smallest_first(number, template, expected) -> None:
    assert [change for change, _ in texts(number, template)] == expected


@pytest.mark.parametrize(
    "number, template, text",
    [
        ("10", "twenty-on-numa0", "with 17 instead of 20 of dra.cpu/cpu in cpu"),
        ("17", "too-big-pinned", "with 508Mi instead of 600Mi of size in hp"),
        ("49", "ninety", "with 89G instead of 90G of bandwidth in nic"),
        ("19", "five-slots", "with 4 instead of 5 of slots in r"),
        ("05", "three", "2 instead of 3 devices in tpu"),
        ("02", "ats", "looking for gpu.nvidia.com/addressingMode before reading it in gpu"),
        ("07", "full-gpu", "wait until team-b/half-0 is released"),
    ],
)
def test_a_hint_says_exactly_what(number, template, text) -> None:
    assert text in [said for _, said in texts(number, template)]


def test_a_senseless_number_is_answered_at_once() -> None:
    made = one_device()
    for count in (33, 10**30):
        suggestions = hints(read(made), [Wish("ns/w", a_spec(count))])
        assert [hint.text for hint in suggestions] == [f"1 instead of {count} devices in r"]


def test_the_nearest_request_changes_the_request_and_not_the_cluster() -> None:
    cluster = snapshot(by_number("07"))
    found = nearest(hints(cluster, wish(cluster, "two-halves")))
    assert found is not None and (found.change, found.node) == (Change.COUNT, "node-f1")


@settings(max_examples=40, deadline=None)
@given(questions())
def test_a_suggested_change_makes_the_claims_fit(question) -> None:
    made, asked = question
    cluster = read(made)
    found = explain(cluster, [asked])
    suggestions = hints(cluster, [asked])
    if found.kind is Kind.OK:
        assert suggestions == () and found.code is None and found.nodes
    else:
        assert found.code is not None and found.nodes == ()
    for hint in suggestions:
        after, wishes = hint.applied(cluster, [asked])
        assert hint.node in forecast(after, wishes).fitting
    order = [(hint.change, hint.size) for hint in suggestions]
    assert order == sorted(order)


@settings(max_examples=40, deadline=None)
@given(questions())
def test_no_smaller_set_of_holders_would_do(question) -> None:
    made, asked = question
    cluster = read(made)
    for hint in hints(cluster, [asked]):
        for name in hint.release if hint.size > 1 else ():
            fewer = [other for other in hint.release if other != name]
            left = read([o for o in made if f"ns/{o['metadata']['name']}" not in fewer])
            assert hint.node not in forecast(left, [asked]).fitting


def test_a_wait_says_until_when_where_its_pods_have_said() -> None:
    pod = a_pod("a", 1)
    pod["spec"]["activeDeadlineSeconds"] = 7200
    objects = [
        *one_device(),
        held("x0", "a"),
        pod,
    ]
    [hint] = hints(read(objects), [Wish("ns/w", a_spec(1))])
    assert hint.until == datetime(2026, 6, 1, 13, tzinfo=UTC)
    pod["metadata"]["annotations"] = {"berth.dev/expected-end": "2026-06-01T12:30:00Z"}
    [hint] = hints(read(objects), [Wish("ns/w", a_spec(1))])
    assert hint.until == datetime(2026, 6, 1, 12, 30, tzinfo=UTC)
    del pod["spec"]["activeDeadlineSeconds"], pod["metadata"]["annotations"]
    [hint] = hints(read(objects), [Wish("ns/w", a_spec(1))])
    assert hint.until is None


# --- labels of nodes, and two changes together ---


def a_fabric(*expressions: dict[str, Any], labels: dict[str, str]) -> Snapshot:
    """One node, and one device that is chosen by labels of nodes."""
    spec = {
        "driver": "d",
        "nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]},
        "pool": {"name": "fabric", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "f0", "attributes": {"size": {"int": 2}, "rack": {"string": "b"}}}],
    }
    return read(
        [
            {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
            {"kind": "Node", "metadata": {"name": "n", "labels": labels}},
            {"kind": "ResourceSlice", "metadata": {"name": "fabric"}, "spec": spec},
        ]
    )


@pytest.mark.parametrize(
    "expressions, labels, text",
    [
        pytest.param(
            [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
            {"zone": "c"},
            "with label zone=a on node n",
            id="another value",
        ),
        pytest.param(
            [{"key": "fabric", "operator": "Exists"}, {"key": "old", "operator": "DoesNotExist"}],
            {"old": ""},
            "with label fabric=true and without label old on node n",
            id="one more and one less",
        ),
        pytest.param(
            [{"key": "rank", "operator": "Gt", "values": ["3"]}],
            {},
            "with label rank=4 on node n",
            id="a number",
        ),
    ],
)
def test_labels_that_a_node_lacks_are_named(expressions, labels, text) -> None:
    cluster = a_fabric(*expressions, labels=labels)
    asked = [Wish("ns/w", a_spec(1))]
    [hint] = hints(cluster, asked)
    assert (hint.change, hint.text) == (Change.LABEL, text)
    after, wishes = hint.applied(cluster, asked)
    assert forecast(after, wishes).fitting == ("n",) and not forecast(cluster, asked).fitting


def test_labels_that_contradict_each_other_are_no_hint() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    cluster = a_fabric(zone, {**zone, "operator": "NotIn"}, labels={})
    assert hints(cluster, [Wish("ns/w", a_spec(1))]) == ()


def test_two_changes_stand_together_where_none_helps_alone() -> None:
    cluster = a_fabric({"key": "zone", "operator": "Exists"}, labels={"zone": "a"})
    selector = 'device.attributes["d"].size > 4 && device.attributes["d"].rack == "a"'
    asked = [Wish("ns/w", a_spec(1, selector))]
    [hint] = hints(cluster, asked)
    assert hint.change is Change.TWO and hint.size == 2
    assert hint.text == (
        "without the condition “size above 4” of r, and without the condition “rack is a” of r"
    )


def test_two_changes_are_looked_for_where_an_amount_is_asked_for_as_well() -> None:
    cluster = a_fabric({"key": "zone", "operator": "Exists"}, labels={"zone": "a"})
    exactly = {
        "deviceClassName": "c",
        "selectors": [{"cel": {"expression": 'device.attributes["d"].size > 4'}}],
        "capacity": {"requests": {"memory": "1Gi"}},
    }
    raw = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    found = hints(cluster, [Wish("ns/w", read_claim_spec(raw, "spec", []))])
    assert [(hint.change, hint.text) for hint in found] == [
        (
            Change.TWO,
            "without the condition “size above 4” of r,"
            " and without memory, which no device has, in r",
        )
    ]


# --- where a Pod may go ---


@st.composite
def placed_pods(draw: st.DrawFn) -> Snapshot:
    """Nodes with a device each, labels and taints, and a Pod that asks for one of them."""
    made: list[dict[str, Any]] = [{"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}}]
    for number in range(draw(st.integers(1, 3))):
        name = f"n{number}"
        labels = {
            "zone": draw(st.sampled_from("ab")),
            "disk": draw(st.sampled_from(["ssd", "hdd"])),
        }
        taint = {"key": "t", "value": draw(st.sampled_from("xy")), "effect": "NoSchedule"}
        taints = [taint] if draw(st.booleans()) else []
        made.append(
            {
                "kind": "Node",
                "metadata": {"name": name, "labels": labels},
                "spec": {"taints": taints, "unschedulable": draw(st.integers(0, 5)) == 0},
            }
        )
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d", "nodeName": name, "pool": pool, "devices": [{"name": "x"}]}
        made.append({"kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec})
    pod = a_pod("p", 0)
    pod["status"] = {"phase": "Pending"}
    wanted = {"key": "disk", "operator": "In", "values": ["ssd"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [wanted]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": required}
    pod["spec"] = {
        "nodeSelector": draw(st.sampled_from([{}, {"zone": "a"}, {"zone": "c", "disk": "hdd"}])),
        "affinity": {"nodeAffinity": affinity} if draw(st.booleans()) else None,
        "containers": [{"name": "m"}],
        "resourceClaims": [{"name": "g", "resourceClaimName": "w"}],
    }
    requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
    claim = {
        "kind": "ResourceClaim",
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"devices": {"requests": requests}},
    }
    return read([*made, pod, claim])


@settings(max_examples=60, deadline=None)
@given(placed_pods())
def test_a_suggested_placement_lets_the_pod_in(cluster) -> None:
    pod = cluster.pods["ns", "p"]
    seen = list(pod_verdicts(cluster, pod))
    suggestions = pod_hints(cluster, pod, seen)
    if any(verdict.kind is Kind.OK for verdict in seen):
        assert suggestions == ()
    for hint in suggestions:
        assert hint.pod is not None and hint.pod.meta == pod.meta
        [after] = pod_verdicts(cluster, hint.pod, [hint.node])
        assert after.kind is Kind.OK
        before = replace(
            hint.pod,
            node_selector=pod.node_selector,
            affinity=pod.affinity,
            tolerations=pod.tolerations,
        )
        assert before == pod


def test_a_placement_says_what_stands_in_the_way() -> None:
    slices = [
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "n"},
            "spec": {
                "driver": "d",
                "nodeName": "n",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "x"}],
            },
        }
    ]
    pod = a_pod("p", 0)
    pod["status"] = {"phase": "Pending"}
    pod["spec"] = {
        "nodeSelector": {"zone": "a"},
        "resourceClaims": [{"name": "g", "resourceClaimName": "w"}],
    }
    requests = [{"name": "r", "exactly": {"deviceClassName": "c"}}]
    cluster = read(
        [
            {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
            {"kind": "Node", "metadata": {"name": "n", "labels": {"zone": "b"}}},
            *slices,
            pod,
            {
                "kind": "ResourceClaim",
                "metadata": {"name": "w", "namespace": "ns"},
                "spec": {"devices": {"requests": requests}},
            },
        ]
    )
    waiting = cluster.pods["ns", "p"]
    [hint] = pod_hints(cluster, waiting, list(pod_verdicts(cluster, waiting)))
    assert (hint.change, hint.text, hint.node) == (
        Change.PLACE,
        "without node selector zone=a",
        "n",
    )
