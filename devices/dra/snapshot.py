"""Raw objects of a cluster → one frozen Snapshot, from which every rule of DRA is computed.

Decides nothing; reads what is there, notes what is unknown, and leaves out, with the reason, what
cannot be read. Two snapshots of the same objects are equal, whatever order they came in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeVar, cast

import msgspec

from devices.dra.claims import (
    Claim,
    DeviceClass,
    KnownSpecs,
    Template,
    read_claim,
    read_class,
    read_template,
)
from devices.dra.collector import collector_at_rest
from devices.dra.gates import Gates
from devices.dra.nodes import Node, read_node
from devices.dra.pods import Pod, read_pod
from devices.dra.reading import Raw, Unknown, Unread, Unreadable, title
from devices.dra.slicereader import SliceReader
from devices.dra.slices import Slice
from devices.dra.taints import TaintRule, read_rule

Value = TypeVar("Value")

SLICE: Final = "ResourceSlice"
CLAIM: Final = "ResourceClaim"
TEMPLATE: Final = "ResourceClaimTemplate"
CLASS: Final = "DeviceClass"
RULE: Final = "DeviceTaintRule"
NODE: Final = "Node"
POD: Final = "Pod"
KINDS: Final = (SLICE, CLAIM, TEMPLATE, CLASS, RULE, NODE, POD)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a cluster says about devices at one moment.

    ``taken`` is when it was read. ``unknown`` and ``unread`` are what people must be shown.
    ``memo`` holds derived values (see `once`); it is no part of what a snapshot is.
    """

    slices: tuple[Slice, ...] = ()
    claims: Mapping[tuple[str, str], Claim] = field(default_factory=dict)
    templates: Mapping[tuple[str, str], Template] = field(default_factory=dict)
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    rules: tuple[TaintRule, ...] = ()
    nodes: Mapping[str, Node] = field(default_factory=dict)
    pods: Mapping[tuple[str, str], Pod] = field(default_factory=dict)
    gates: Gates = field(default_factory=Gates)
    taken: datetime | None = None
    unknown: tuple[Unknown, ...] = ()
    unread: tuple[Unread, ...] = ()
    memo: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, key: Hashable, compute: Callable[[Snapshot], Value]) -> Value:
        """A derived value, computed once for this snapshot; a second thread may compute it too.

        The value must not refer to the snapshot: a cycle would keep both in memory for long.
        """
        if key not in self.memo:
            self.memo[key] = compute(self)
        return cast(Value, self.memo[key])

    @property
    def scheduled(self) -> Snapshot:
        """The same cluster, to be judged as kube-scheduler does (see `Gates.scheduled`)."""
        gates = replace(self.gates, scheduled=True)
        if gates.compared_lists == self.gates.compared_lists:
            return self
        return self.once("scheduled", lambda s: replace(s, gates=gates, memo={}))

    @property
    def node_names(self) -> tuple[str, ...]:
        """Every node there is: Node objects, and names that only slices know."""
        return self.once("node names", _node_names)

    def node(self, name: str) -> Node:
        """The node of that name; one without labels where no Node object was read."""
        return self.nodes.get(name) or Node(name)


def read(
    objects: Iterable[Raw], *, gates: Gates | None = None, taken: datetime | None = None
) -> Snapshot:
    """Objects that each say their kind (lists are opened) → Snapshot; other kinds are passed by."""
    return read_kinds(_opened(objects), gates=gates, taken=taken)


def read_json(
    kinds: Mapping[str, Iterable[bytes | memoryview]],
    *,
    gates: Gates | None = None,
    taken: datetime | None = None,
) -> Snapshot:
    """Bytes of single objects, by kind, as the mirror stores them → Snapshot.

    Raises msgspec.DecodeError for bytes that are not JSON.
    """
    decode = msgspec.json.Decoder().decode
    pairs = ((kind, decode(item)) for kind, items in kinds.items() for item in items)
    with collector_at_rest():
        return read_kinds(pairs, gates=gates, taken=taken)


def read_kinds(
    pairs: Iterable[tuple[str, Raw]], *, gates: Gates | None = None, taken: datetime | None = None
) -> Snapshot:
    """Pairs of kind and object → Snapshot. Of two objects with one name, the later one counts."""
    found: dict[str, dict[Hashable, Any]] = {kind: {} for kind in KINDS}
    unknown: list[Unknown] = []
    unread: list[Unread] = []
    slices = SliceReader()
    specs: KnownSpecs = {}
    for kind, raw in pairs:
        if kind not in found:
            continue
        try:
            key, value, strange = _read_one(kind, raw, slices, specs)
        except Unreadable as error:
            unread.append(Unread(_titled(kind, raw), str(error)))
            continue
        except (AttributeError, TypeError, ValueError):
            why = "a part of it is of another type than its kind has there"
            unread.append(Unread(_titled(kind, raw), why))
            continue
        found[kind][key] = value
        if strange:
            unknown += (Unknown(_titled(kind, raw), path) for path in strange)
    return Snapshot(
        slices=tuple(sorted(found[SLICE].values(), key=lambda s: (s.driver, s.pool, s.name))),
        claims=_sorted(found[CLAIM]),
        templates=_sorted(found[TEMPLATE]),
        classes=_sorted(found[CLASS]),
        rules=tuple(rule for _, rule in sorted(found[RULE].items())),
        nodes=_sorted(found[NODE]),
        pods=_sorted(found[POD]),
        gates=gates or Gates(),
        taken=taken,
        unknown=tuple(unknown),
        unread=tuple(unread),
    )


def _read_one(
    kind: str, raw: Raw, slices: SliceReader, specs: KnownSpecs
) -> tuple[Hashable, object, list[str]]:
    match kind:
        case "ResourceSlice":
            piece = slices.read(raw)
            return piece.name, piece, slices.unknown
        case "ResourceClaim":
            claim, strange = read_claim(raw, specs)
            return claim.key, claim, strange
        case "ResourceClaimTemplate":
            template, strange = read_template(raw)
            return template.key, template, strange
        case "DeviceClass":
            device_class, strange = read_class(raw)
            return device_class.name, device_class, strange
        case "DeviceTaintRule":
            rule, strange = read_rule(raw)
            return rule.name, rule, strange
        case "Node":
            node = read_node(raw)
            return node.name, node, []
        case _:
            pod = read_pod(raw)
            return pod.key, pod, []


def _opened(objects: Iterable[Raw]) -> Iterable[tuple[str, Raw]]:
    for raw in objects:
        kind = raw.get("kind") or ""
        if kind.endswith("List") and isinstance(raw.get("items"), list):
            for item in raw["items"]:
                yield item.get("kind") or (kind.removesuffix("List")), item
        else:
            yield kind, raw


def _titled(kind: str, raw: object) -> str:
    return title({"kind": kind, **raw}) if isinstance(raw, Mapping) else kind


def _sorted(found: Mapping[Hashable, Any]) -> dict[Any, Any]:
    return dict(sorted(found.items()))


def _node_names(snapshot: Snapshot) -> tuple[str, ...]:
    names = set(snapshot.nodes)
    for piece in snapshot.slices:
        names.add(piece.reach.node_name)
        if piece.reach.per_device:
            names.update(device.reach.node_name for device in piece.devices)
    return tuple(sorted(names - {""}))
