"""Pools, nodes, devices and drivers in words, over the shared cases and the demo's fleet."""

from __future__ import annotations

import pytest

from devices.dra.describe import label, title, told, traits
from devices.dra.driverhealth import Health, driver_health, worst
from devices.dra.gates import gates
from devices.dra.hardwarefacts import (
    device_facts,
    devices_of_pool,
    found_devices,
    node_facts,
    nodes_of_class,
    pool_facts,
)
from devices.dra.hardwareholders import held
from devices.dra.hardwarewords import taint_words
from devices.dra.pools import pools
from devices.dra.snapshot import read
from devices.dra.standing import pool_standings, standings
from devices.dra.taints import DeviceTaint
from tests.devices.demofleet import RELEASE, fleet_objects, h100, holding
from tests.devices.demofleet import snapshot as demo
from tests.devices.dra.cases import PATHS, by_number, snapshot


@pytest.mark.parametrize(
    ("attributes", "capacity", "words"),
    [
        pytest.param(
            {"g/productName": "H100", "g/interconnect": "nvlink", "g/driverVersion": "570"},
            {"g/memory": "81559Mi"},
            "memory 79.6 GiB · NVLink",
            id="a card",
        ),
        pytest.param(
            {"n/rdma": "true", "n/gigabits": "400", "n/sriov": "false"},
            {"n/bandwidth": "200G"},
            "bandwidth 200 Gb/s · link speed 400 Gb/s · RDMA",
            id="a port; what it has not is not said",
        ),
        pytest.param({"c/zone": "1"}, {"c/cores": "62"}, "cores 62", id="which one is not said"),
    ],
)
def test_what_devices_are_in_a_line(attributes, capacity, words):
    found = traits(attributes, capacity)
    assert told(found, besides=title("driver", attributes)) == words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpu.example/driverVersion", "driver version"),
        ("resource.kubernetes.io/numaNode", "NUMA node"),
        ("nvlinkDomain", "NVLink domain"),
        ("uuid", "UUID"),
    ],
)
def test_names_as_words(name, words):
    assert label(name) == words


@pytest.mark.parametrize(
    ("number", "state", "why"),
    [
        pytest.param("04", "incomplete", "2 of 3 slices", id="slices are missing"),
        pytest.param("06", "invalid", "duplicate device name", id="the scheduler refuses it"),
        pytest.param("01", "complete", "", id="a good one"),
    ],
)
def test_a_pool_says_whether_anything_is_given_from_it(number, state, why):
    cluster = snapshot(by_number(number))
    found = [pool_facts(cluster, pool) for pool in pools(cluster).values()]
    chosen = [facts for facts in found if facts.state == state]
    assert chosen and why in chosen[0].why


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_one_pool_stands_as_it_does_among_all(path):
    alone = snapshot(path)
    by_pool = {}
    for pool in pools(alone).values():
        by_pool.update(pool_standings(alone, pool))
    assert by_pool == dict(standings(snapshot(path)))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_published_device_has_a_page(path):
    cluster = snapshot(path)
    for pool in pools(cluster).values():
        if pool.invalid:
            continue  # two devices of one name have one page
        for device in devices_of_pool(cluster, pool):
            again = device_facts(cluster, device.key)
            assert again is not None and again.standing == device.standing


def test_a_held_device_that_nobody_publishes_has_a_page_too():
    cluster = snapshot(by_number("31"))
    found = device_facts(cluster, ("gpu.nvidia.com", "node-c4", "gpu-0"))
    assert found is not None and found.kind == "unknown" and found.device is None
    assert device_facts(cluster, ("gpu.nvidia.com", "node-c4", "gpu-9")) is None


def test_devices_are_found_by_class_pool_and_node():
    cluster = demo(holding("job", h100(1, 0)))
    assert len(found_devices(cluster, device_class="h100-80gb")) == 32
    assert len(found_devices(cluster, device_class="h100-80gb", node="h100-a02")) == 8
    assert len(found_devices(cluster, driver="fpga.lattice.example")) == 4
    assert found_devices(cluster, device_class="no such") == []
    assert nodes_of_class(cluster, "h100-80gb")["h100-a01"].allocated == 1
    assert nodes_of_class(cluster, "fabric-gpu")[""].total == 4


def test_a_node_has_its_devices_and_what_plugins_offer():
    objects = fleet_objects()
    for one in objects:
        if one["metadata"]["name"] == "l40s-d01":
            one["status"]["allocatable"]["helios.example/l40s"] = "4"
    pod = {
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "b", "uid": "p"},
        "spec": {
            "nodeName": "l40s-d01",
            "containers": [{"name": "c", "resources": {"requests": {"helios.example/l40s": "3"}}}],
        },
    }
    cluster = read([*objects, pod], gates=gates(RELEASE))
    found = node_facts(cluster, "l40s-d01")
    assert found is not None
    [resource] = found.resources
    assert (resource.allocatable, resource.requested) == (4, 3)
    assert node_facts(cluster, "h100-a01").figures.total == 16
    assert node_facts(cluster, "nowhere") is None


def test_own_claims_are_named_and_others_counted():
    cluster = demo(holding("mine", h100(1, 0), namespace="a"), holding("x", h100(1, 0)))
    claims = device_facts(cluster, h100(1, 0)[0]).holders
    own = held(claims, frozenset({"a"}))
    assert [claim.meta.name for claim in own.own] == ["mine"] and own.others == 1
    assert held(claims, None).others == 0


@pytest.mark.parametrize(
    ("number", "driver", "state"),
    [
        pytest.param("01", "gpu.nvidia.com", Health.HEALTHY, id="publishes"),
        pytest.param("04", "npu.example.com", Health.LOOK, id="an incomplete pool"),
        pytest.param("06", "gpu.example.com", Health.LOOK, id="an invalid pool"),
        pytest.param("31", "gpu.nvidia.com", Health.ALARM, id="gone where devices are in use"),
        pytest.param("09", "dra.net", Health.HEALTHY, id="it hides what is in use"),
    ],
)
def test_how_a_driver_does(number, driver, state):
    found = driver_health(snapshot(by_number(number)))[driver]
    assert found.state is state and found.sentence
    assert worst([found]) is found


@pytest.mark.parametrize(
    ("effect", "words"),
    [
        ("NoSchedule", "takes no new work; what runs keeps running (by its driver)"),
        ("NoExecute", "takes no new work, and Pods that use it are ended (by its driver)"),
        ("None", "is marked, and nothing else happens (by its driver)"),
        ("Whatever", "is marked, and nothing else happens (by its driver)"),
    ],
)
def test_taints_in_words(effect, words):
    assert taint_words(DeviceTaint("key", effect=effect)) == words
