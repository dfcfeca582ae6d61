"""Which pools and devices a node sees, in which order, and how the releases differ in it."""

from __future__ import annotations

import pytest

from devices.dra.gates import gates
from devices.dra.pools import pools
from devices.dra.snapshot import read
from devices.dra.visibility import view


def a_slice(name, *devices, pool="p", generation=1, count=1, driver="d.example.com", **spec):
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": {
            "driver": driver,
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
            "devices": [
                device if isinstance(device, dict) else {"name": device} for device in devices
            ],
        }
        | (spec or {"nodeName": "n1"}),
    }


def a_node(name, **labels):
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


def sees(objects, node="n1", release="1.37"):
    seen = read(objects, gates=gates(release))
    return view(seen, seen.node(node))


def names(found):
    return [str(place) for place in found.places]


def test_pools_stand_by_driver_and_name_slices_by_name_devices_as_listed():
    found = sees([
        a_slice("z", "b", "a", pool="p1", driver="b.example.com"),
        a_slice("s2", "y", pool="p2", driver="a.example.com", count=2),
        a_slice("s1", "x", pool="p2", driver="a.example.com", count=2),
    ])  # fmt: skip
    assert names(found) == [
        "a.example.com/p2/x",
        "a.example.com/p2/y",
        "b.example.com/p1/b",
        "b.example.com/p1/a",
    ]


def test_a_pool_with_a_device_that_binds_comes_last():
    found = sees([
        a_slice("a", {"name": "x", "bindingConditions": ["ready"]}, pool="a"),
        a_slice("b", "y", pool="b"),
    ])  # fmt: skip
    assert [pool.name for pool in found.pools] == ["b", "a"]


@pytest.mark.parametrize("count, usable", [(2, True), (3, False), (1, False)])
def test_a_pool_counts_only_when_all_its_slices_are_there(count, usable):
    found = sees([a_slice("a", "x", count=count), a_slice("b", "y", count=count)])
    assert [pool.usable for pool in found.pools] == [usable]
    assert len(found.places) == (2 if usable else 0)


def test_only_the_newest_generation_counts():
    old, new = a_slice("a", "x", generation=1), a_slice("b", "y", generation=2)
    assert names(sees([old, new])) == ["d.example.com/p/y"]
    [pool] = pools(read([old, new])).values()
    assert (pool.generation, pool.outdated, pool.incomplete) == (2, ("a",), False)


def test_a_newer_generation_that_leaves_a_node_out_hides_the_incomplete_old_pool_from_it():
    old = a_slice("a", "x", generation=1, count=2)
    new = a_slice("b", "y", generation=2, nodeName="n2")
    assert sees([old, new]).pools == ()


def test_a_complete_old_generation_is_used_where_the_newer_one_cannot_be_seen():
    """The scheduler looks further only when slices are missing."""
    old = a_slice("a", "x", generation=1)
    new = a_slice("b", "y", generation=2, nodeName="n2")
    assert names(sees([old, new])) == ["d.example.com/p/x"]


@pytest.mark.parametrize(
    "pieces, why",
    [
        ([a_slice("a", "x", count=2), a_slice("b", "x", count=2)], "duplicate device name x"),
        (
            [
                a_slice(
                    "a", {"name": "x", "consumesCounters": [{"counterSet": "s", "counters": {}}]}
                )
            ],
            "counter set s not found",
        ),
    ],
)
def test_an_invalid_pool_says_why(pieces, why):
    [pool] = sees(pieces).pools
    assert (pool.usable, pool.invalid) == (False, why)
    [whole] = pools(read(pieces)).values()
    assert whole.invalid == why


@pytest.mark.parametrize("release, pools_seen", [("1.36", 1), ("1.37", 0)])
def test_through_1_36_counters_of_other_nodes_are_looked_at_everywhere(release, pools_seen):
    counters = a_slice("c", nodeName="n2", count=2)
    counters["spec"]["sharedCounters"] = [{"name": "s", "counters": {"m": {"value": "1"}}}]
    devices = a_slice("d", "x", nodeName="n2", count=2)
    found = sees([counters, devices], release=release)
    assert len(found.pools) == pools_seen
    assert found.places == ()


def test_shared_pools_reach_nodes_by_selector_by_all_and_device_by_device():
    rack = {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": "rack", "operator": "In", "values": ["r1"]}]}]}  # fmt: skip
    mixed = [{"name": "x", "nodeName": "n1"}, {"name": "y", "allNodes": True}]
    objects = [
        a_node("n1", rack="r1"),
        a_node("n2", rack="r2"),
        a_slice("a", "s", pool="a", nodeSelector=rack),
        a_slice("b", "e", pool="b", allNodes=True),
        a_slice("c", *mixed, pool="c", perDeviceNodeSelection=True),
        a_slice("d", "u", pool="d", someFutureWay=True),
    ]
    assert [pool.name for pool in sees(objects, "n1").pools] == ["a", "b", "c"]
    assert [pool.name for pool in sees(objects, "n2").pools] == ["b", "c"]


def test_without_partitions_counters_and_device_by_device_pools_are_not_seen():
    objects = [
        a_slice("c", {"name": "x", "allNodes": True}, pool="c", perDeviceNodeSelection=True),
        a_slice("b", "e", pool="b"),
    ]
    off = gates("1.37", {"DRAPartitionableDevices": False})
    seen = read(objects, gates=off)
    assert [pool.name for pool in view(seen, seen.node("n1")).pools] == ["b"]


def test_compatibility_groups_hide_a_slice_from_schedulers_that_do_not_know_them():
    use = [{"counterSet": "s", "counters": {"m": {"value": "1"}}, "compatibilityGroups": ["g"]}]
    counters = a_slice("c", count=2)
    counters["spec"]["sharedCounters"] = [{"name": "s", "counters": {"m": {"value": "1"}}}]
    objects = [counters, a_slice("d", {"name": "x", "consumesCounters": use}, count=2)]
    assert [pool.incomplete for pool in sees(objects).pools] == [True]
    seen = read(objects, gates=gates("1.37", {"DRADeviceCompatibilityGroups": True}))
    assert names(view(seen, seen.node("n1"))) == ["d.example.com/p/x"]
