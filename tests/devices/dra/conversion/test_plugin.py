"""Proofs about the plugin: who holds its devices, whether it is off, whether it is on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.conversion import (
    Place,
    Times,
    no_plugin_holders,
    plugin_holders,
    plugin_is_off,
    plugin_is_on,
)
from tests.devices.dra.conversion.scene import (
    NOW,
    PLACE,
    RESOURCE,
    Obj,
    Scene,
    a_daemon,
    a_node,
    a_pod,
    ago,
    scene,
    told,
)

ONE = {RESOURCE: "1"}


@pytest.mark.parametrize(
    "pod, holds",
    [
        pytest.param(a_pod("p", limits=ONE), True, id="a Pod that runs with a plugin's device"),
        pytest.param(a_pod("p", limits=ONE, phase="Pending"), True, id="one that is to start"),
        pytest.param(a_pod("p", limits=ONE, deleted=True), True, id="one that is being deleted"),
        pytest.param(a_pod("p", limits=ONE, init=True), True, id="one whose init container asks"),
        pytest.param(a_pod("p", limits=ONE, phase="Unknown"), True, id="one on a silent node"),
        pytest.param(
            a_pod("p", limits=ONE, phase="Failed", devices=["gpu-0"]),
            False,
            id="one that failed, although its status still names the device",
        ),
        pytest.param(a_pod("p", limits=ONE, phase="Succeeded"), False, id="one that has ended"),
        pytest.param(a_pod("p", limits=ONE, node=""), False, id="one without a node"),
        pytest.param(a_pod("p", limits=ONE, node="m"), False, id="one on another node"),
        pytest.param(
            a_pod("p", limits=ONE, extended="p-extended"), False, id="one whose device is DRA's"
        ),
        pytest.param(a_pod("p", limits={RESOURCE: "0"}), False, id="one that asks for none"),
        pytest.param(a_pod("p", limits={"a.com/x": "1"}), False, id="one that asks for others"),
        pytest.param(a_pod("p", claim="c"), False, id="one with a claim"),
    ],
)
def test_who_holds_a_plugin_s_device(pod: Obj, holds: bool) -> None:
    found = plugin_holders(PLACE, scene(pod).look.snapshot)
    assert [str(each.pod) for each in found] == (["team/p"] if holds else [])


def test_a_holder_names_its_containers_and_devices() -> None:
    pod = a_pod("p", limits={RESOURCE: "2"}, devices=["gpu-1", "gpu-0"])
    [holder] = plugin_holders(PLACE, scene(pod).look.snapshot)
    assert (holder.containers, holder.devices) == (("main",), ("gpu-1", "gpu-0"))


def test_a_pod_with_one_device_of_each_path_is_a_holder_of_the_plugin() -> None:
    pod = a_pod("p", limits=ONE, extended="p-extended")
    pod["spec"]["containers"].append({"name": "other", "resources": {"limits": ONE}})
    [holder] = plugin_holders(PLACE, scene(pod).look.snapshot)
    assert holder.containers == ("other",)


@pytest.mark.parametrize(
    "seen, empty_since, verdict, why",
    [
        pytest.param(
            scene(a_pod("p", limits=ONE)),
            ago(minutes=5),
            "not yet",
            "1 Pod holds devices of the plugin",
            id="somebody holds, whatever was seen before",
        ),
        pytest.param(
            scene(), None, "not yet", "empty, and to be looked at a second time", id="first look"
        ),
        pytest.param(
            scene(),
            ago(seconds=29),
            "not yet",
            "empty, and to be looked at a second time",
            id="too soon after the first",
        ),
        pytest.param(scene(), ago(seconds=30), "proved", "empty for 30 s", id="empty twice"),
        pytest.param(
            scene(a_node(allocatable="2")),
            ago(seconds=31),
            "proved",
            "empty for 31 s",
            id="what the node offers says nothing of who holds",
        ),
        pytest.param(
            Scene((a_node(),), missing=("Pod",)),
            ago(minutes=5),
            "not known",
            "no list of Pods was heard",
            id="an empty list that nobody heard",
        ),
        pytest.param(
            scene(age=31),
            ago(minutes=5),
            "not known",
            "the list of Nodes is 31 s old",
            id="an old look",
        ),
        pytest.param(
            Scene(()),
            ago(minutes=5),
            "refuted",
            "node n is not there",
            id="an empty list of nodes",
        ),
        pytest.param(
            scene(a_node(uid="n-2")),
            ago(minutes=5),
            "refuted",
            "node n is another machine now",
            id="another machine under the name",
        ),
        pytest.param(
            scene({"kind": "Pod", "metadata": {"name": "odd", "namespace": "team"}, "spec": 7}),
            ago(minutes=5),
            "not known",
            "a Pod could not be read",
            id="a Pod that could not be read may hold",
        ),
    ],
)
def test_nobody_holds(seen: Scene, empty_since: datetime | None, verdict: str, why: str) -> None:
    assert told(no_plugin_holders(PLACE, seen.look, NOW, empty_since=empty_since)) == (verdict, why)


def test_who_stands_in_the_way_is_named_and_when_to_look_again() -> None:
    held = no_plugin_holders(PLACE, scene(a_pod("p", limits=ONE)).look, NOW, empty_since=None)
    assert held.evidence == ("team/p",)
    first = no_plugin_holders(PLACE, scene().look, NOW, empty_since=None)
    assert first.again == NOW + Times().second_look


@pytest.mark.parametrize(
    "seen, place, verdict, why",
    [
        pytest.param(
            scene(),
            PLACE,
            "proved",
            f"no plugin Pod, and 0 of {RESOURCE} allocatable",
            id="its Pod is gone and nothing is allocatable",
        ),
        pytest.param(
            scene(a_node("0", "2")),
            PLACE,
            "proved",
            f"no plugin Pod, and 0 of {RESOURCE} allocatable",
            id="capacity stays for five minutes and means nothing",
        ),
        pytest.param(
            scene(a_node("2")),
            PLACE,
            "not yet",
            f"the node still offers 2 of {RESOURCE}",
            id="its Pod is gone, the node's status is behind",
        ),
        pytest.param(
            scene(a_daemon("gpu-plugin")),
            PLACE,
            "not yet",
            "the plugin's Pod is still there",
            id="nothing is allocatable, its Pod is there: all devices unhealthy",
        ),
        pytest.param(
            scene(a_daemon("gpu-plugin", deleted=True)),
            PLACE,
            "not yet",
            "the plugin's Pod is still there",
            id="its Pod is ending",
        ),
        pytest.param(
            scene(a_daemon("gpu-plugin", node="m")),
            PLACE,
            "proved",
            f"no plugin Pod, and 0 of {RESOURCE} allocatable",
            id="its Pod on another node",
        ),
        pytest.param(
            scene(a_node(ready="Unknown")),
            PLACE,
            "not known",
            "the kubelet of n is silent, so the node's status may be old",
            id="0 that a silent kubelet left behind",
        ),
        pytest.param(
            scene(a_node(allocatable=None)),
            PLACE,
            "proved",
            f"no plugin Pod, and the node never offered {RESOURCE}",
            id="a node that never had a plugin",
        ),
        pytest.param(
            scene(),
            replace(PLACE, plugin_sets=()),
            "not known",
            "nobody recorded which DaemonSet runs the plugin",
            id="nobody knows what to look for",
        ),
        pytest.param(
            Scene((a_node(),), missing=("Pod",)),
            PLACE,
            "not known",
            "no list of Pods was heard",
            id="no Pods were heard of",
        ),
    ],
)
def test_the_plugin_is_off(seen: Scene, place: Place, verdict: str, why: str) -> None:
    assert told(plugin_is_off(place, seen.look, NOW)) == (verdict, why)


@pytest.mark.parametrize(
    "seen, place, verdict, why",
    [
        pytest.param(
            scene(a_node("2"), a_daemon("gpu-plugin")),
            PLACE,
            "proved",
            "the plugin offers 2 of 2",
            id="it offers what it should",
        ),
        pytest.param(
            scene(a_node("1"), a_daemon("gpu-plugin")),
            PLACE,
            "not yet",
            "the plugin offers 1 of 2",
            id="a device is missing",
        ),
        pytest.param(
            scene(a_node("7"), a_daemon("gpu-plugin")),
            PLACE,
            "refuted",
            "the plugin offers 7 of 2",
            id="a number that somebody invented",
        ),
        pytest.param(
            scene(a_node("0"), a_daemon("gpu-plugin")),
            PLACE,
            "not yet",
            "the plugin offers 0 of 2",
            id="its Pod runs, and is not registered",
        ),
        pytest.param(
            scene(a_node("2")),
            PLACE,
            "not yet",
            "no Pod of the plugin on the node",
            id="a number without a plugin",
        ),
        pytest.param(
            scene(a_node(None), a_daemon("gpu-plugin")),
            PLACE,
            "not yet",
            "the plugin offers 0 of 2",
            id="it has never registered",
        ),
        pytest.param(
            scene(a_node("2", ready="Unknown"), a_daemon("gpu-plugin")),
            PLACE,
            "not known",
            "the kubelet of n is silent, so the node's status may be old",
            id="a silent kubelet",
        ),
        pytest.param(
            scene(a_node("2"), a_daemon("gpu-plugin")),
            replace(PLACE, offered=None),
            "not known",
            "nobody recorded how many devices the plugin offers",
            id="nobody knows how many there should be",
        ),
    ],
)
def test_the_plugin_is_on(seen: Scene, place: Place, verdict: str, why: str) -> None:
    assert told(plugin_is_on(place, seen.look, NOW)) == (verdict, why)


amounts = st.sampled_from([None, "0", "1", "2", "7"])


@given(amounts, amounts, st.booleans(), st.sampled_from(["True", "False", "Unknown"]))
def test_a_plugin_is_never_off_and_on_at_once(
    allocatable: str | None, capacity: str | None, runs: bool, ready: str
) -> None:
    objects = [a_node(allocatable, capacity, ready=ready)]
    objects += [a_daemon("gpu-plugin")] if runs else []
    look = scene(*objects).look
    off, on = plugin_is_off(PLACE, look, NOW), plugin_is_on(PLACE, look, NOW)
    assert not (off.proved and on.proved)
    assert not (off.proved and (runs or ready != "True" or allocatable not in (None, "0")))
