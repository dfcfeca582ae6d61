"""What each driver makes use of: what of DRA is its own business and not the cluster's. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from devices.dra.pools import pools
from devices.dra.slices import Device, Slice
from devices.dra.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Publisher:
    """One driver: how many devices it publishes, and what it says of them beyond names and
    attributes, as words with the gate that each needs.
    """

    driver: str
    devices: int
    uses: tuple[tuple[str, str], ...] = field(default=())


def publishers(snapshot: Snapshot) -> tuple[Publisher, ...]:
    """Every driver that publishes, by name."""
    return snapshot.once("publishers", _publishers)


def _publishers(snapshot: Snapshot) -> tuple[Publisher, ...]:
    devices: dict[str, int] = defaultdict(int)
    uses: dict[str, dict[str, str]] = defaultdict(dict)
    for pool in pools(snapshot).values():
        for piece in pool.slices:
            devices[pool.driver] += len(piece.devices)
            if piece.plain:
                continue
            uses[pool.driver].update(_of_slice(piece))
            for device in piece.devices:
                uses[pool.driver].update(_of_device(device))
    return tuple(
        Publisher(driver, devices[driver], tuple(sorted(uses[driver].items())))
        for driver in sorted(devices)
    )


def _of_slice(piece: Slice) -> Iterable[tuple[str, str]]:
    if piece.counters:
        yield "partitions", "DRAPartitionableDevices"
    if piece.partition_type:
        yield "kinds of partitions", "DRAPartitionableDevicesType"
    if piece.skipped_operations:
        yield "devices that need no preparation", "DRAOptionalNodeOperations"


def _of_device(device: Device) -> Iterable[tuple[str, str]]:
    if device.consumes:
        yield "partitions", "DRAPartitionableDevices"
    if device.shareable:
        yield "shares", "DRAConsumableCapacity"
        if any(found.policy for found in device.capacity.values()):
            yield "bounds and steps of shares", "DRAConsumableCapacity"
    if device.taints:
        yield "taints of its own", "DRADeviceTaints"
    if device.binding_conditions:
        yield "devices attached on demand", "DRADeviceBindingConditions"
    if device.node_shares:
        yield "CPU and memory by devices", "DRANodeAllocatableResources"
    if device.odd_attributes:
        yield "attributes with several values", "DRAListTypeAttributes"
