"""The fleet's pure parts: fleet files, what a driver publishes, how a Pod stands."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from devices.cluster.gateway import Unreachable
from playground.fleet import install, runs, slices
from playground.fleet.podstatus import differs, status_of
from playground.fleet.spec import SCENARIOS, SpecError, Template, expand, load
from playground.fleet.turns import Turns
from tests.playground.conftest import FLEET_FILE, a_pod

Obj = dict[str, Any]
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


# Fleet files


@pytest.mark.parametrize("name", sorted(path.stem for path in SCENARIOS.glob("*.yaml")))
def test_every_scenario_can_be_read(name: str) -> None:
    spec = load(name)
    assert spec.name == name
    assert len(list(install.objects(spec))) >= 0


@pytest.mark.parametrize(
    "text, sentence",
    [
        pytest.param("name: x\nfoo: 1", "unknown field `foo`", id="an unknown key"),
        pytest.param(
            "name: x\ngroups: [{name: a, count: many, node: n}]",
            r"Expected `int`, got `str` - at `\$.groups\[0\].count`",
            id="a word for a number",
        ),
        pytest.param(
            "name: x\ndrivers: [{name: d, namespace: n, pools: [{group: b}]}]",
            "driver d names no group b",
            id="a group that is not there",
        ),
        pytest.param(
            "name: x\ngroups: [{name: a, count: 2, node: same}]",
            "two nodes have one name",
            id="one name twice",
        ),
        pytest.param(
            "name: x\ndrivers: [{name: d, namespace: n, pools: [{name: p}]}]",
            "driver d has a pool of the cluster, but no controller",
            id="a pool that nobody publishes",
        ),
        pytest.param("name: [", "while parsing", id="no YAML"),
    ],
)
def test_a_fleet_file_with_a_mistake_says_where(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(SpecError, match=sentence):
        load(path)


def test_a_scenario_that_is_not_there_names_the_others() -> None:
    with pytest.raises(SpecError, match="There is no scenario nowhere; there are: demo, empty"):
        load("nowhere")


def test_a_template_is_repeated_for_every_combination() -> None:
    template = Template(
        name="gpu-{index}-part-{slot}",
        repeat={"index": 2, "slot": 2},
        body={
            "numa": {"int": {"each": [0, 1]}},
            "half": {"each": ["low", "high"], "by": "slot"},
            "text": ["of {node}", 7],
        },
    )
    devices = list(expand(template, node="n1"))
    assert [one["name"] for one in devices] == [
        "gpu-0-part-0",
        "gpu-0-part-1",
        "gpu-1-part-0",
        "gpu-1-part-1",
    ]
    assert devices[2] == {
        "name": "gpu-1-part-0",
        "numa": {"int": 1},
        "half": "low",
        "text": ["of n1", 7],
    }


def test_a_device_keeps_its_uuid_and_shares_it_with_no_other() -> None:
    template = Template(name="gpu-{index}", repeat={"index": 2}, body={"uuid": "{uuid}"})
    first = list(expand(template, node="n1", seed="d"))
    assert first == list(expand(template, node="n1", seed="d"))
    others = [*expand(template, node="n2", seed="d"), *expand(template, node="n1", seed="e")]
    assert len({one["uuid"] for one in [*first, *others]}) == 6


# What a driver publishes


def a_device(name: str, **more: Any) -> Obj:
    return {"name": name, "capacity": {"memory": {"value": "80Gi"}}, **more}


def published(index: int, devices: list[Obj], *, generation: int = 3, count: int = 2) -> Obj:
    return {
        "metadata": {"name": f"{index:05x}-d-n1-abcde"},
        "spec": {
            "driver": "d",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": generation, "resourceSliceCount": count},
            "devices": devices,
        },
    }


A, B, C = a_device("a"), a_device("b"), a_device("c")
SAME_AMOUNT = {**A, "capacity": {"memory": {"value": "81920Mi"}}}
TAINTED = {**A, "taints": [{"key": "k", "effect": "NoSchedule"}]}
STORED_TAINT = {**A, "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "then"}]}


@pytest.mark.parametrize(
    "found, wanted, generation, deletes, updates, creates",
    [
        pytest.param([], [[A], [B]], 1, 0, 0, 2, id="a new pool begins with generation 1"),
        pytest.param(
            [published(0, [A]), published(1, [B])], [[A], [B]], 3, 0, 0, 0, id="all is as it was"
        ),
        pytest.param(
            [published(0, [SAME_AMOUNT]), published(1, [B])],
            [[A], [B]],
            3,
            0,
            0,
            0,
            id="an amount in another unit is no change",
        ),
        pytest.param(
            [published(0, [STORED_TAINT]), published(1, [B])],
            [[TAINTED], [B]],
            3,
            0,
            0,
            0,
            id="a taint's time is the API server's",
        ),
        pytest.param(
            [published(0, [STORED_TAINT]), published(1, [B])],
            [[A], [B]],
            3,
            0,
            1,
            0,
            id="a taint that goes is one change, and keeps the generation",
        ),
        pytest.param(
            [published(0, [A]), published(1, [B])],
            [[B], [A]],
            4,
            0,
            2,
            0,
            id="two changes raise it",
        ),
        pytest.param(
            [published(0, [A], count=1)],
            [[A], [B]],
            4,
            0,
            1,
            1,
            id="one more slice raises it and updates the others",
        ),
        pytest.param(
            [published(0, [A]), published(1, [B])],
            [[A]],
            3,
            1,
            1,
            0,
            id="one slice less: delete, and tell the count",
        ),
        pytest.param(
            [published(0, [A], generation=2, count=1), published(0, [A], count=1)],
            [[A]],
            3,
            1,
            0,
            0,
            id="an older generation is deleted",
        ),
    ],
)
def test_a_driver_publishes_with_as_few_calls_as_the_upstream_helper(
    found: list[Obj],
    wanted: list[list[Obj]],
    generation: int,
    deletes: int,
    updates: int,
    creates: int,
) -> None:
    plan = slices.publication(
        found,
        [{"devices": devices} for devices in wanted],
        pool="n1",
        driver="d",
        scope={"nodeName": "n1"},
        owner={"name": "n1", "uid": "u"},
    )
    assert plan.generation == generation
    counts = len(plan.deletes), len(plan.updates), len(plan.creates)
    assert counts == (deletes, updates, creates)
    for spec in [spec for _, spec in plan.updates] + [one["spec"] for one in plan.creates]:
        assert spec["pool"] == {
            "name": "n1",
            "generation": generation,
            "resourceSliceCount": len(wanted),
        }


@pytest.mark.parametrize(
    "count, extra, counters, lengths",
    [
        pytest.param(0, {}, 0, [0], id="no device is one empty slice"),
        pytest.param(130, {}, 0, [128, 2], id="128 to a slice"),
        pytest.param(130, {"taints": []}, 0, [64, 64, 2], id="64 where one has taints"),
        pytest.param(2, {"consumesCounters": []}, 9, [8, 1, 2], id="counters in their own"),
    ],
)
def test_a_pool_is_cut_as_the_api_server_wants_it(
    count: int, extra: Obj, counters: int, lengths: list[int]
) -> None:
    devices = [a_device(str(n), **(extra if n == 0 else {})) for n in range(count)]
    parts = slices.contents(devices, [{"name": str(n)} for n in range(counters)])
    assert [len(next(iter(one.values()))) for one in parts] == lengths


def test_each_release_sees_one_shape_of_the_node_allocatable_fields() -> None:
    device = {"name": "a", "nodeAllocatableResources": 1, "nodeAllocatableResourceMappings": 2}
    assert slices.for_release(device, "1.36.3") == {
        "name": "a",
        "nodeAllocatableResourceMappings": 2,
    }
    assert slices.for_release(device, "1.37.2") == {"name": "a", "nodeAllocatableResources": 1}


# A Pod's status


def a_run(stage: runs.Stage) -> tuple[Obj, runs.Run]:
    pod = a_pod("work")
    pod["metadata"] |= {"uid": "u", "namespace": "n"}
    run = runs.begin(pod, NOW)
    run.stage = stage
    if stage in (runs.Stage.STARTED, runs.Stage.ENDED):
        run.containers["main"] = run.containers["main"].start(NOW)
    if stage is runs.Stage.ENDED:
        run.containers["main"] = run.containers["main"].end(NOW + timedelta(seconds=5), 0)
    return pod, run


@pytest.mark.parametrize(
    "stage, phase, ready, state",
    [
        (runs.Stage.ADMITTED, "Pending", "False", "waiting"),
        (runs.Stage.PREPARED, "Pending", "False", "waiting"),
        (runs.Stage.STARTED, "Running", "True", "running"),
        (runs.Stage.ENDED, "Succeeded", "False", "terminated"),
    ],
)
def test_a_status_says_how_far_the_pod_has_come_and_is_read_back(
    stage: runs.Stage, phase: str, ready: str, state: str
) -> None:
    pod, run = a_run(stage)
    status = status_of(pod, run, address="127.0.0.1", moment=NOW, health=lambda body: [])
    assert status["phase"] == phase
    conditions = {one["type"]: one["status"] for one in status["conditions"]}
    assert conditions["Ready"] == conditions["PodReadyToStartContainers"] == ready
    assert list(status["containerStatuses"][0]["state"]) == [state]

    pod["status"] = {**status, "observedGeneration": 1}
    assert not differs(status, pod["status"])
    back = runs.resume(pod, NOW + timedelta(hours=1))
    if stage in (runs.Stage.STARTED, runs.Stage.ENDED):
        assert back is not None
        assert (back.stage, back.containers) == (run.stage, run.containers)
    else:
        assert back is None, "what was not started yet begins anew"


def test_conditions_of_others_and_their_times_stay() -> None:
    pod, run = a_run(runs.Stage.STARTED)
    theirs = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": "then"}
    ours = {"type": "Ready", "status": "True", "lastTransitionTime": "before"}
    pod["status"] = {"conditions": [theirs, ours]}
    status = status_of(pod, run, address="127.0.0.1", moment=NOW, health=lambda body: [])
    found = {one["type"]: one["lastTransitionTime"] for one in status["conditions"]}
    assert found["DisruptionTarget"] == "then" and found["Ready"] == "before"


# Turns


def test_a_key_has_one_turn_at_a_time_and_no_wake_is_lost() -> None:
    turns, running, seen = Turns(4), threading.Lock(), []
    before = set(threading.enumerate())  # a fleet of other tests may be at work in this process

    def turn() -> None:
        assert running.acquire(blocking=False), "two turns of one key at once"
        time.sleep(0.01)
        seen.append(len(seen))
        running.release()

    turns.start()
    turns.add("key", turn)
    for _ in range(50):
        turns.wake("key")
        time.sleep(0.002)
    count = len(seen)
    turns.wake("key")
    time.sleep(0.1)
    turns.stop()
    assert len(seen) > count
    assert not set(threading.enumerate()) - before


def test_a_turn_that_fails_is_tried_again_and_an_earlier_wake_wins() -> None:
    turns, tries = Turns(2), []

    def turn() -> float | None:
        tries.append(time.monotonic())
        if len(tries) < 3:
            raise Unreachable("away")
        return 60.0

    turns.start()
    turns.add("key", turn)
    time.sleep(2.0)
    assert len(tries) == 3
    turns.wake("key")
    time.sleep(0.1)
    turns.drop("key")
    turns.wake("key")
    time.sleep(0.1)
    turns.stop()
    assert len(tries) == 4


def test_the_fleet_of_the_tests_has_both_paths_under_one_name() -> None:
    spec = load(FLEET_FILE)
    classes = {one["spec"].get("extendedResourceName") for one in spec.objects}
    assert spec.plugins[0].resource in classes
