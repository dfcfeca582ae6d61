"""Which published devices are the same piece of hardware: by what drivers say identifies it.

Drivers publish one card as several devices (partitions, a second view for virtual machines), and
two drivers may publish the same card. Cards are told apart by uuid, PCI address or serial number;
partitions also by the counters that they share.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Final

from devices.dra.pools import pools
from devices.dra.slices import Device, Slice
from devices.dra.snapshot import Snapshot

#: Attributes that identify hardware, by their last part, and what they identify it by.
_KINDS: Final = {
    "uuid": "uuid",
    "parentuuid": "uuid",
    "pcibusid": "pci",
    "pciebusid": "pci",
    "pciaddress": "pci",
    "serial": "serial",
    "serialnumber": "serial",
}
_PCI: Final = re.compile(r"(?:([0-9a-f]+):)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", re.IGNORECASE)

#: One device where it is published.
Spot = tuple[Slice, Device]


def identities(device: Device) -> frozenset[str]:
    """What identifies a device's hardware, such as ``uuid:GPU-1`` and ``pci:0:65:00.0``; empty
    where its driver says nothing of the kind. Two devices with one in common are one piece.
    """
    found = set()
    for name, attribute in device.attributes.items():
        kind = _KINDS.get(name.rpartition("/")[2].lower())
        if kind is not None and attribute.kind == "string" and attribute.value:
            found.add(f"{kind}:{_normal(kind, attribute.value)}")
    return frozenset(found)


def pieces(spots: Iterable[Spot]) -> list[list[Spot]]:
    """Devices grouped into pieces of hardware. A PCI address counts on its own node only; a device
    that nothing identifies is a piece of its own, with the partitions that share its counters.
    """
    found = list(spots)
    parent = list(range(len(found)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first: dict[Hashable, int] = {}
    for index, (piece, device) in enumerate(found):
        for mark in _marks(piece, device):
            if mark in first:
                parent[root(index)] = root(first[mark])
            else:
                first[mark] = index
    groups: dict[int, list[Spot]] = {}
    for index, spot in enumerate(found):
        groups.setdefault(root(index), []).append(spot)
    return list(groups.values())


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


def _marks(piece: Slice, device: Device) -> Sequence[Hashable]:
    where = piece.reach.node_name or (piece.driver, piece.pool)
    marks: list[Hashable] = [
        (where, mark) if mark.startswith("pci:") else mark for mark in identities(device)
    ]
    marks += ((piece.driver, piece.pool, use.counter_set) for use in device.consumes)
    return marks


def _normal(kind: str, value: str) -> str:
    """One spelling for a PCI address: the domain is written with four digits or with eight."""
    match = _PCI.fullmatch(value) if kind == "pci" else None
    if match is None:
        return value
    return f"{int(match.group(1) or '0', 16):x}:{match.group(2).lower()}"
