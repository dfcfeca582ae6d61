"""Who owns the devices of each node: a device plugin, DRA, nobody, or both, which must never be.

Kubernetes has two ledgers that never meet: what a plugin offers is a number in the node's status,
what DRA offers stands in slices. Where both offer the same hardware the scheduler gives it out
twice and complains of nothing. Capacity that is left over in a node's status after a plugin stopped
offers nothing: allocatable is the test.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from devices.dra.codes import Code, code
from devices.dra.hardware import Spot, count, identities, is_partition, pieces, spots
from devices.dra.matching import all_match
from devices.dra.nodes import Node
from devices.dra.pools import pools
from devices.dra.quantity import Quantity
from devices.dra.reading import Unreadable, quantities
from devices.dra.snapshot import Snapshot


class Owner(StrEnum):
    """Who gives out the devices of one type on one node."""

    PLUGIN = "plugin"
    DRA = "dra"
    NONE = "none"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DeviceType:
    """Hardware that may be offered on either path: extended resources (``*`` stands for any end)
    and DRA drivers that offer the same devices.
    """

    name: str
    resources: tuple[str, ...]
    drivers: tuple[str, ...]

    def offers(self, resource: str) -> bool:
        """Whether an extended resource counts this hardware, by whatever name."""
        return any(fnmatchcase(resource, pattern) for pattern in self.resources)


#: Vendors whose plugins offer one card under several names. What a class says is added to it.
KNOWN_TYPES: Final = (
    DeviceType(
        "nvidia.com/gpu",
        ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-*"),
        ("gpu.nvidia.com",),
    ),
    DeviceType("amd.com/gpu", ("amd.com/gpu", "amd.com/?px_nps*"), ("gpu.amd.com",)),
    DeviceType("gpu.intel.com/i915", ("gpu.intel.com/*",), ("gpu.intel.com",)),
)


@dataclass(frozen=True, slots=True)
class Ownership:
    """Who owns one type of device on one node, and the numbers that show it.

    ``plugin`` is what a plugin offers, ``published`` what slices offer, ``hardware`` how many
    pieces of hardware there are (each None where nobody knows). ``left_over`` is capacity of a
    plugin that offers nothing any more.
    """

    node: str
    type: str
    owner: Owner
    plugin: int | None
    published: int
    hardware: int | None
    left_over: int = 0

    @property
    def code(self) -> Code | None:
        """The code of a conflict; None where nothing is wrong."""
        return code("OWNER_CONFLICT") if self.owner is Owner.CONFLICT else None


@dataclass(frozen=True, slots=True)
class SameHardware:
    """Devices that are one piece of hardware: of two drivers (wrong), or two views of one."""

    code: Code
    node: str
    devices: tuple[tuple[str, str, str], ...]
    by: tuple[str, ...]

    @property
    def key(self) -> str:
        """The same for the same finding, whenever it is made."""
        return f"{self.code}:{','.join('/'.join(device) for device in self.devices)}"


def ownership(
    snapshot: Snapshot, types: Sequence[DeviceType] | None = None
) -> tuple[Ownership, ...]:
    """Every node and type of device for which a plugin or a slice says something, by node.

    ``types`` are those of the platform's node pools; without them they are found by what classes
    say and by the vendors that are known.
    """
    types = device_types(snapshot) if types is None else types
    by_node = spots(snapshot)
    found = []
    for name in sorted({*snapshot.nodes, *by_node}):
        by_driver = by_node.get(name, {})
        for each in types:
            here = [spot for driver in each.drivers for spot in by_driver.get(driver, ())]
            running = any(driver in by_driver for driver in each.drivers)
            node = snapshot.nodes.get(name)
            if running or (node is not None and _mentions(node, each)):
                found.append(_owned(name, node, each, here))
    return tuple(found)


def device_types(snapshot: Snapshot) -> tuple[DeviceType, ...]:
    """The types there are: the known ones, one for each class that names an extended resource, with
    the drivers whose devices it selects, and whatever is offered besides, each on its own. Types
    with a resource or a driver in common are one.
    """
    return snapshot.once("device types", _device_types)


def same_hardware(snapshot: Snapshot) -> tuple[SameHardware, ...]:
    """Pieces of hardware that are published more than once, partitions apart."""
    return snapshot.once("same hardware", _same_hardware)


def _owned(
    name: str, node: Node | None, device_type: DeviceType, here: Sequence[Spot]
) -> Ownership:
    offered = _offered(node.allocatable, device_type) if node is not None else None
    hardware = count(here) if here else offered
    match (offered, bool(here)):
        case (None, _):
            owner = Owner.UNKNOWN
        case (0, True):
            owner = Owner.DRA
        case (0, False):
            owner = Owner.NONE
        case (_, True):
            owner = Owner.CONFLICT
        case _:
            owner = Owner.PLUGIN
    left = _left_over(node, device_type) if node is not None and not offered else 0
    return Ownership(name, device_type.name, owner, offered, len(here), hardware, left)


def _offered(amounts: Mapping[str, Quantity], device_type: DeviceType) -> int:
    return sum(
        amount.rounded_up() for resource, amount in amounts.items() if device_type.offers(resource)
    )


def capacity(node: Node) -> Mapping[str, Quantity]:
    """What a node's status keeps as its capacity, plugins that stopped included."""
    status = node.raw.get("status")
    try:
        return quantities(
            status.get("capacity") if isinstance(status, Mapping) else None, "capacity"
        )
    except Unreadable:
        return {}


def _left_over(node: Node, device_type: DeviceType) -> int:
    return _offered(capacity(node), device_type)


def _mentions(node: Node, device_type: DeviceType) -> bool:
    return any(device_type.offers(resource) for resource in (*node.allocatable, *capacity(node)))


def _device_types(snapshot: Snapshot) -> tuple[DeviceType, ...]:
    types = list(KNOWN_TYPES)
    for device_class in snapshot.classes.values():
        resource = device_class.extended_resource
        if not resource:
            continue
        drivers = {
            piece.driver
            for pool in pools(snapshot).values()
            for piece in pool.slices
            if any(answer is True for answer in all_match(snapshot, device_class.selectors, piece))
        }
        types.append(DeviceType(resource, (resource,), tuple(sorted(drivers))))
    drivers = {piece.driver for pool in pools(snapshot).values() for piece in pool.slices}
    types += (DeviceType(driver, (), (driver,)) for driver in sorted(drivers))
    resources = {name for node in snapshot.nodes.values() for name in node.allocatable}
    types += (DeviceType(name, (name,), ()) for name in sorted(filter(_extended, resources)))
    merged: list[DeviceType] = []
    for each in types:
        for index, other in enumerate(merged):
            if _same(each, other):
                merged[index] = DeviceType(
                    other.name,
                    tuple(dict.fromkeys((*other.resources, *each.resources))),
                    tuple(dict.fromkeys((*other.drivers, *each.drivers))),
                )
                break
        else:
            merged.append(each)
    return tuple(merged)


def _extended(resource: str) -> bool:
    """Whether a resource of a node is a plugin's (core/v1 ``IsExtendedResourceName``)."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")


def _same(one: DeviceType, other: DeviceType) -> bool:
    return bool(set(one.drivers) & set(other.drivers)) or any(
        other.offers(resource) for resource in one.resources
    )


def _same_hardware(snapshot: Snapshot) -> tuple[SameHardware, ...]:
    found: list[SameHardware] = []
    for node, by_driver in sorted(spots(snapshot).items()):
        here = [spot for driver in sorted(by_driver) for spot in by_driver[driver]]
        for group in pieces(here) if len(here) > 1 else ():
            drivers = sorted({piece.driver for piece, _ in group})
            if len(drivers) > 1:
                found.append(_same_group("OWNER_TWO_DRIVERS", node, group))
            for driver in drivers:
                views = [spot for spot in group if spot[0].driver == driver]
                if _second_view(views):
                    found.append(_same_group("OWNER_SAME_DEVICE_TWICE", node, views))
    return tuple(found)


def _second_view(group: Sequence[Spot]) -> bool:
    """Whether devices of one driver are views of one card: partitions share counters, or only
    their parent, and are no second view.
    """
    whole = [device for _, device in group if not device.consumes]
    marks = [mark for device in whole for mark in identities(device)]
    partitions = any(map(is_partition, whole))
    return len(whole) > 1 and not partitions and len(marks) != len(set(marks))


def _same_group(name: str, node: str, group: Sequence[Spot]) -> SameHardware:
    marks = [mark for _, device in group for mark in identities(device)]
    shared = sorted({mark for mark in marks if marks.count(mark) > 1})
    devices = tuple((piece.driver, piece.pool, device.name) for piece, device in group)
    return SameHardware(code(name), node, devices, tuple(shared))
