"""What a driver wants published, and the calls that make the API server agree: pure rules.

The rules are those of the upstream helper that real drivers use
(k8s.io/dynamic-resource-allocation `resourceslice/resourceslicecontroller.go`, 1.36 and 1.37):
the index of a slice leads its name, obsolete slices go first, the generation rises only where more
than one call is needed, and one changed slice alone keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from devices.dra.quantity import QuantityError, parse

Obj = dict[str, Any]

MOST_DEVICES = 128
MOST_DEVICES_WITH_EXTRAS = 64
MOST_COUNTER_SETS = 8
INDEX_LENGTH = 5
EXTRAS = ("taints", "consumesCounters")


@dataclass(frozen=True, slots=True)
class Publication:
    """The calls that publish a pool, in order: delete names, update (name, spec), create."""

    generation: int
    deletes: tuple[str, ...]
    updates: tuple[tuple[str, Obj], ...]
    creates: tuple[Obj, ...]

    @property
    def empty(self) -> bool:
        return not (self.deletes or self.updates or self.creates)


def contents(
    devices: Sequence[Obj], counters: Sequence[Obj] = (), *, per_slice: int = MOST_DEVICES
) -> list[Obj]:
    """The slices' own parts of a spec: counter sets first, then devices, within the API's limits.

    Since 1.35 a slice holds devices or counter sets, never both.
    """
    extras = any(key in device for device in devices for key in EXTRAS)
    most = min(per_slice, MOST_DEVICES_WITH_EXTRAS if extras else MOST_DEVICES)
    return [
        *({"sharedCounters": part} for part in _parts(counters, MOST_COUNTER_SETS)),
        *({"devices": part} for part in _parts(devices, most)),
    ] or [{"devices": []}]


def _parts(items: Sequence[Obj], most: int) -> Iterable[list[Obj]]:
    return (list(items[i : i + most]) for i in range(0, len(items), most))


def publication(
    found: Sequence[Obj],
    wanted: Sequence[Obj],
    *,
    pool: str,
    driver: str,
    scope: Obj,
    owner: Obj | None,
) -> Publication:
    """How to get from the `found` slices of one pool to the `wanted` contents.

    `scope` is the node part of a spec (`{"nodeName": ...}` or `{"nodeSelector": ...}`), `owner` an
    owner reference or None.
    """
    newest = max((one["spec"]["pool"]["generation"] for one in found), default=0)
    length = max(INDEX_LENGTH, len(f"{len(wanted) - 1:x}"))
    current: dict[int, Obj] = {}
    obsolete: list[str] = []
    for one in sorted(found, key=lambda one: str(one["metadata"]["name"])):
        index = _index(one["metadata"]["name"], length)
        known = one["spec"]["pool"]["generation"] == newest and index not in current
        if known and 0 <= index < len(wanted):
            current[index] = one
        else:
            obsolete.append(one["metadata"]["name"])

    described: Obj = {"name": pool, "generation": newest, "resourceSliceCount": len(wanted)}
    changed = {
        index
        for index, one in current.items()
        if not same({**wanted[index], "pool": described}, one["spec"])
    }
    raised = len(current) < len(wanted) or len(changed) > 1
    if raised:
        described = {**described, "generation": newest + 1}

    owned = f"-{owner['name']}" if owner else ""
    metadata = {"ownerReferences": [owner]} if owner else {}
    return Publication(
        generation=described["generation"],
        deletes=tuple(obsolete),
        updates=tuple(
            (str(one["metadata"]["name"]), {**wanted[index], "pool": described})
            for index, one in sorted(current.items())
            if raised or index in changed
        ),
        creates=tuple(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {
                    "generateName": f"{index:0{length}x}-{driver}{owned}-",
                    **metadata,
                },
                "spec": {"driver": driver, "pool": described, **scope, **content},
            }
            for index, content in enumerate(wanted)
            if index not in current
        ),
    )


def _index(name: str, length: int) -> int:
    """The index that leads a slice's name, or -1 where the name is not of the helper's making."""
    head, separator, _ = name.partition("-")
    try:
        return int(head, 16) if separator and len(head) == length else -1
    except ValueError:
        return -1


def same(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """True where `found` holds what is wanted: quantities by value, and what only the API server
    adds (a taint's timeAdded, defaults) does not count."""
    return all(_equal(value, found.get(key)) for key, value in wanted.items())


def _equal(wanted: Any, found: Any) -> bool:
    match wanted, found:
        case dict(), dict():
            extra = set(found) - set(wanted) - {"timeAdded"}
            return not extra and same(wanted, found)
        case list(), list():
            return len(wanted) == len(found) and all(map(_equal, wanted, found))
        case str(), str():
            return wanted == found or _same_amount(wanted, found)
        case _:
            # An empty list or mapping is not stored at all.
            return bool(wanted == found or (not wanted and found is None and wanted != 0))


def _same_amount(one: str, other: str) -> bool:
    try:
        return parse(one) == parse(other)
    except QuantityError:
        return False


def for_release(device: Obj, release: str) -> Obj:
    """The device as a driver built for that release publishes it: one of the two shapes of the
    node-allocatable fields (1.36 `…Mappings`, 1.37 without), never both."""
    old = tuple(int(part) for part in release.split(".")[:2]) < (1, 37)
    unknown = "nodeAllocatableResources" if old else "nodeAllocatableResourceMappings"
    return {key: value for key, value in device.items() if key != unknown}
