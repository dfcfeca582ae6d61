"""Proofs about what a kubelet remembers of a plugin: reports, the trap, the settling time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.conversion import (
    NodeReport,
    Times,
    kubelet_trap,
    memory_is_clean,
    read_report,
    settling_is_over,
)
from devices.dra.pods import read_pod
from devices.dra.reading import Unreadable
from tests.devices.dra.conversion.scene import (
    NOW,
    PLACE,
    RESOURCE,
    Obj,
    a_node,
    a_pod,
    a_report,
    ago,
    scene,
    stamp,
    told,
)

TRAPPED = f"endpoint not found in cache for a registered resource: {RESOURCE}"
ONE = {RESOURCE: "1"}


@pytest.mark.parametrize(
    "pod, resource",
    [
        pytest.param(
            a_pod("p", waiting=("CreateContainerConfigError", TRAPPED)),
            RESOURCE,
            id="a Pod that cannot start",
        ),
        pytest.param(
            a_pod("p", waiting=("CreateContainerConfigError", TRAPPED), init=True),
            RESOURCE,
            id="its init container cannot",
        ),
        pytest.param(a_pod("p"), "", id="a Pod that runs"),
        pytest.param(a_pod("p", node=""), "", id="a Pod without a node"),
        pytest.param(
            a_pod("p", waiting=("CreateContainerConfigError", 'secret "s" not found')),
            "",
            id="another mistake in its configuration",
        ),
        pytest.param(a_pod("p", waiting=("ContainerCreating", "")), "", id="a Pod that starts"),
    ],
)
def test_the_trap_is_recognised(pod: Obj, resource: str) -> None:
    assert kubelet_trap(read_pod(pod)) == resource


def a_probe(said: Any = None, **ended: Any) -> Obj:
    answer = {
        "devices": {RESOURCE: ["gpu-1"]},
        "claimsInUse": {"gpu.example.com": 2},
        "kubeletStarted": "2026-11-30T07:00:00.25Z",
    }
    return a_pod(
        "probe",
        said={
            "exitCode": 0,
            "message": json.dumps(answer if said is None else said),
            "startedAt": stamp(ago(seconds=2)),
            "finishedAt": stamp(ago(seconds=1)),
            **ended,
        },
    )


def test_a_probe_s_pod_is_read() -> None:
    assert read_report(read_pod(a_probe())) == NodeReport(
        node="n",
        devices={RESOURCE: ("gpu-1",)},
        omitted=0,
        claims_in_use={"gpu.example.com": 2},
        kubelet_started=datetime.fromisoformat("2026-11-30T07:00:00.25+00:00"),
        began=ago(seconds=2),
        ended=ago(seconds=1),
    )


@pytest.mark.parametrize(
    "pod, why",
    [
        pytest.param(a_pod("probe"), "has not ended", id="it runs"),
        pytest.param(a_pod("probe", node=""), "has not ended", id="it has no node"),
        pytest.param(
            a_probe({"error": "no kubelet"}, exitCode=1), "failed: no kubelet", id="it failed"
        ),
        pytest.param(a_probe(message="Killed"), "can be read", id="it said no JSON"),
        pytest.param(a_probe([1]), "can be read", id="it said something else"),
        pytest.param(a_probe({"devices": {}}), "times cannot be read", id="it lacks the start"),
        pytest.param(
            a_probe({"devices": {RESOURCE: "x"}, "kubeletStarted": "2026-11-30T07:00:00Z"}),
            "must be a list",
            id="its devices are no list",
        ),
    ],
)
def test_a_probe_that_tells_nothing_is_refused(pod: Obj, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        read_report(read_pod(pod))


OFF = ago(minutes=10)


def after(**times: float) -> datetime:
    """So long after the plugin stopped."""
    return OFF + timedelta(**times)


IN_TIME = a_report(began=after(seconds=20), kubelet=ago(days=1))


@pytest.mark.parametrize(
    "reports, verdict, why",
    [
        pytest.param(
            [IN_TIME],
            "proved",
            "the node was asked in time, and holds no device of the plugin",
            id="asked within the five minutes",
        ),
        pytest.param(
            [],
            "not known",
            "the node has not been asked since the plugin stopped",
            id="nobody asked",
        ),
        pytest.param(
            [a_report(began=after(seconds=-2))],
            "not known",
            "the node has not been asked since the plugin stopped",
            id="asked while the plugin was there",
        ),
        pytest.param(
            [a_report(began=after(minutes=4, seconds=31), kubelet=ago(days=1))],
            "refuted",
            "the node was asked too late: its notes keep what it has forgotten",
            id="asked at the end of the five minutes",
        ),
        pytest.param(
            [a_report(began=after(minutes=6), kubelet=after(minutes=2))],
            "proved",
            "the node was asked in time, and holds no device of the plugin",
            id="the kubelet was restarted, its five minutes began anew, and it was asked in them",
        ),
        pytest.param(
            [IN_TIME, a_report(began=after(minutes=9), kubelet=after(minutes=2))],
            "refuted",
            "the node was asked too late: its notes keep what it has forgotten",
            id="the kubelet was restarted after it was asked: its notes are the old ones",
        ),
        pytest.param(
            [a_report(began=after(seconds=20), devices=["gpu-1"])],
            "not yet",
            "the node says that Pods hold 1 devices",
            id="a Pod that the API does not show holds a device",
        ),
        pytest.param(
            [a_report(began=after(seconds=20), resource="a.com/x")],
            "not known",
            f"the node was not asked about {RESOURCE}",
            id="asked about something else",
        ),
        pytest.param(
            [a_report(began=after(seconds=20), omitted=3)],
            "not yet",
            "the node says that Pods hold 3 devices",
            id="more than the answer has room for",
        ),
    ],
)
def test_the_kubelet_has_forgotten(reports: Sequence[NodeReport], verdict: str, why: str) -> None:
    assert told(memory_is_clean(PLACE, reports, plugin_off=OFF)) == (verdict, why)


def test_asked_too_late_has_a_name() -> None:
    late = a_report(began=after(minutes=6), kubelet=ago(days=1))
    assert str(memory_is_clean(PLACE, [late], plugin_off=OFF).code) == "KUBELET_MEMORY_KEPT"


AT_THE_END = a_report(began=after(minutes=5, seconds=20), kubelet=ago(days=1))


@pytest.mark.parametrize(
    "node, reports, now, verdict, why",
    [
        pytest.param(
            a_node("0"),
            [IN_TIME, AT_THE_END],
            after(minutes=5, seconds=25),
            "proved",
            "settled, and no restart of the kubelet since",
            id="the time is over, and the node was asked at both ends",
        ),
        pytest.param(
            a_node("0"),
            [IN_TIME],
            after(minutes=5, seconds=19),
            "not yet",
            "settling",
            id="the time is not over, although capacity is 0 already",
        ),
        pytest.param(
            a_node("0", "2"),
            [IN_TIME, AT_THE_END],
            after(minutes=5, seconds=25),
            "not yet",
            f"the node still shows a capacity of 2 {RESOURCE}",
            id="the kubelet still keeps the plugin's devices",
        ),
        pytest.param(
            a_node("0"),
            [IN_TIME],
            after(minutes=6),
            "not known",
            "the node has to be asked again whether its kubelet was restarted",
            id="a restart since then would show on the node only",
        ),
        pytest.param(
            a_node("0"),
            [IN_TIME, a_report(began=after(minutes=5, seconds=20), kubelet=after(minutes=4))],
            after(minutes=6),
            "not yet",
            "settling",
            id="the kubelet was restarted meanwhile: its five minutes count",
        ),
        pytest.param(
            a_node("0"),
            [
                a_report(began=after(minutes=5), kubelet=after(minutes=4)),
                a_report(began=after(minutes=9, seconds=20), kubelet=after(minutes=4)),
            ],
            after(minutes=9, seconds=21),
            "proved",
            "settled, and no restart of the kubelet since",
            id="and when they are over it has settled",
        ),
        pytest.param(
            a_node("0"),
            [AT_THE_END],
            after(minutes=6),
            "refuted",
            "the node was asked too late: its notes keep what it has forgotten",
            id="it was asked at the end only",
        ),
        pytest.param(
            a_node("0", ready="Unknown"),
            [IN_TIME, AT_THE_END],
            after(minutes=6),
            "not known",
            "the kubelet of n is silent, so the node's status may be old",
            id="a silent kubelet may be a dead one",
        ),
        pytest.param(
            a_node(None),
            [IN_TIME, AT_THE_END],
            after(minutes=6),
            "proved",
            "settled, and no restart of the kubelet since",
            id="a node that never had a plugin",
        ),
    ],
)
def test_a_node_has_settled(
    node: Obj, reports: Sequence[NodeReport], now: datetime, verdict: str, why: str
) -> None:
    look = scene(node, heard={"Node": now}).look
    found = settling_is_over(PLACE, look, now, plugin_off=OFF, reports=reports)
    assert told(found) == (verdict, why)


def test_a_settling_node_says_when_to_look_again() -> None:
    look = scene(heard={"Node": OFF}).look
    found = settling_is_over(PLACE, look, OFF, plugin_off=OFF, reports=[])
    assert found.again == after(minutes=5, seconds=20)


def test_a_playground_settles_sooner() -> None:
    short = Times(timedelta(seconds=6), timedelta(seconds=7), timedelta(seconds=1))
    reports = [
        a_report(began=after(seconds=1), kubelet=ago(days=1)),
        a_report(began=after(seconds=7), kubelet=ago(days=1)),
    ]
    now = after(seconds=9)
    look = scene(heard={"Node": now}).look
    found = settling_is_over(PLACE, look, now, plugin_off=OFF, reports=reports, times=short)
    assert found.proved


seconds = st.integers(-10, 900)


@given(st.lists(st.tuples(seconds, seconds), max_size=4), seconds, st.booleans())
def test_nothing_settles_before_the_time_that_the_last_kubelet_needs(
    looks: list[tuple[int, int]], now: int, key_at_0: bool
) -> None:
    """Whenever a node was asked and its kubelet restarted: a proof means that the plugin and every
    kubelet that was seen stopped, or started, long enough ago, and that it was asked since.
    """
    reports = [
        a_report(began=after(seconds=at), kubelet=after(seconds=min(at, kubelet)))
        for at, kubelet in looks
        if at <= now
    ]
    moment = after(seconds=now)
    look = scene(a_node("0" if key_at_0 else None), heard={"Node": moment}).look
    found = settling_is_over(PLACE, look, moment, plugin_off=OFF, reports=reports)
    if found.proved:
        times = Times()
        started = max(each.kubelet_started for each in reports)
        assert moment - OFF >= times.settling
        assert moment - started >= times.settling
        newest = max(each.began for each in reports)
        assert newest >= max(OFF, started) + times.settling
        assert any(each.ended <= max(OFF, started) + times.grace for each in reports)


def test_now_is_the_only_clock() -> None:
    look = scene(heard={"Node": NOW}).look
    reports = [
        a_report(began=ago(minutes=5), kubelet=ago(days=1)),
        a_report(began=ago(seconds=1), kubelet=ago(days=1)),
    ]
    off = ago(minutes=5, seconds=21)
    assert settling_is_over(PLACE, look, NOW, plugin_off=off, reports=reports).proved
    assert not settling_is_over(PLACE, look, ago(seconds=2), plugin_off=off, reports=reports).proved
