"""Which published devices are the same piece of hardware: by what drivers say identifies it.

Drivers publish one card as several devices (partitions, a second view for virtual machines), and
two drivers may publish the same card. Cards are told apart by uuid, PCI address or serial number;
partitions also by the counters that they share.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from devices.dra.pools import pools
from devices.dra.slices import Device, Slice
from devices.dra.snapshot import Snapshot

#: Attributes that identify hardware, by their last part, and what they identify it by.
_KINDS: Final = {
    "uuid": "uuid",
    "parentuuid": "uuid",  # of the card that a partition is a part of
    "pcibusid": "pci",
    "pciebusid": "pci",
    "pciaddress": "pci",
    "serial": "serial",
    "serialnumber": "serial",
}
_PARENT: Final = "parentuuid"
_PCI: Final = re.compile(r"(?:([0-9a-f]+):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)

#: One device where it is published.
Spot = tuple[Slice, Device]


def identities(device: Device) -> frozenset[str]:
    """What identifies a device's hardware, such as ``uuid:GPU-1`` and ``pci:0:65:00.0``; empty
    where its driver says nothing of the kind. Two devices with one in common are one piece.
    """
    return frozenset(
        [
            f"{kind}:{_normal(kind, attribute.value)}"
            for name, attribute in device.attributes.items()
            if (kind := _kind(name)) and attribute.kind == "string" and attribute.value
        ]
    )


def is_partition(device: Device) -> bool:
    """Whether a device says that it is a part of another one."""
    return any(name.rpartition("/")[2].lower() == _PARENT for name in device.attributes)


def pieces(spots: Iterable[Spot]) -> list[list[Spot]]:
    """Devices grouped into pieces of hardware. A PCI address counts on its own node only; a device
    that nothing identifies is a piece of its own, with the partitions that share its counters.
    """
    found = list(spots)
    groups = _groups(found)
    joined = {index for group in groups for index in group}
    alone = ([spot] for index, spot in enumerate(found) if index not in joined)
    return [*([found[index] for index in group] for group in groups), *alone]


def joined(snapshot: Snapshot) -> Sequence[Sequence[Spot]]:
    """Every piece of hardware of a snapshot that is published as more than one device."""
    return snapshot.once("joined", _joined)


def _joined(snapshot: Snapshot) -> Sequence[Sequence[Spot]]:
    found = [
        (piece, device)
        for pool in pools(snapshot).values()
        for piece in pool.slices
        for device in piece.devices
    ]
    return [[found[index] for index in group] for group in _groups(found)]


def _groups(found: Sequence[Spot]) -> list[list[int]]:
    """Positions of devices that are one piece, for pieces of more than one device.

    Of 40,000 devices nearly all are alone: nothing is made for those, and each is looked at once.
    """
    parent: dict[int, int] = {}

    def root(index: int) -> int:
        while parent.get(index, index) != index:
            index = parent[index]
        return index

    def join(one: int, other: int) -> None:
        first, second = root(one), root(other)
        if first != second:
            parent[max(first, second)] = min(first, second)

    names: set[str] = set()
    for _, device in found:
        names.update(device.attributes)
    telling = [(name, _kind(name)) for name in sorted(names) if _kind(name)]
    seen: dict[Hashable, dict[str, int]] = defaultdict(dict)
    addresses: dict[str, int] = {}
    last: Slice | None = None
    for index, (piece, device) in enumerate(found):
        if piece is not last:
            last, addresses = piece, seen["pci", _where(piece)]  # they count on their own node
        for name, kind in telling:
            attribute = device.attributes.get(name)
            if attribute is None or attribute.kind != "string" or not attribute.value:
                continue
            if kind == "pci":
                first = addresses.setdefault(_normal(kind, attribute.value), index)
            else:
                first = seen[kind].setdefault(attribute.value, index)
            if first != index:
                join(first, index)
        for use in device.consumes:
            first = seen[piece.driver, piece.pool].setdefault(use.counter_set, index)
            if first != index:
                join(first, index)
    groups: dict[int, list[int]] = {}
    for index in sorted({*parent, *parent.values()}):
        groups.setdefault(root(index), []).append(index)
    return list(groups.values())


def _where(piece: Slice) -> Hashable:
    return piece.reach.node_name or (piece.driver, piece.pool)


def count(spots: Iterable[Spot]) -> int:
    """How many pieces of hardware devices are."""
    return len(pieces(spots))


def spots(snapshot: Snapshot) -> Mapping[str, Mapping[str, list[Spot]]]:
    """By node and driver, the devices that belong to one node; a driver that runs without devices
    has an empty list.
    """
    return snapshot.once("spots", _spots)


def _spots(snapshot: Snapshot) -> Mapping[str, Mapping[str, list[Spot]]]:
    found: dict[str, dict[str, list[Spot]]] = defaultdict(dict)
    for pool in pools(snapshot).values():
        for piece in pool.slices:
            node = piece.reach.node_name
            if node:
                here = found[node].setdefault(piece.driver, [])
                here += ((piece, device) for device in piece.devices)
            elif piece.reach.per_device:
                for device in piece.devices:
                    if device.reach.node_name:
                        here = found[device.reach.node_name].setdefault(piece.driver, [])
                        here.append((piece, device))
    return dict(found)


@lru_cache(maxsize=4096)
def _kind(name: str) -> str:
    """What an attribute identifies hardware by; empty for one that does not."""
    return _KINDS.get(name.rpartition("/")[2].lower(), "")


@lru_cache(maxsize=1 << 17)
def _normal(kind: str, value: str) -> str:
    """One spelling for a PCI address: the domain is written with four digits or with eight."""
    match = _PCI.fullmatch(value) if kind == "pci" else None
    if match is None:
        return value
    return f"{int(match.group(1) or '0', 16):x}:{match.group(2).lower()}"
