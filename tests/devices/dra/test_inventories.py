"""What nodes should have, recorded or from a file; when a finding counts, and when it ends."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.hysteresis import CALM, Memory, Step, step
from devices.dra.inventories import Line, expected, file_of, read_file, recorded
from devices.dra.snapshot import read
from tests.factories import NOON

Obj = dict[str, Any]
DRIVER, RESOURCE = "gpu.example", "example/gpu"


def a_node(name: str, plugin: int = 0) -> Obj:
    status = {"allocatable": {RESOURCE: str(plugin)}}
    return {"kind": "Node", "metadata": {"name": name}, "status": status}


def a_slice(node: str, *models: str, slices: int = 1) -> Obj:
    devices = [
        {
            "name": f"gpu-{number}",
            "attributes": {"model": {"string": model}, "uuid": {"string": f"{node}-{number}"}},
        }
        for number, model in enumerate(models)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": slices}
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": f"s-{node}"},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices},
    }


CLUSTER = read(
    [
        a_node("n1"), a_slice("n1", "H100", "H100", "A100"),
        a_node("n2", plugin=8),
        a_node("n3"), a_slice("n3", "H100", slices=2),
        a_node("n4"),
    ]
)  # fmt: skip
NODES = ("n1", "n2", "n3", "n4")


def test_what_is_recorded_from_a_cluster() -> None:
    found = recorded(CLUSTER, NODES, DRIVER, RESOURCE)
    assert [(line.node, line.model, line.count) for line in found.lines] == [
        ("n1", "A100", 1),
        ("n1", "H100", 2),
        ("n2", "", 8),
    ]
    assert found.lines[0].devices == {"gpu-2": ("uuid:n1-2",)}
    assert found.left_out == ("n3", "n4"), "one is half published, one shows nothing"


GOOD = "node,driver,model,count\nn1,gpu.example,H100,8\nn2,,A100,4\n"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        pytest.param(GOOD, (), id="a good one"),
        pytest.param("Node; Count\nn1;8", ("Line 1: begin with",), id="another separator"),
        pytest.param("node,count\nn1,8\n\nn2, 4", (), id="the least of columns, and blank lines"),
        pytest.param("node,count\nx9,8", ("Line 2: x9 is no node of this pool",), id="a slip"),
        pytest.param("node,count\nn1,-1", ("Line 2: -1 is no number",), id="less than nothing"),
        pytest.param("node,count\nn1,", ("Line 2: nothing is no number",), id="no number"),
        pytest.param("node,count\nn1,8\nn1,8", ("Line 3: n1 has that twice",), id="twice"),
        pytest.param(
            "node,driver,count\nn1,nic.example,8", ("Line 2: this pool's driver",), id="not its own"
        ),
        pytest.param("", ("It has no lines",), id="an empty file"),
        pytest.param('node,count\n"n1,8', ("Line 2:",), id="a quote that never ends"),
    ],
)
def test_files(text: str, wrong: tuple[str, ...]) -> None:
    _, found = read_file(text, NODES, DRIVER)
    assert len(found) == len(wrong), found
    assert all(said.startswith(begins) for said, begins in zip(found, wrong, strict=True)), found


MODELS = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=20).map(str.strip)


@given(st.dictionaries(st.tuples(st.sampled_from(NODES), MODELS), st.integers(0, 64), min_size=1))
def test_a_file_reads_back_as_it_was_written(rows: dict[tuple[str, str], int]) -> None:
    rows = {key: count for key, count in rows.items() if not key[1].startswith("'")}
    lines = [Line(node, DRIVER, model, count) for (node, model), count in sorted(rows.items())]
    if lines:
        assert read_file(file_of(lines), NODES, DRIVER) == (tuple(lines), ())


def test_models_of_a_node_are_expected_together() -> None:
    lines = recorded(CLUSTER, NODES, DRIVER, RESOURCE).lines
    found = expected(lines)
    assert {place: one.count for place, one in found.items()} == {
        ("n1", DRIVER): 3,
        ("n2", DRIVER): 8,
    }
    assert found["n1", DRIVER].devices["gpu-0"] == frozenset({"uuid:n1-0"})


PATIENCE = timedelta(minutes=3)


@pytest.mark.parametrize(
    ("memory", "found", "at", "becomes"),
    [
        pytest.param(Memory(NOON, NOON), True, PATIENCE - timedelta(seconds=1), Step.WATCHED,
                     id="a kubelet's restart takes minutes"),
        pytest.param(Memory(NOON, NOON), True, PATIENCE, Step.OPENED, id="longer is no dip"),
        pytest.param(Memory(NOON, NOON), False, timedelta(seconds=30), Step.PASSED,
                     id="a dip that passed"),
        pytest.param(Memory(NOON, NOON, True), True, timedelta(hours=1), Step.STANDS,
                     id="what counts goes on counting"),
        pytest.param(Memory(NOON, NOON, True), False, CALM - timedelta(seconds=1), Step.STANDS,
                     id="away for a moment is not over"),
        pytest.param(Memory(NOON, NOON, True), False, CALM, Step.ENDED, id="away for long is over"),
    ],
)  # fmt: skip
def test_when_a_finding_counts_and_ends(
    memory: Memory, found: bool, at: timedelta, becomes: Step
) -> None:
    assert step(memory, found, PATIENCE, NOON + at) is becomes


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 90)), max_size=40))
def test_what_flaps_opens_once_at_most_between_two_calms(looks: list[tuple[bool, int]]) -> None:
    memory: Memory | None = None
    now, opened, last_seen = NOON, 0, NOON
    for found, seconds in looks:
        now += timedelta(seconds=seconds)
        if memory is None:
            memory = Memory(now, now) if found else None
            continue
        what = step(memory, found, PATIENCE, now)
        if what is Step.OPENED:
            opened += 1
            assert opened == 1 and now - memory.first_seen >= PATIENCE
        if what is Step.ENDED:
            assert now - last_seen >= CALM
            opened = 0
        if what in (Step.ENDED, Step.PASSED):
            memory = None
            continue
        last_seen = now if found else last_seen
        memory = Memory(memory.first_seen, last_seen, memory.believed or what is Step.OPENED)
