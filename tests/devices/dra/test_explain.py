"""Why claims are not allocated, what would help, and who could make room."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.dra.allocate import Kind, forecast
from devices.dra.claims import read_claim_spec
from devices.dra.explain import Explanation, explain
from devices.dra.gates import gates
from devices.dra.hints import Change, hints, nearest
from devices.dra.holders import claims_of
from devices.dra.makeroom import make_room
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot, read
from tests.devices.dra.cases import by_number, snapshot


def wish(cluster: Snapshot, name: str) -> list[Wish]:
    [template] = [t for t in cluster.templates.values() if t.meta.name == name]
    return [Wish(f"{template.meta.namespace}/{name}", template.spec)]


def explained(number: str, name: str) -> Explanation:
    cluster = snapshot(by_number(number))
    return explain(cluster, wish(cluster, name))


@pytest.mark.parametrize(
    "number, template, kind, code, said",
    [
        ("01", "big-memory", "NO", "NO_DEVICE_MATCHES_SELECTOR", "None of 2 devices"),
        ("01", "one-h100", "OK", None, "node-a1"),
        ("02", "ats", "FATAL", "SELECTOR_NO_SUCH_KEY", "addressingMode"),
        ("03", "guarded-in", "OK", None, ""),
        ("04", "any-one", "OK", None, "node-c2"),
        ("04", "all-of-them", "FATAL", "POOL_INCOMPLETE", "currently being updated"),
        ("05", "three", "NO", "TOO_FEW_MATCH", "Only 2 devices match, and 3 are asked for"),
        ("07", "full-gpu", "NO", "COUNTERS_TAKEN", "team-b/half-0"),
        ("07", "quarter-front", "NO", "COUNTERS_TAKEN", "team-b/half-0"),
        ("08", "with-memory", "NO", "NO_DEVICE_MATCHES_SELECTOR", "memory"),
        ("10", "twenty-on-numa0", "NO", "CAPACITY_TAKEN", "team-a/four"),
        ("15", "gpu", "NO", "NO_MATCHING_DEVICE_FREE", "team-a/g"),
        ("18", "four-eq-thousand", "NO", "TOO_FEW_MATCH", "Only 3 devices match"),
        ("19", "five-slots", "NO", "CAPACITY_NOT_OFFERED", ""),
        ("19", "unknown-capacity", "NO", "CAPACITY_NOT_OFFERED", ""),
        ("24", "two", "NO", "DEVICE_TAINTED", "example.com/drain=yes:NoExecute"),
        ("27", "numa0", "FATAL", "ATTRIBUTE_UNSUPPORTED", "resource.kubernetes.io/pcieRoot"),
        ("41", "all", "FATAL", "TOO_MANY_DEVICES", "32"),
        ("47", "two-gpus", "NO", "MORE_THAN_ANY_NODE_HAS", "No node has more than 1"),
        ("48", "small", "FATAL", "CLASS_MISSING", ""),
    ],
)
def test_one_dominant_reason(number, template, kind, code, said) -> None:
    cluster = snapshot(by_number(number))
    name = next(iter(t for t in cluster.templates if t[1] == template))
    found = explain(cluster, [Wish("/".join(name), cluster.templates[name].spec)])
    assert (found.kind, found.code and found.code.name) == (kind, code)
    assert said in " ".join([found.sentence, found.text, *found.evidence])


def test_a_failure_on_one_node_stands_for_all_and_says_who_would_do() -> None:
    found = explained("02", "ats")
    assert found.nodes == () and found.evidence == ("1 nodes would do if nothing failed",)


def test_the_funnel_names_what_removed_devices_at_each_step() -> None:
    [mig] = explained("07", "two-halves").funnels
    assert (mig.published, mig.need, mig.best, mig.best_node) == (6, 2, 1, "node-f1")
    assert [(step.what, step.left, step.removed, step.by) for step in mig.steps] == [
        ("of the class", 5, 1, ()),
        ("that meet a condition", 2, 3, ()),
        ("free", 1, 1, ("team-b/half-0",)),
    ]
    assert mig.steps[1].clause == 'device.attributes["gpu.nvidia.com"].profile == "3g.20gb"'
    [below] = explained("18", "below-one").funnels
    assert [(step.left, step.selector) for step in below.steps] == [(2, 0), (1, 0)]  # two clauses


def test_each_alternative_has_its_funnel() -> None:
    found = explained("21", "pick")
    assert found.kind is Kind.OK
    assert [(f.request, f.ends and f.ends.code) for f in found.funnels] == [
        ("gpu/one-h100", "NO_MATCHING_DEVICE_FREE"),
        ("gpu/two-l4", "NO_MATCHING_DEVICE_FREE"),
        ("gpu/four-t4", None),
    ]


def test_parts_that_fit_only_on_different_nodes() -> None:
    cluster = snapshot(by_number("47"))
    pod = next(pod for pod in cluster.pods.values() if pod.meta.name == "both")
    wishes = [Wish(str(c), c.spec) for c in claims_of(pod, cluster).values() if c is not None]
    found = explain(cluster, wishes)
    assert found.code is not None and found.code.name == "NOT_TOGETHER_ON_ONE_NODE"
    assert found.evidence == (
        "team-a/g alone fits node-o5, node-o6",
        "team-a/nic alone fits node-o7",
    )


def test_enough_are_free_and_not_on_one_node() -> None:
    slices = []
    for node in ("n", "m"):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": "x0"}, {"name": "x1"}]
        spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": devices}
        slices.append({"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec})
    base = [{"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}}, *slices]
    taken = [held("x0", "a"), {**held("x1", "b", node="m")}]
    found = explain(read([*base, *taken]), [Wish("ns/w", a_spec(2))])
    assert found.code is not None and found.code.name == "NOT_ENOUGH_ON_ONE_NODE"
    assert found.evidence == ("2 devices are left for r, 1 on one node",)


def test_all_needs_every_one() -> None:
    cluster = snapshot(by_number("23"))
    asked = wish(cluster, "whole-node")
    found = explain(cluster, asked, ["node-v2"])
    assert found.code is not None and found.code.name == "ALL_DEVICES_NOT_FREE"
    assert explain(cluster, asked).nodes == ("node-v1",)


def test_an_attribute_that_a_driver_does_not_publish_is_named() -> None:
    cluster = snapshot(by_number("26"))
    asked = wish(cluster, "aligned")
    found = explain(cluster, asked, ["node-y1"])
    assert found.code is not None
    assert found.code.name in ("CONSTRAINT_NOT_SATISFIED", "NOT_TOGETHER_ON_ONE_NODE")
    assert explain(cluster, asked).kind is Kind.OK


def test_what_is_assumed_is_named() -> None:
    found = explained("01", "one-h100")
    assert found.release == "1.36" and "DRAConsumableCapacity" in found.assumed


# --- hints ---


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
    made = [
        {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d",
                "nodeName": "n",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "x0"}],
            },
        },
    ]
    for count in (33, 10**30):
        suggestions = hints(read(made), [Wish("ns/w", a_spec(count))])
        assert [hint.text for hint in suggestions] == [f"1 instead of {count} devices in r"]


def test_the_nearest_request_changes_the_request_and_not_the_cluster() -> None:
    cluster = snapshot(by_number("07"))
    found = nearest(hints(cluster, wish(cluster, "two-halves")))
    assert found is not None and (found.change, found.node) == (Change.COUNT, "node-f1")


# --- made clusters ---


def a_spec(count: int, *selectors: str, alike: bool = False) -> Any:
    exactly = {
        "deviceClassName": "c",
        "count": count,
        "selectors": [{"cel": {"expression": text}} for text in selectors],
    }
    constraints = [{"matchAttribute": "d/rack"}] if alike else []
    devices = {"requests": [{"name": "r", "exactly": exactly}], "constraints": constraints}
    return read_claim_spec({"devices": devices}, "spec", [])


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[dict[str, Any]], Wish]:
    """A small cluster with holders, taints and partitions, and a claim that may or may not fit."""
    made: list[dict[str, Any]] = [
        {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        {
            "kind": "DeviceClass",
            "metadata": {"name": "big"},
            "spec": {"selectors": [{"cel": {"expression": 'device.attributes["d"].size > 1'}}]},
        },
    ]
    for number in range(draw(st.integers(1, 3))):
        node = f"n{number}"
        devices = []
        for index in range(draw(st.integers(1, 4))):
            device: dict[str, Any] = {
                "name": f"x{index}",
                "attributes": {
                    "size": {"int": draw(st.integers(1, 3))},
                    "rack": {"string": draw(st.sampled_from(["a", "b"]))},
                },
            }
            if draw(st.integers(0, 5)) == 0:
                device["taints"] = [{"key": "t", "value": "v", "effect": "NoSchedule"}]
            devices.append(device)
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": devices}
        made.append({"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec})
        for index in range(len(devices)):
            if draw(st.booleans()):
                result = {"request": "r", "driver": "d", "pool": node, "device": f"x{index}"}
                made.append(
                    {
                        "kind": "ResourceClaim",
                        "metadata": {"name": f"{node}-{index}", "namespace": "ns"},
                        "spec": {},
                        "status": {"allocation": {"devices": {"results": [result]}}},
                    }
                )
    selectors = draw(
        st.lists(
            st.sampled_from(
                ['device.attributes["d"].size >= 2', 'device.attributes["d"].size == 3 && true']
            ),
            max_size=2,
        )
    )
    spec = a_spec(draw(st.integers(1, 5)), *selectors, alike=draw(st.booleans()))
    return made, Wish("ns/wish", spec)


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


@settings(max_examples=40, deadline=None)
@given(questions())
def test_every_step_of_a_funnel_only_removes(question) -> None:
    made, asked = question
    cluster = read(made)
    for funnel in explain(cluster, [asked]).funnels:
        left = funnel.published
        for step in funnel.steps:
            assert step.left == left - step.removed and step.removed > 0
            left = step.left
        assert funnel.best <= funnel.left == left


# --- making room ---

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def a_pod(name: str, priority: int, *, retryable: bool = False, hour: int = 11) -> dict[str, Any]:
    labels = {"berth.dev/retryable": "true"} if retryable else {}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": labels},
        "spec": {"priority": priority, "terminationGracePeriodSeconds": 60, "nodeName": "n"},
        "status": {"phase": "Running", "startTime": f"2026-06-01T{hour:02}:00:00Z"},
    }


def held(device: str, *pods: str, node: str = "n") -> dict[str, Any]:
    result = {"request": "r", "driver": "d", "pool": node, "device": device}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": f"c-{device}", "namespace": "ns"},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": pod} for pod in pods],
        },
    }


def room(objects: Sequence[dict[str, Any]], count: int, priority: int) -> list[tuple[str, ...]]:
    """The Pods of each choice for a request of so many devices, on a node with three."""
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"x{index}"} for index in range(3)]
    spec = {"driver": "d", "nodeName": "n", "pool": pool, "devices": devices}
    base = [
        {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec},
    ]
    cluster = read([*base, *objects], gates=gates("1.37"))
    return [
        tuple(pod.removeprefix("ns/") for pod in choice.pods)
        for choice in make_room(cluster, [Wish("ns/w", a_spec(count))], priority, now=NOW)
    ]


FULL = [held("x0", "a"), held("x1", "b"), held("x2", "c")]


@pytest.mark.parametrize(
    "pods, count, choices",
    [
        pytest.param(
            [a_pod("a", 10), a_pod("b", 5), a_pod("c", 100)], 1, [("b",)], id="the least important"
        ),
        pytest.param(
            [a_pod("a", 5), a_pod("b", 10, retryable=True), a_pod("c", 5)],
            1,
            [("b",)],
            id="who may be retried goes first",
        ),
        pytest.param(
            [a_pod("a", 5, hour=8), a_pod("b", 5, hour=11), a_pod("c", 5, hour=9)],
            1,
            [("b",)],
            id="the least work is lost",
        ),
        pytest.param(
            [a_pod("a", 5), a_pod("b", 6), a_pod("c", 7)],
            2,
            [("a", "b")],
            id="two have to go: the costliest is spared",
        ),
        pytest.param(
            [a_pod("a", 50), a_pod("b", 50), a_pod("c", 60)], 1, [], id="nobody is less important"
        ),
        pytest.param([a_pod("b", 5)], 2, [], id="Pods that are not known are let alone"),
    ],
)
def test_the_cheapest_holders_make_room(pods, count, choices) -> None:
    assert room([*FULL, *pods], count, 50) == choices


def test_nothing_has_to_go_where_it_fits() -> None:
    assert room([held("x0", "a"), a_pod("a", 1)], 2, 50) == []


def test_a_choice_says_what_it_frees_and_how_long_that_takes() -> None:
    cluster = read(
        [
            {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
            {
                "kind": "ResourceSlice",
                "metadata": {"name": "s"},
                "spec": {
                    "driver": "d",
                    "nodeName": "n",
                    "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": "x0"}],
                },
            },
            held("x0", "a", "b"),
            a_pod("a", 1, retryable=True),
            a_pod("b", 2, retryable=True),
        ]
    )
    [choice] = make_room(
        cluster, [Wish("ns/w", a_spec(1))], 9, now=NOW, letting_go=timedelta(seconds=5)
    )
    assert choice.devices == (("d", "n", "x0"),) and choice.pods == ("ns/a", "ns/b")
    assert choice.takes == timedelta(seconds=65) and choice.spared
    assert choice.cost == (2, 0, 2, 7200.0)


def test_a_wait_says_until_when_where_its_pods_have_said() -> None:
    pod = a_pod("a", 1)
    pod["spec"]["activeDeadlineSeconds"] = 7200
    objects = [
        {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d",
                "nodeName": "n",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "x0"}],
            },
        },
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
