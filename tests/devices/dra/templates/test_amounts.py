"""What devices say of an amount: rounding, how many at once, what is left, given back when."""

from __future__ import annotations

from typing import Any

import pytest

from devices.dra.objects import DeviceWish
from devices.dra.snapshot import read
from devices.dra.templates.amounts import sentences

CAPACITY = "example.com/memory"


def said(amount: str, *devices: dict[str, Any], shared: bool = False) -> tuple[str, ...]:
    objects: list[dict[str, Any]] = [
        {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        {
            "kind": "ResourceSlice",
            "metadata": {"name": "s"},
            "spec": {
                "driver": "d",
                "nodeName": "n",
                "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
                "devices": [
                    {"name": f"x{number}", "allowMultipleAllocations": True, **device}
                    for number, device in enumerate(devices)
                ],
            },
        },
    ]
    ask = DeviceWish("r", "c", capacity=((CAPACITY, amount),))
    return sentences(read(objects), ask, shared=shared)


def memory(value: str, **policy: Any) -> dict[str, Any]:
    offer: dict[str, Any] = {"value": value}
    if policy:
        offer["requestPolicy"] = policy
    return {"capacity": {CAPACITY: offer}}


STEPS = {"default": "10Gi", "validRange": {"min": "4Gi", "max": "80Gi", "step": "1Gi"}}


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            said("24Gi", memory("80Gi", **STEPS)),
            (
                "Rounded up to the next 1 GiB of memory.",
                "Up to 3 asks of this size at a time on each device.",
                "Left beside these, for smaller asks: 8 GiB of memory.",
                "Given back when the Pod ends.",
            ),
            id="steps",
        ),
        pytest.param(
            said("26500Mi", memory("80Gi", **STEPS)),
            (
                "Rounded up to the next 1 GiB of memory.",
                "26500 MiB of memory becomes 26 GiB.",
                "Up to 3 asks of this size at a time on each device.",
                "Left beside these, unused: 2 GiB of memory.",
                "Given back when the Pod ends.",
            ),
            id="rounded, and a rest below the minimum",
        ),
        pytest.param(
            said("3", memory("8", default="1", validValues=["1", "2", "4"])),
            (
                "1, 2, 4: the next of these is taken.",
                "3 memory becomes 4.",
                "Up to 2 asks of this size at a time on each device.",
                "Given back when the Pod ends.",
            ),
            id="valid values",
        ),
        pytest.param(
            said("50Gi", memory("80Gi")),
            (
                "One ask of this size at a time on each device.",
                "Left beside these, for smaller asks: 30 GiB of memory.",
                "Given back when the Pod ends.",
            ),
            id="no policy: as it is asked for",
        ),
        pytest.param(
            said("10Gi", {**memory("80Gi"), "allowMultipleAllocations": False}, shared=True),
            (
                "The device is yours alone, also what you did not ask for.",
                "Given back when the last Pod that uses it ends.",
            ),
            id="a device that is not shared",
        ),
        pytest.param(
            said("0", memory("80Gi")),
            (
                "How many share a device is not limited by this driver.",
                "Given back when the Pod ends.",
            ),
            id="nothing that counts",
        ),
        pytest.param(
            said("30Gi", memory("80Gi"), memory("40Gi"), memory("20Gi")),
            (
                "Devices with 80 GiB of memory: "
                "Up to 2 asks of this size at a time on each device.",
                "Devices with 80 GiB of memory: "
                "Left beside these, for smaller asks: 20 GiB of memory.",
                "Devices with 40 GiB of memory: One ask of this size at a time on each device.",
                "Devices with 40 GiB of memory: "
                "Left beside these, for smaller asks: 10 GiB of memory.",
                "Given back when the Pod ends.",
            ),
            id="devices that differ, and one that is too small",
        ),
    ],
)
def test_what_is_said(lines: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert lines == expected
