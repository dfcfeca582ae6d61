"""What the catalogue counts, over the shared cases."""

from __future__ import annotations

import pytest

from devices.dra.gates import gates
from devices.dra.offers import Tally, catalogue_counts
from devices.dra.snapshot import read
from tests.devices.demofleet import RELEASE, fleet_objects, h100, holding
from tests.devices.demofleet import snapshot as demo
from tests.devices.dra.cases import PATHS, by_number, snapshot


@pytest.mark.parametrize(
    "number, device_class, tally",
    [
        pytest.param("01", "gpu.nvidia.com", Tally(free=2), id="two free devices"),
        pytest.param(
            "02", "gpu.nvidia.com", Tally(free=2), id="selectors of requests do not matter"
        ),
        pytest.param(
            "04",
            "npu.example.com",
            Tally(free=1, unavailable={"POOL_INCOMPLETE": 3}),
            id="an incomplete pool is no capacity",
        ),
        pytest.param("05", "tpu.google.com", Tally(free=2), id="an old generation adds nothing"),
        pytest.param(
            "06",
            "gpu.example.com",
            Tally(free=1, unavailable={"POOL_INVALID": 3}),
            id="an invalid pool is no capacity",
        ),
        pytest.param(
            "07",
            "mig.nvidia.com",
            Tally(free=2, allocated=1, fragmented=2),
            id="partitions exclude each other",
        ),
        pytest.param(
            "08",
            "gpu.intel.com",
            Tally(free=1, unavailable={"DEVICE_TAINTED": 2}),
            id="tainted devices are not free",
        ),
        pytest.param(
            "19", "share.example.com", Tally(free=1, shared=1), id="a shared card is neither"
        ),
        pytest.param(
            "24",
            "gpu.nvidia.com",
            Tally(free=1, allocated=2, unavailable={"DEVICE_TAINTED": 1}),
            id="a taint without effect does not close a device",
        ),
        pytest.param(
            "09",
            "dranet",
            Tally(free=2, allocated=1),
            id="hidden while in use is allocated",
        ),
        pytest.param("41", "vf", Tally(free=260, allocated=40), id="three hundred devices"),
    ],
)
def test_devices_of_a_class_are_counted_by_how_they_stand(number, device_class, tally):
    found = catalogue_counts(snapshot(by_number(number)))
    assert found[device_class].tally == tally


def absent_from_groups(path):
    """Devices in use that nobody publishes: they are in no group, for nobody knows their kind."""
    return {"09-dranet-allocated-device-gone-from-slice": 1}.get(path.stem, 0)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_groups_of_a_class_add_up_to_its_counts(path):
    for found in catalogue_counts(snapshot(path)).values():
        grouped = sum(group.tally.total for group in found.groups)
        failing = found.tally.unknown.get("SELECTOR_FAILS", 0)
        absent = absent_from_groups(path)
        assert grouped + failing + absent == found.tally.total
        assert sum(group.tally.free for group in found.groups) == found.tally.free


def test_a_group_is_what_devices_are_not_which_they_are():
    [group] = catalogue_counts(snapshot(by_number("01")))["gpu.nvidia.com"].groups
    assert group.tally.total == 2
    assert group.nodes == 1
    assert group.capacity["gpu.nvidia.com/memory"] == "81559Mi"
    assert not [name for name in group.attributes if name.endswith(("uuid", "pcieRoot"))]


def of_node(one, name):
    """Whether an object is that node, or a slice of it."""
    if one["kind"] == "Node":
        return one["metadata"]["name"] == name
    return one["kind"] == "ResourceSlice" and one["spec"]["pool"]["name"] == name


def pinned(claim, node):
    """The claim as the scheduler writes it: allocated for one node."""
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    claim["status"]["allocation"]["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    return claim


def test_devices_held_from_a_slice_that_vanished_stay_in_the_total_as_unknown():
    held = [pinned(holding("a", h100(1, 0, 1, 2, 3, 4, 5, 6, 7)), "h100-a01")]

    def tally(*objects):
        return catalogue_counts(read(objects, gates=gates(RELEASE)))["h100-80gb"].tally

    fleet = fleet_objects()
    before = tally(*fleet, *held)
    assert (before.total, before.allocated, before.unknown) == (32, 8, {})
    rest = [one for one in fleet if not of_node(one, "h100-a01")]
    node = [one for one in fleet if of_node(one, "h100-a01") and one["kind"] == "Node"]
    after = tally(*rest, *node, *held)
    assert (after.total, after.free, after.unknown) == (32, 24, {"LEAK_DEVICE_VANISHED": 8})
    assert tally(*rest, *held).total == 24, "the node itself is gone, and its devices with it"


@pytest.mark.parametrize(
    ("device_class", "gates_needed"),
    [
        pytest.param("h100-80gb", set(), id="plain cards rely on the core alone"),
        pytest.param("a100-mig-1g", {"DRAPartitionableDevices"}, id="partitions"),
        pytest.param(
            "cpu-numa",
            {"DRAConsumableCapacity", "DRANodeAllocatableResources"},
            id="shares that count into the node",
        ),
        pytest.param("fabric-gpu", {"DRADeviceBindingConditions"}, id="attached on demand"),
    ],
)
def test_what_a_class_relies_on_beside_the_core(device_class, gates_needed):
    assert catalogue_counts(demo())[device_class].relies == gates_needed
