"""What the catalogue counts, over the shared cases."""

from __future__ import annotations

import pytest

from devices.dra.offers import Tally, catalogue_counts
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
            Tally(free=2, allocated=1, unavailable={"COUNTERS_TAKEN": 2}),
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
        pytest.param("41", "vf", Tally(free=260, allocated=40), id="three hundred devices"),
    ],
)
def test_devices_of_a_class_are_counted_by_how_they_stand(number, device_class, tally):
    found = catalogue_counts(snapshot(by_number(number)))
    assert found[device_class].tally == tally


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_the_groups_of_a_class_add_up_to_its_counts(path):
    for found in catalogue_counts(snapshot(path)).values():
        failing = found.tally.unknown.get("SELECTOR_FAILS", 0)
        assert sum(group.tally.total for group in found.groups) + failing == found.tally.total
        assert sum(group.tally.free for group in found.groups) == found.tally.free


def test_a_group_is_what_devices_are_not_which_they_are():
    [group] = catalogue_counts(snapshot(by_number("01")))["gpu.nvidia.com"].groups
    assert group.tally.total == 2
    assert group.nodes == 1
    assert group.capacity["gpu.nvidia.com/memory"] == "81559Mi"
    assert not [name for name in group.attributes if name.endswith(("uuid", "pcieRoot"))]
