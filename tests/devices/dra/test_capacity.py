"""How much hardware there is and how it stands: the cases, and sums that always hold."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.dra.capacity import Capacity, Tally, capacity
from devices.dra.gates import gates
from devices.dra.hardware import pieces
from devices.dra.largest import largest, moves
from devices.dra.pools import pools
from devices.dra.shares import shares
from devices.dra.snapshot import read
from tests.devices.demofleet import fleet_objects
from tests.devices.dra.cases import by_number, snapshot


def of(number: str) -> Capacity:
    return capacity(snapshot(by_number(number)))


def figures(tally: Tally) -> tuple[int, int, int, dict[str, int]]:
    """Idle, allocated, fragmented, and what is unavailable or unknown by code."""
    return tally.idle, tally.allocated, tally.fragmented, {**tally.unavailable, **tally.unknown}


@pytest.mark.parametrize(
    "number, expected",
    [
        pytest.param("04", (1, 0, 0, {"POOL_INCOMPLETE": 3}), id="04 incomplete is no capacity"),
        pytest.param("05", (2, 0, 0, {}), id="05 an old generation adds nothing"),
        pytest.param("06", (1, 0, 0, {"POOL_INVALID": 3}), id="06 invalid is no capacity"),
        pytest.param("07", (0, 0, 1, {}), id="07 six partitions are one card, partly used"),
        pytest.param("09", (2, 1, 0, {}), id="09 a device that hides while used is there"),
        pytest.param("15", (1, 1, 0, {}), id="15 two drivers, one pool name, one device name"),
        pytest.param("19", (1, 0, 1, {}), id="19 a shared device is neither idle nor in use"),
        pytest.param("22", (1, 1, 0, {}), id="22 administrative access takes nothing"),
        pytest.param("24", (1, 2, 0, {"DEVICE_TAINTED": 1}), id="24 effect None closes nothing"),
        pytest.param("29", (1, 5, 0, {}), id="29 deleting, stale and idle claims hold devices"),
        pytest.param("31", (0, 0, 0, {}), id="31 what nobody publishes is in no sum"),
        pytest.param("35", (0, 1, 0, {}), id="35 one card, published three times"),
        pytest.param("38", (1, 2, 0, {}), id="38 a fabric pool counts once, not per node"),
        pytest.param("41", (260, 40, 0, {}), id="41 many devices in three slices"),
        pytest.param("42", (0, 1, 0, {}), id="42 one card is left, and it is in use"),
        pytest.param("43", (9, 0, 0, {}), id="43 an empty pool is valid"),
        pytest.param("46", (4, 1, 0, {}), id="46 devices of the cluster"),
        pytest.param("50", (2, 3, 0, {}), id="50 a claim that is gone holds nothing"),
    ],
)
def test_a_cluster_stands(number, expected) -> None:
    assert figures(of(number).cluster) == expected


def test_published_devices_and_hardware_are_two_figures() -> None:
    assert (of("07").cluster.devices, of("07").cluster.total) == (6, 1)
    assert (of("35").cluster.devices, of("35").cluster.total) == (3, 1)
    assert (of("09").cluster.devices, of("09").cluster.total, of("09").cluster.hidden) == (2, 3, 1)


def test_devices_that_nobody_publishes_are_listed_apart() -> None:
    assert of("31").not_published == (
        ("gpu.nvidia.com", "node-c3", "gpu-0"),
        ("gpu.nvidia.com", "node-c4", "gpu-0"),
    )
    assert of("09").not_published == ()


def test_devices_of_the_cluster_are_in_no_nodes_sum() -> None:
    nodes = {name: tally.total for name, tally in of("46").nodes.items()}
    assert nodes == {"": 4, "node-n5": 1}
    assert {name: tally.total for name, tally in of("38").nodes.items()} == {"": 3}


def test_a_pool_and_a_node_have_their_own_figures() -> None:
    found = of("43")
    assert {name: tally.total for name, tally in found.nodes.items()} == {
        "node-l4": 0,
        "node-l5": 7,
        "node-l7": 2,
    }
    assert found.pools["gpu.nvidia.com", "node-l4"].total == 0


@pytest.mark.parametrize(
    "number, device_class, expected",
    [
        pytest.param("07", "gpu.nvidia.com", (0, 0, 1, {}), id="a whole card blocked by a part"),
        pytest.param("07", "mig.nvidia.com", (0, 0, 1, {}), id="a part is left"),
        pytest.param("15", "nic.example.com", (1, 0, 0, {}), id="the other driver's device"),
        pytest.param("27", "dra.cpu", (0, 0, 0, {"SELECTOR_FAILS": 1}), id="nobody can say"),
        pytest.param("47", "gpu.example.com", (2, 0, 0, {}), id="two, on two nodes"),
    ],
)
def test_a_class_stands(number, device_class, expected) -> None:
    assert figures(of(number).classes[device_class]) == expected


@pytest.mark.parametrize(
    "number, device_class, count, code",
    [
        pytest.param("01", "gpu.nvidia.com", 2, "", id="all on one node"),
        pytest.param("04", "npu.example.com", 1, "", id="not from an incomplete pool"),
        pytest.param("07", "mig.nvidia.com", 1, "", id="partitions exclude each other"),
        pytest.param("07", "gpu.nvidia.com", 0, "NO_MATCHING_DEVICE_FREE", id="no whole card"),
        pytest.param("41", "vf", 32, "", id="a claim holds 32 at most"),
        pytest.param("47", "gpu.example.com", 1, "", id="not across nodes"),
        pytest.param("46", "jbog.example.com", 2, "", id="local and reachable ones together"),
        pytest.param("27", "dra.cpu", None, "SELECTOR_FAILS", id="nobody can say"),
    ],
)
def test_the_largest_request_that_fits(number, device_class, count, code) -> None:
    found = largest(snapshot(by_number(number)), device_class)
    assert (found.count, found.code) == (count, code)


def test_where_no_node_was_seen_nobody_can_say_what_fits() -> None:
    kept = [one for one in fleet_objects() if one["kind"] != "Node"]
    fabric = largest(read(kept, gates=gates("1.37")), "fabric-gpu")
    assert (fabric.count, fabric.code) == (None, "NODES_NOT_SEEN")
    assert largest(read(fleet_objects(), gates=gates("1.37")), "fabric-gpu").count == 4


def test_one_release_may_let_a_larger_request_in() -> None:
    assert [(m.claim, m.count) for m in moves(snapshot(by_number("07")), "gpu.nvidia.com")] == [
        ("team-b/half-0", 1)
    ]
    assert [(m.claim, m.count) for m in moves(snapshot(by_number("21")), "l4")] == [
        ("team-a/chosen", 3)
    ]
    assert moves(snapshot(by_number("24")), "gpu.nvidia.com") == ()  # taints stay


def test_what_is_left_of_a_shared_device_is_exact() -> None:
    card = shares(snapshot(by_number("19")), ("share.example.com", "node-r1", "card-0"))
    assert {name: str(found.left) for name, found in card.items()} == {
        "memory": "46Gi",
        "slots": "4",
    }
    vgpu = shares(
        snapshot(by_number("20")), ("hami-core-gpu.project-hami.io", "node-s1", "hami-gpu-0")
    )
    assert {name: str(f.left) for name, f in vgpu.items()} == {"cores": "20", "memory": "5360Mi"}


def test_amounts_are_shown_in_the_devices_own_unit() -> None:
    [nic] = shares(snapshot(by_number("49")), ("net.example.com", "node-q5", "eth0")).values()
    assert (str(nic.taken), str(nic.left)) == ("11G", "89G")
    assert {who: str(amount) for who, amount in nic.by_namespace.items()} == {
        "team-a": "10G",
        "team-b": "1G",
    }


def test_a_tenant_sees_its_own_part_and_the_rest_as_one() -> None:
    [memory] = shares(
        snapshot(by_number("48")), ("share.example.com", "node-p5", "card-0")
    ).values()
    assert (str(memory.taken), str(memory.total)) == ("50Gi", "80Gi")
    assert str(memory.by_namespace["team-a"]) == "20Gi"


def test_a_device_that_is_not_shared_has_no_shares() -> None:
    assert shares(snapshot(by_number("01")), ("gpu.nvidia.com", "node-a1", "gpu-1")) == {}


# --- sums ---


@st.composite
def clusters(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Slices with partitions, shareable, tainted and doubly published devices, and claims."""
    made: list[dict[str, Any]] = [
        {
            "kind": "DeviceClass",
            "metadata": {"name": "all"},
            "spec": {"selectors": [{"cel": {"expression": 'device.driver.startsWith("d")'}}]},
        },
        {
            "kind": "DeviceClass",
            "metadata": {"name": "parts"},
            "spec": {
                "selectors": [{"cel": {"expression": 'device.attributes["k"].kind == "part"'}}]
            },
        },
    ]
    for number in range(draw(st.integers(1, 4))):
        driver = draw(st.sampled_from(["d1", "d2"]))
        pool = {
            "name": f"p{number}",
            "generation": draw(st.integers(1, 2)),
            "resourceSliceCount": draw(st.sampled_from([2, 2, 2, 3])),
        }
        where = draw(st.sampled_from([{"nodeName": "n1"}, {"nodeName": "n2"}, {"allNodes": True}]))
        counters = [
            {"name": f"card-{card}", "counters": {"memory": {"value": "4"}}} for card in range(2)
        ]
        devices = [_device(draw, index) for index in range(draw(st.integers(0, 5)))]
        for suffix, content in (("a", {"sharedCounters": counters}), ("b", {"devices": devices})):
            spec = {"driver": driver, "pool": pool, **where, **content}
            meta = {"name": f"{driver}-{number}-{suffix}"}
            made.append({"kind": "ResourceSlice", "metadata": meta, "spec": spec})
        for index in range(draw(st.integers(0, 4))):
            name = draw(st.sampled_from([f"x{i}" for i in range(6)]))
            result = {"request": "r", "driver": driver, "pool": f"p{number}", "device": name}
            if draw(st.booleans()):
                result |= {"shareID": f"s{index}", "consumedCapacity": {"c": draw(AMOUNTS)}}
            made.append(
                {
                    "kind": "ResourceClaim",
                    "metadata": {"name": f"c{number}-{index}", "namespace": "ns"},
                    "spec": {},
                    "status": {"allocation": {"devices": {"results": [result]}}},
                }
            )
    if draw(st.booleans()):
        made.append({"kind": "Node", "metadata": {"name": "n1"}})
    return made


AMOUNTS = st.sampled_from(["1", "2", "4", "10"])


def _device(draw: st.DrawFn, index: int) -> dict[str, Any]:
    kind = draw(st.sampled_from(["whole", "part", "shared"]))
    device: dict[str, Any] = {"name": f"x{index}", "attributes": {"k/kind": {"string": kind}}}
    if draw(st.booleans()):
        device["attributes"]["uuid"] = {
            "string": draw(st.sampled_from(["u1", "u2", f"own-{index}"]))
        }
    if kind == "part":
        card = draw(st.sampled_from(["card-0", "card-1"]))
        need = {"memory": {"value": draw(AMOUNTS)}}
        device["consumesCounters"] = [{"counterSet": card, "counters": need}]
    if kind == "shared":
        device |= {"allowMultipleAllocations": True, "capacity": {"c": {"value": "10"}}}
    if draw(st.integers(0, 4)) == 0:
        device["taints"] = [{"key": "t", "effect": draw(st.sampled_from(["None", "NoSchedule"]))}]
    return device


@settings(max_examples=60, deadline=None)
@given(clusters())
def test_every_piece_stands_in_exactly_one_column(made) -> None:
    cluster = read(made)
    found = capacity(cluster)
    spots = [(s, d) for pool in pools(cluster).values() for s in pool.slices for d in s.devices]
    groups = pieces(spots)
    assert found.cluster.total == len(groups)
    assert found.cluster.devices == len(spots)
    for key, tally in found.pools.items():
        here = [[s for s, _ in group if (s.driver, s.pool) == key] for group in groups]
        assert (tally.total, tally.devices) == (sum(map(bool, here)), sum(map(len, here)))
    for node, tally in found.nodes.items():
        assert tally.total == sum(any(s.reach.node_name == node for s, _ in g) for g in groups)
    assert found.classes["all"] == found.cluster
    for tally in (*found.classes.values(), *found.pools.values(), *found.nodes.values()):
        assert min(tally.idle, tally.allocated, tally.fragmented) >= 0
        assert 0 <= tally.total <= found.cluster.total


@settings(max_examples=30, deadline=None)
@given(clusters())
def test_giving_everything_back_leaves_nothing_allocated(made) -> None:
    before = capacity(read(made)).cluster
    after = capacity(read([obj for obj in made if obj["kind"] != "ResourceClaim"])).cluster
    assert (after.allocated, after.fragmented) == (0, 0)
    assert after.total == before.total and after.idle >= before.idle
