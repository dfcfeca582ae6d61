"""Who owns the devices of a node, and which published devices are one piece of hardware."""

from __future__ import annotations

import pytest

from devices.dra.hardware import count, identities
from devices.dra.ownership import DeviceType, Owner, device_types, ownership, same_hardware
from devices.dra.slices import Attribute, CounterUse, Device, Reach, Slice
from devices.dra.snapshot import read
from tests.devices.dra.cases import by_number, snapshot


def test_each_node_has_one_owner_or_a_conflict() -> None:
    owned = [o for o in ownership(snapshot(by_number("34"))) if o.type == "nvidia.com/gpu"]
    assert [(o.node, o.owner) for o in owned] == [
        ("n1", Owner.CONFLICT),
        ("n2", Owner.PLUGIN),
        ("n3", Owner.DRA),  # allocatable is 0; the capacity that is left over offers nothing
        ("n4", Owner.CONFLICT),  # another name, the same hardware
        ("n5", Owner.PLUGIN),  # the NICs there are other hardware
    ]
    assert sum(o.hardware or 0 for o in owned) == 29
    assert [o.left_over for o in owned] == [0, 0, 8, 0, 0]
    assert [o.node for o in owned if o.code is not None] == ["n1", "n4"]


def test_devices_without_a_plugin_are_a_type_of_their_own() -> None:
    nics = [o for o in ownership(snapshot(by_number("34"))) if o.type == "dra.net"]
    assert [(o.node, o.owner, o.published) for o in nics] == [("n5", Owner.DRA, 1)]


def test_a_pod_on_a_dra_node_is_no_violation() -> None:
    [owned] = ownership(snapshot(by_number("32")))
    assert (owned.owner, owned.plugin, owned.published) == (Owner.DRA, 0, 3)


def test_a_driver_that_publishes_nothing_owns_nothing() -> None:
    owned = {o.node: o.owner for o in ownership(snapshot(by_number("43")))}
    assert owned == {"node-l4": Owner.NONE, "node-l5": Owner.DRA, "node-l7": Owner.DRA}


def test_a_node_that_was_not_read_is_unknown() -> None:
    assert {o.owner for o in ownership(snapshot(by_number("35")))} == {Owner.UNKNOWN}


def test_types_may_be_given() -> None:
    only = DeviceType("nics", ("rdma/*",), ("dra.net",))
    assert [(o.node, o.type) for o in ownership(snapshot(by_number("34")), [only])] == [
        ("n5", "nics")
    ]


def test_a_class_says_which_driver_serves_a_resource() -> None:
    objects = [
        {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"a.com/x": "2"}}},
        {
            "kind": "DeviceClass",
            "metadata": {"name": "c"},
            "spec": {
                "extendedResourceName": "a.com/x",
                "selectors": [{"cel": {"expression": 'device.driver == "b.com"'}}],
            },
        },
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "b.com",
                "nodeName": "n",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "x"}],
            },
        },
    ]
    cluster = read(objects)
    assert DeviceType("a.com/x", ("a.com/x",), ("b.com",)) in device_types(cluster)
    assert [o.owner for o in ownership(cluster)] == [Owner.CONFLICT]
    assert [o.owner for o in ownership(read(objects[:1]))] == [Owner.PLUGIN]


def test_two_drivers_on_one_card_are_wrong_and_two_views_of_one_driver_are_not() -> None:
    both = same_hardware(snapshot(by_number("35")))
    assert [(f.code.name, [device[2] for device in f.devices]) for f in both] == [
        ("OWNER_TWO_DRIVERS", ["gpu-0", "gpu-vfio-0", "hami-gpu-0"]),
        ("OWNER_SAME_DEVICE_TWICE", ["gpu-0", "gpu-vfio-0"]),
    ]
    assert both[0].by == ("pci:0:65:00.0", "uuid:GPU-e4-0")


def test_partitions_are_no_second_view() -> None:
    assert same_hardware(snapshot(by_number("07"))) == ()


def device(name: str, **identity: str) -> Device:
    return Device(name, {key: Attribute("string", value) for key, value in identity.items()})


ON_N1, ON_N2 = Slice("a", "d", "n1", 1, 1, Reach("n1")), Slice("b", "e", "n2", 1, 1, Reach("n2"))


@pytest.mark.parametrize(
    "spots, pieces",
    [
        pytest.param([(ON_N1, Device("x")), (ON_N1, Device("y"))], 2, id="nothing is known"),
        pytest.param(
            [(ON_N1, device("x", uuid="1")), (ON_N2, device("y", UUID="1"))], 1, id="one uuid"
        ),
        pytest.param(
            [
                (ON_N1, device("x", pciBusID="0000:65:00.0")),
                (ON_N1, device("y", pcieBusID="65:00.0")),
            ],
            1,
            id="one PCI address in two spellings",
        ),
        pytest.param(
            [
                (ON_N1, device("x", pciBusID="0000:65:00.0")),
                (ON_N2, device("y", pciBusID="0000:65:00.0")),
            ],
            2,
            id="a PCI address is the node's own",
        ),
        pytest.param(
            [
                (ON_N1, device("x", uuid="1", pciAddress="00000000:65:00.0")),
                (ON_N1, device("y", pciAddress="0000:65:00.0")),
                (ON_N1, device("z", parentUUID="1")),
            ],
            1,
            id="a chain of identities",
        ),
        pytest.param(
            [
                (ON_N1, Device("x", consumes=(CounterUse("card", {}),))),
                (ON_N1, Device("y", consumes=(CounterUse("card", {}),))),
                (ON_N1, Device("z", consumes=(CounterUse("other", {}),))),
            ],
            2,
            id="partitions share counters",
        ),
    ],
)
def test_hardware_is_counted_once(spots, pieces) -> None:
    assert count(spots) == pieces


def test_an_identity_is_a_text_that_is_there() -> None:
    assert (
        identities(Device("x", {"uuid": Attribute("int", 1), "serial": Attribute("string", "")}))
        == frozenset()
    )
