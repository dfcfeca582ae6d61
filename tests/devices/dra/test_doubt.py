"""Which slice pools are not believed, and which asks wait for that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from devices.dra.doubt import Doubt, Mark, advance, doubts, keeps_back, unsafe_pools
from devices.dra.pools import pools
from devices.dra.snapshot import read
from tests.devices.ledger.clusters import Cluster
from tests.factories import NOON

Obj = dict[str, Any]
DRIVER = "gpu.example"
SETS = {DRIVER: {("gpu", "driver")}}


def a_slice(node: str, generation: int = 1, count: int = 1, name: str = "") -> Obj:
    pool = {"name": node, "generation": generation, "resourceSliceCount": count}
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": name or f"s-{node}"},
        "spec": {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]},
    }


def a_node(name: str, ready: str = "True") -> Obj:
    conditions = [{"type": "Ready", "status": ready}]
    return {"kind": "Node", "metadata": {"name": name}, "status": {"conditions": conditions}}


def a_class(name: str = "gpu") -> Obj:
    expression = f'device.driver == "{DRIVER}"'
    return {
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def a_driver(node: str, away: timedelta) -> Obj:
    at = (NOON - away).strftime("%Y-%m-%dT%H:%M:%SZ")
    owner = {"kind": "DaemonSet", "name": "driver", "uid": "d", "controller": True}
    ready = {"type": "Ready", "status": "False", "lastTransitionTime": at}
    return {
        "kind": "Pod",
        "metadata": {"name": f"d-{node}", "namespace": "gpu", "ownerReferences": [owner]},
        "spec": {"nodeName": node, "containers": [{"name": "main"}]},
        "status": {"phase": "Running", "conditions": [ready]},
    }


MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("objects", "back", "code"),
    [
        pytest.param([a_node("n"), a_slice("n")], (), "", id="whole, and its node is heard"),
        pytest.param([a_node("n"), a_slice("n", count=2)], (), "POOL_INCOMPLETE", id="half there"),
        pytest.param([a_node("n", "Unknown"), a_slice("n")], (), "STALE_INVENTORY",
                     id="its node's lease is over"),
        pytest.param([a_slice("n")], (), "", id="nobody saw its node, which says nothing"),
        pytest.param([a_node("n"), a_slice("n"), a_driver("n", MINUTE)], (), "STALE_INVENTORY",
                     id="its driver is away for a minute"),
        pytest.param([a_node("n"), a_slice("n"), a_driver("n", MINUTE / 2)], (), "",
                     id="its driver only restarts"),
        pytest.param([a_node("n"), a_slice("n")], [(DRIVER, "n")], "GENERATION_WENT_BACK",
                     id="it counts from less than before"),
    ],
)  # fmt: skip
def test_what_is_doubted(objects: list[Obj], back: list[tuple[str, str]], code: str) -> None:
    found = doubts(read(objects), NOON, sets=SETS, back=back)
    assert [one.code for one in found.values()] == ([code] if code else [])


HALF = a_slice("n1", count=2)


@pytest.mark.parametrize(
    ("objects", "requests", "waits"),
    [
        pytest.param([a_class(), HALF], [["gpu"]], True, id="its only pool"),
        pytest.param([a_class(), HALF, a_slice("n2")], [["gpu"]], False, id="another pool is fine"),
        pytest.param([a_class(), HALF], [["other"]], False, id="a class that is not there"),
        pytest.param([a_class("nic"), HALF], [["gpu"]], False, id="not its class"),
        pytest.param([HALF], [["gpu"]], False, id="no pool of its class: the scheduler says so"),
        pytest.param(
            [a_class(), HALF], [["none"], ["gpu"]], True, id="one of its requests is enough"
        ),
    ],
)
def test_what_waits(objects: list[Obj], requests: list[list[str]], waits: bool) -> None:
    snapshot = read(objects)
    found = keeps_back(snapshot, requests, doubts(snapshot, NOON))
    assert (found is not None) is waits


def test_the_gravest_doubt_is_told() -> None:
    snapshot = read([a_class(), a_slice("n1"), a_slice("n2")])
    doubted = {
        (DRIVER, "n1"): Doubt("POOL_INCOMPLETE", "a"),
        (DRIVER, "n2"): Doubt("GENERATION_WENT_BACK", "b"),
    }
    found = keeps_back(snapshot, [["gpu"]], doubted)
    assert found is not None and found.code == "GENERATION_WENT_BACK"


def looked(mark: Mark | None, *slices: Obj) -> Mark:
    (pool,) = pools(read(slices)).values()
    return advance(mark, pool)


def test_a_generation_that_goes_back_within_a_life_is_noticed_until_it_goes_on() -> None:
    mark = looked(None, a_slice("n", 7))
    assert not mark.back
    mark = looked(mark, a_slice("n", 5))
    assert (mark.back, mark.generation) == (True, 7)
    assert looked(mark, a_slice("n", 6)).back, "still less than it was"
    assert not looked(mark, a_slice("n", 7)).back


def test_a_new_life_counts_from_anywhere() -> None:
    mark = looked(None, a_slice("n", 7, name="old"))
    assert looked(mark, a_slice("n", 1, name="new")) == Mark(1, frozenset({"new"}))


def test_an_older_slice_beside_the_newest_is_no_step_back() -> None:
    mark = looked(None, a_slice("n", 7, name="a"))
    assert not looked(mark, a_slice("n", 7, name="a"), a_slice("n", 3, name="b")).back


def test_a_pool_that_costs_something_of_an_unsafe_node_keeps_asks_back() -> None:
    made = Cluster()
    made.slices("n1", mapping="2")
    made.slices("n2")
    cluster = made.read()
    found = unsafe_pools(cluster, {"n1": "LEDGER_OVERCOMMITTED", "n2": "LEDGER_OVERCOMMITTED"})
    assert {key: doubt.code for key, doubt in found.items()} == {
        ("d.example.com", "n1"): "LEDGER_UNSAFE"
    }
    assert unsafe_pools(cluster, {}) == {}
