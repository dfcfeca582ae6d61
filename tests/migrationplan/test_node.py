"""A node's conversion as a table of looks, and what no look may ever lead to."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.conversion import DaemonSet, Look, NodeReport, Place
from devices.dra.names import MOVE_LABEL, QUIESCING_TAINT, SYSTEM_NAMESPACE
from devices.dra.snapshot import read
from migrationplan.node import RULES, decide, turned_back
from migrationplan.steps import ENDED, WAYS, Act, Conversion, Decision, Direction, Step
from tests.factories import NOON

Obj = dict[str, Any]
GPU, DRIVER = "a.example/gpu", "gpu.a.example"
PLACE = Place(
    node="n",
    uid="u-n",
    resource=GPU,
    driver=DRIVER,
    plugin_sets=(DaemonSet("gpu", "plugin"),),
    driver_sets=(DaemonSet("gpu", "driver"),),
    offered=2,
    hardware=2,
)
TRIAL, CANARY = (SYSTEM_NAMESPACE, "trial"), (SYSTEM_NAMESPACE, "canary")
LONG_AGO = NOON - timedelta(minutes=20)


def a_node(
    plugin: int | None = 2, *, closed: bool = True, uid: str = "u-n", capacity: int | None = None
) -> Obj:
    amounts = {} if plugin is None else {GPU: str(plugin)}
    shown = amounts if capacity is None else {GPU: str(capacity)}
    taints = [{"key": QUIESCING_TAINT, "value": "m", "effect": "NoSchedule"}] if closed else []
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "kind": "Node",
        "metadata": {"name": "n", "uid": uid},
        "spec": {"taints": taints},
        "status": {"allocatable": amounts, "capacity": shown, "conditions": ready},
    }


def a_trial() -> Obj:
    """A Pod that the scheduler keeps off because of the taint."""
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    terms = {"nodeSelectorTerms": [here]}
    said = (
        "0/1 nodes are available: 1 node(s) had untolerated taint(s). no new claims to deallocate"
    )
    return {
        "kind": "Pod",
        "metadata": {
            "name": "trial",
            "namespace": SYSTEM_NAMESPACE,
            "uid": "u-t",
            "labels": {MOVE_LABEL: "m"},
        },
        "spec": {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
            "containers": [{"name": "c"}],
        },
        "status": {
            "phase": "Pending",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": said,
                }
            ],
        },
    }


def a_holder(phase: str = "Running") -> Obj:
    limits = {"limits": {GPU: "1"}, "requests": {GPU: "1"}}
    return {
        "kind": "Pod",
        "metadata": {"name": "work", "namespace": "team", "uid": "u-w"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": limits}]},
        "status": {"phase": phase},
    }


def a_daemon(name: str) -> Obj:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": "x"}
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-1",
            "namespace": "gpu",
            "uid": f"u-{name}",
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }


def a_slice(devices: int = 2) -> Obj:
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": "s", "uid": "u-s"},
        "spec": {
            "driver": DRIVER,
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{number}"} for number in range(devices)],
        },
    }


def a_claim() -> Obj:
    result = {"request": "r", "driver": DRIVER, "pool": "n", "device": "d0"}
    here = {"key": "metadata.name", "operator": "In", "values": ["n"]}
    terms = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": "held", "namespace": "team", "uid": "u-c"},
        "spec": {},
        "status": {"allocation": {"devices": {"results": [result]}, "nodeSelector": terms}},
    }


def look(*objects: Obj, heard: datetime = NOON) -> Look:
    kinds = ("Node", "Pod", "ResourceClaim", "ResourceSlice")
    return Look(read(list(objects)), dict.fromkeys(kinds, heard))


def a_report(at: datetime, *held: str, claims: int = 0) -> NodeReport:
    return NodeReport("n", {GPU: held}, 0, {DRIVER: claims}, LONG_AGO, at, at)


def at(step: Step, direction: Direction = Direction.TO_DRA, **more: Any) -> Conversion:
    since = more.pop("since", NOON - timedelta(seconds=10))
    return Conversion(direction, step, since, PLACE, mark="m", trial=TRIAL, **more)


BACK = Direction.TO_PLUGIN
OFF = NOON - timedelta(minutes=7)
PLUGIN, DRIVER_POD = a_daemon("plugin"), a_daemon("driver")


@pytest.mark.parametrize(
    ("conversion", "seen", "expected"),
    [
        pytest.param(
            at(Step.QUIESCING), look(a_node(closed=False)), {Act.CLOSE, Act.TRY_TAINT},
            id="an open node is closed, and that is tried",
        ),
        pytest.param(
            at(Step.QUIESCING), look(a_node(), a_trial(), a_holder()),
            {Act.CLOSE, Act.TRY_TAINT}, id="Pods that hold devices are waited for",
        ),
        pytest.param(
            at(Step.QUIESCING, empty_since=NOON - timedelta(seconds=31)),
            look(a_node(), a_trial(), a_holder("Succeeded")), Step.PLUGIN_OFF,
            id="empty at two looks: the plugin may go",
        ),
        pytest.param(
            at(Step.QUIESCING, empty_since=NOON - timedelta(seconds=5)),
            look(a_node(), a_trial()), {Act.CLOSE, Act.TRY_TAINT}, id="one look is not enough",
        ),
        pytest.param(
            at(Step.QUIESCING, since=LONG_AGO), look(a_node()), "CONVERSION_TIMED_OUT",
            id="a taint that never holds calls a person",
        ),
        pytest.param(
            at(Step.PLUGIN_OFF), look(a_node(2), PLUGIN), {Act.CLOSE, Act.PLUGIN_OFF},
            id="the label alone is no proof",
        ),
        pytest.param(
            at(Step.PLUGIN_OFF), look(a_node(2)), {Act.CLOSE, Act.PLUGIN_OFF},
            id="the node still offers devices",
        ),
        pytest.param(at(Step.PLUGIN_OFF), look(a_node(0)), Step.NODE_PROOF, id="Pod gone and 0"),
        pytest.param(
            at(Step.PLUGIN_OFF), look(a_node(0), a_holder()), Step.QUIESCING,
            id="a holder that came meanwhile is waited for again",
        ),
        pytest.param(
            at(Step.NODE_PROOF, plugin_off=NOON), look(a_node(0)),
            {Act.CLOSE, Act.PLUGIN_OFF, Act.PROBE}, id="the node itself is asked",
        ),
        pytest.param(
            at(Step.NODE_PROOF, plugin_off=NOON, reports=(a_report(NOON),)), look(a_node(0)),
            Step.DRIVER_ON, id="asked in time, and none held",
        ),
        pytest.param(
            at(Step.NODE_PROOF, plugin_off=OFF, reports=(a_report(NOON),)), look(a_node(0)),
            "KUBELET_MEMORY_KEPT", id="asked too late: the trap is set",
        ),
        pytest.param(
            at(Step.DRIVER_ON), look(a_node(0)), {Act.CLOSE, Act.PLUGIN_OFF, Act.DRIVER_ON},
            id="the driver is called",
        ),
        pytest.param(
            at(Step.DRIVER_ON), look(a_node(2), PLUGIN),
            {Act.CLOSE, Act.PLUGIN_OFF, Act.DRIVER_OFF}, id="never while the plugin is there",
        ),
        pytest.param(
            at(Step.DRIVER_ON), look(a_node(0), a_holder()),
            {Act.CLOSE, Act.PLUGIN_OFF, Act.DRIVER_OFF}, id="never while a Pod holds a device",
        ),
        pytest.param(
            at(Step.DRIVER_ON), look(a_node(0), DRIVER_POD, a_slice()), Step.SETTLING,
            id="all devices are published",
        ),
        pytest.param(
            at(Step.DRIVER_ON), look(a_node(0), DRIVER_POD, a_slice(3)),
            "DRIFT_DEVICES_TOO_MANY", id="more devices than there are call a person",
        ),
        pytest.param(
            at(Step.SETTLING, plugin_off=NOON - timedelta(minutes=2)), look(a_node(0)),
            {Act.CLOSE}, id="the five minutes are waited for",
        ),
        pytest.param(
            at(Step.SETTLING, plugin_off=OFF, reports=(a_report(OFF),)), look(a_node(0)),
            {Act.CLOSE, Act.PROBE}, id="and the node is asked whether it restarted",
        ),
        pytest.param(
            at(Step.SETTLING, plugin_off=OFF, reports=(a_report(OFF), a_report(NOON))),
            look(a_node(0)), Step.VERIFYING, id="settled",
        ),
        pytest.param(
            at(Step.VERIFYING), look(a_node(0)), {Act.CLOSE, Act.CANARY}, id="a canary is sent"
        ),
        pytest.param(
            at(Step.VERIFYING, since=LONG_AGO, canary=CANARY), look(a_node(0)),
            "CONVERSION_TIMED_OUT", id="a canary that never comes calls a person",
        ),
        pytest.param(
            at(Step.OPENING), look(a_node(0), a_trial()), {Act.TIDY},
            id="Berth's own Pods go before the node opens",
        ),
        pytest.param(at(Step.OPENING), look(a_node(0)), {Act.OPEN}, id="then it is opened"),
        pytest.param(at(Step.OPENING), look(a_node(0, closed=False)), Step.DONE, id="done"),
        pytest.param(
            at(Step.QUIESCING, BACK), look(a_node(0), a_trial(), DRIVER_POD, a_slice(), a_claim()),
            {Act.CLOSE, Act.TRY_TAINT, Act.DRIVER_ON}, id="back: the driver stays for its claims",
        ),
        pytest.param(
            at(Step.QUIESCING, BACK, empty_since=NOON - timedelta(seconds=40),
               reports=(a_report(NOON - timedelta(seconds=5)),)),
            look(a_node(0), a_trial(), DRIVER_POD, a_slice()), Step.DRIVER_OFF,
            id="back: nothing allocated, nothing prepared",
        ),
        pytest.param(
            at(Step.QUIESCING, BACK, empty_since=NOON - timedelta(seconds=40)),
            look(a_node(0), a_trial(), DRIVER_POD, a_slice()),
            {Act.CLOSE, Act.TRY_TAINT, Act.PROBE}, id="back: the node itself is asked",
        ),
        pytest.param(
            at(Step.DRIVER_OFF, BACK), look(a_node(0), DRIVER_POD, a_slice()),
            {Act.CLOSE, Act.DRIVER_OFF}, id="back: the driver goes",
        ),
        pytest.param(
            at(Step.DRIVER_OFF, BACK), look(a_node(0), DRIVER_POD, a_slice(), a_claim()),
            Step.QUIESCING, id="back: a claim came meanwhile",
        ),
        pytest.param(
            at(Step.SLICES_GONE, BACK), look(a_node(0), a_slice()), {Act.CLOSE, Act.DRIVER_OFF},
            id="back: its slices stay for half a minute",
        ),
        pytest.param(
            at(Step.PLUGIN_ON, BACK), look(a_node(0), a_slice()),
            {Act.CLOSE, Act.DRIVER_OFF, Act.PLUGIN_OFF}, id="back: never while slices are there",
        ),
        pytest.param(
            at(Step.PLUGIN_ON, BACK), look(a_node(0)),
            {Act.CLOSE, Act.DRIVER_OFF, Act.PLUGIN_ON}, id="back: the plugin is called",
        ),
        pytest.param(
            at(Step.PLUGIN_ON, BACK), look(a_node(2), PLUGIN), Step.VERIFYING, id="back: 2 of 2"
        ),
        pytest.param(
            at(Step.SETTLING, plugin_off=OFF), look(a_node(0, uid="new")), Step.LOST,
            id="another machine under its name",
        ),
        pytest.param(
            at(Step.DRIVER_ON, called="CONVERSION_TIMED_OUT"), look(a_node(0)),
            "CONVERSION_TIMED_OUT", id="who was called is waited for",
        ),
    ],
)  # fmt: skip
def test_each_step(conversion: Conversion, seen: Look, expected: object) -> None:
    found = decide(conversion, seen, NOON)
    said: object = found.called or found.move or set(found.acts)
    assert said == expected, found.why


def test_nothing_is_done_on_old_news() -> None:
    old = look(a_node(0), heard=NOON - timedelta(minutes=2))
    for step in (Step.PLUGIN_OFF, Step.DRIVER_ON):
        found = decide(at(step), old, NOON)
        assert found.move is None and Act.DRIVER_ON not in found.acts
    gone = look(heard=NOON - timedelta(minutes=2))
    assert decide(at(Step.PLUGIN_OFF), gone, NOON).move is None, "an empty list that is old"


def test_every_step_has_a_rule_and_a_way_out() -> None:
    assert set(RULES) == set(Step)
    for direction, way in WAYS.items():
        assert way[-1] is Step.DONE and len(set(way)) == len(way), direction


# --- whatever is seen ---

WORLDS = st.fixed_dictionaries(
    {
        "plugin": st.sampled_from([None, 0, 2]),
        "closed": st.booleans(),
        "plugin pod": st.booleans(),
        "driver pod": st.booleans(),
        "slices": st.sampled_from([0, 1, 2, 3]),
        "holder": st.sampled_from(["", "Running", "Succeeded"]),
        "claim": st.booleans(),
        "trial": st.booleans(),
        "age": st.sampled_from([0, 10, 90]),
    }
)


def world(choice: dict[str, Any]) -> Look:
    objects = [a_node(choice["plugin"], closed=choice["closed"])]
    objects += [PLUGIN] if choice["plugin pod"] else []
    objects += [DRIVER_POD] if choice["driver pod"] else []
    objects += [a_slice(choice["slices"])] if choice["slices"] else []
    objects += [a_holder(choice["holder"])] if choice["holder"] else []
    objects += [a_claim()] if choice["claim"] else []
    objects += [a_trial()] if choice["trial"] else []
    return look(*objects, heard=NOON - timedelta(seconds=choice["age"]))


CONVERSIONS = st.builds(
    Conversion,
    direction=st.sampled_from(Direction),
    step=st.sampled_from([step for step in Step if step not in ENDED]),
    since=st.sampled_from([NOON, NOON - timedelta(minutes=1), LONG_AGO]),
    place=st.just(PLACE),
    empty_since=st.sampled_from([None, NOON - timedelta(seconds=5), OFF]),
    plugin_off=st.sampled_from([NOON - timedelta(seconds=20), OFF]),
    reports=st.sampled_from([(), (a_report(NOON),), (a_report(OFF), a_report(NOON, "d0"))]),
    mark=st.just("m"),
    trial=st.sampled_from([None, TRIAL]),
    canary=st.sampled_from([None, CANARY]),
    cancelled=st.booleans(),
).filter(lambda one: one.step in WAYS[one.direction])


@given(conversion=CONVERSIONS, choice=WORLDS)
def test_two_owners_are_never_asked_for(conversion: Conversion, choice: dict[str, Any]) -> None:
    found = decide(conversion, world(choice), NOON)
    plugin_there = choice["plugin pod"] or choice["plugin"] == 2
    held = choice["holder"] == "Running"
    if Act.DRIVER_ON in found.acts:
        assert not plugin_there, "the driver is called only where the plugin is proved off"
        assert not held or conversion.direction is BACK
        assert choice["age"] <= 30
    if Act.PLUGIN_ON in found.acts:
        assert not choice["driver pod"] and not choice["slices"] and not choice["claim"]
        assert choice["age"] <= 30
    assert not {Act.DRIVER_ON, Act.PLUGIN_ON} <= set(found.acts)


@given(conversion=CONVERSIONS, choice=WORLDS)
def test_a_decision_moves_or_asks_and_says_why(
    conversion: Conversion, choice: dict[str, Any]
) -> None:
    found = decide(conversion, world(choice), NOON)
    assert found.why
    assert not (found.move and found.acts) and not (found.called and (found.acts or found.move))
    assert decide(conversion, world(choice), NOON) == found, "a doubled turn decides the same"
    if found.move and found.move not in (Step.LOST, Step.QUIESCING):
        way = WAYS[conversion.direction]
        opened = conversion.cancelled and found.move is Step.OPENING
        assert opened or way.index(found.move) == way.index(conversion.step) + 1


@given(conversion=CONVERSIONS, choice=WORLDS)
def test_a_driver_is_never_stopped_under_a_claim(
    conversion: Conversion, choice: dict[str, Any]
) -> None:
    found = decide(conversion, world(choice), NOON)
    if Act.DRIVER_OFF in found.acts and choice["claim"] and choice["driver pod"]:
        # Only where the plugin is there too, which must not be made worse.
        assert conversion.step is Step.DRIVER_ON


@given(conversion=CONVERSIONS, changed=st.booleans())
def test_from_everywhere_there_is_a_way_back(conversion: Conversion, changed: bool) -> None:
    back = turned_back(replace(conversion, called="CONVERSION_TIMED_OUT"), changed=changed)
    assert not back.called and back.step is Step.QUIESCING
    assert back.cancelled or back.direction is not conversion.direction
    assert not (back.cancelled and changed), "what was changed is never opened as if it were not"


def test_turned_back_twice_the_five_minutes_count_from_the_plugin_s_own_end() -> None:
    twice = turned_back(turned_back(at(Step.SETTLING, plugin_off=OFF), changed=True), changed=True)
    assert (twice.direction, twice.step) == (Direction.TO_DRA, Step.QUIESCING)
    seen = look(a_node(0), a_trial())
    assert decide(replace(twice, step=Step.PLUGIN_OFF), seen, NOON).remember == {"plugin_off": OFF}
    again = look(a_node(2), a_trial(), PLUGIN)
    assert decide(twice, again, NOON).remember["plugin_off"] is None


def test_opening_never_leaves_a_pod_of_berths_own() -> None:
    found: Decision = decide(at(Step.OPENING), look(a_node(0, closed=False), a_trial()), NOON)
    assert found.acts == (Act.TIDY,)
