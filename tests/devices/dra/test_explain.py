"""Why claims are not allocated, step by step."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from devices.dra.allocate import Kind
from devices.dra.explain import Explanation, explain
from devices.dra.holders import claims_of
from devices.dra.requests import Wish
from devices.dra.snapshot import read
from tests.devices.dra.cases import by_number, snapshot, wish
from tests.devices.dra.questions import a_spec, held, questions


def explained(number: str, name: str) -> Explanation:
    cluster = snapshot(by_number(number))
    return explain(cluster, wish(cluster, name))


@pytest.mark.parametrize(
    "number, template, kind, code, said",
    [
        ("01", "big-memory", "NO", "NO_DEVICE_MATCHES_SELECTOR", "has memory at least 80 GiB"),
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
