"""Raw ResourceSlices → frozen values, in every shape of 1.34 to 1.37.

Reads `resource.k8s.io` v1, v1beta2 and v1beta1 (where a device's fields stand under ``basic``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from devices.dra.nodes import read_selector
from devices.dra.quantity import Quantity
from devices.dra.reading import (
    Raw,
    Unreadable,
    mapping,
    number,
    quantities,
    quantity,
    sequence,
    strange,
    text,
    texts,
)
from devices.dra.slices import (
    KINDS,
    LISTS,
    UNKNOWN,
    Attribute,
    Capacity,
    CapacityRange,
    CounterSet,
    CounterUse,
    Device,
    NodeShare,
    Reach,
    RequestPolicy,
    Slice,
)
from devices.dra.taints import read_taints

_TYPES: Final[dict[str, type]] = {"int": int, "bool": bool, "string": str, "version": str}
_NOT_SCALAR: Final[tuple[type, dict[Any, Attribute]]] = (type(None), {})
#: What most devices have, and nothing else.
_PLAIN: Final = frozenset({"name", "attributes", "capacity"})
_SLICE: Final = frozenset(
    [
        "driver",
        "pool",
        "nodeName",
        "nodeSelector",
        "allNodes",
        "perDeviceNodeSelection",
        "devices",
        "sharedCounters",
        "partitionTypeAttribute",
        "skipNodeOperations",
    ]
)
_DEVICE: Final = frozenset(
    [
        "name",
        "attributes",
        "capacity",
        "consumesCounters",
        "nodeName",
        "nodeSelector",
        "allNodes",
        "taints",
        "bindsToNode",
        "bindingConditions",
        "bindingFailureConditions",
        "allowMultipleAllocations",
        "nodeAllocatableResources",
        "nodeAllocatableResourceMappings",
    ]
)
_OLD, _NEW = "nodeAllocatableResourceMappings", "nodeAllocatableResources"


class SliceReader:
    """Reads many slices, sharing equal values between their devices.

    ``unknown`` collects the paths of the last slice that this version does not know.
    """

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self._plain = True
        self._scalars: dict[str, tuple[type, dict[Any, Attribute]]] = {
            kind: (wanted, {}) for kind, wanted in _TYPES.items()
        }
        self._capacities: dict[str, Capacity] = {}

    def read(self, raw: Raw) -> Slice:
        """One ResourceSlice; raises Unreadable where it has not the shape of one."""
        meta, spec = mapping(raw.get("metadata"), "metadata"), mapping(raw.get("spec"), "spec")
        pool = mapping(spec.get("pool"), "spec.pool")
        self.unknown = strange(spec, _SLICE, "spec")
        self._plain = True
        devices = tuple(map(self._device, sequence(spec.get("devices"), "spec.devices")))
        return Slice(
            name=text(meta.get("name"), "metadata.name"),
            driver=text(spec.get("driver"), "spec.driver"),
            pool=text(pool.get("name"), "spec.pool.name"),
            generation=number(pool.get("generation") or 0, "spec.pool.generation"),
            slice_count=number(pool.get("resourceSliceCount"), "spec.pool.resourceSliceCount"),
            reach=self._reach(spec, "spec"),
            devices=devices,
            counters=tuple(
                CounterSet(
                    text(item.get("name"), "spec.sharedCounters.name"),
                    _values(item.get("counters"), "spec.sharedCounters.counters"),
                )
                for item in sequence(spec.get("sharedCounters"), "spec.sharedCounters")
            ),
            partition_type=spec.get("partitionTypeAttribute") or "",
            skipped_operations=texts(spec.get("skipNodeOperations"), "spec.skipNodeOperations"),
            uid=meta.get("uid") or "",
            version=meta.get("resourceVersion") or "",
            plain=self._plain,
        )

    def _reach(self, raw: Raw, path: str) -> Reach:
        node_name, selector = raw.get("nodeName"), raw.get("nodeSelector")
        return Reach(
            node_name=node_name or "",
            all_nodes=raw.get("allNodes") is True,
            selector=read_selector(selector, f"{path}.nodeSelector"),
            per_device=raw.get("perDeviceNodeSelection") is True,
        )

    def _device(self, raw: object) -> Device:
        if not isinstance(raw, dict):
            raise Unreadable("spec.devices must be a list of objects")
        name = raw.get("name")
        if not isinstance(name, str) or not name:
            raise Unreadable("spec.devices.name must be a text")
        if "basic" in raw:  # v1beta1
            raw = {"name": name, **mapping(raw["basic"], "spec.devices.basic")}
        if not raw.keys() <= _DEVICE:
            self.unknown += strange(raw, _DEVICE, f"spec.devices[{name}]")
        extra: dict[str, Any] = {} if raw.keys() <= _PLAIN else self._extra(raw, name)
        attributes, odd = self._attribute_map(raw.get("attributes"), name)
        if odd:
            extra["odd_attributes"] = odd
        if extra:
            self._plain = False
        return Device(name, attributes, self._capacity_map(raw.get("capacity"), name), **extra)

    def _extra(self, raw: Raw, name: str) -> dict[str, Any]:
        """The fields that only some devices have."""
        extra: dict[str, Any] = {"shareable": raw.get("allowMultipleAllocations") is True}
        if "consumesCounters" in raw:
            extra["consumes"] = _counter_uses(raw["consumesCounters"])
        if "taints" in raw:
            extra["taints"] = read_taints(raw["taints"], f"spec.devices[{name}].taints")
        if "nodeName" in raw or "nodeSelector" in raw or "allNodes" in raw:
            extra["reach"] = self._reach(raw, f"spec.devices[{name}]")
        if "bindingConditions" in raw:
            extra["binding_conditions"] = texts(raw["bindingConditions"], "bindingConditions")
        if "bindingFailureConditions" in raw:
            extra["binding_failures"] = texts(raw["bindingFailureConditions"], "bindingFailures")
        if raw.get("bindsToNode") is True:
            extra["binds_to_node"] = True
        if _OLD in raw or _NEW in raw:
            extra["node_shares"] = self._node_shares(raw, f"spec.devices[{name}]")
        return extra

    def _attribute_map(
        self, raw: object, device: str
    ) -> tuple[dict[str, Attribute], tuple[str, ...]]:
        """The attributes, and the names of those that are lists or unknown."""
        out: dict[str, Attribute] = {}
        odd: list[str] = []
        shared = self._scalars
        for name, value in mapping(raw, "spec.devices.attributes").items():
            # Nearly all are one scalar, and half a million of them are read: this is the short way.
            if value.__class__ is dict and len(value) == 1:
                for kind in value:
                    wanted, known = shared.get(kind, _NOT_SCALAR)
                    item = value[kind]
                    if item.__class__ is wanted:
                        found = known.get(item)
                        if found is None:
                            found = known[item] = Attribute(kind, item)
                        out[name] = found
                if name in out:
                    continue
            out[name] = attribute = _attribute(value)
            if attribute.kind == UNKNOWN:
                self.unknown.append(f"spec.devices[{device}].attributes[{name}]")
            if attribute.kind == UNKNOWN or attribute.kind in LISTS:
                odd.append(name)
        return out, tuple(odd)

    def _capacity_map(self, raw: object, device: str) -> dict[str, Capacity]:
        out = {}
        for name, value in mapping(raw, "spec.devices.capacity").items():
            if type(value) is dict and len(value) == 1 and type(value.get("value")) is str:
                spelled = value["value"]
                found = self._capacities.get(spelled)
                if found is None:
                    found = self._capacities[spelled] = Capacity(
                        quantity(spelled, f"capacity.{name}")
                    )
                out[name] = found
            else:
                out[name] = self._capacity(value, f"spec.devices[{device}].capacity[{name}]")
        return out

    def _capacity(self, raw: object, path: str) -> Capacity:
        if not isinstance(raw, Mapping):  # the oldest shape: a bare quantity
            return Capacity(quantity(raw, path))
        self.unknown += strange(raw, frozenset({"value", "requestPolicy"}), path)
        policy = raw.get("requestPolicy")
        return Capacity(
            quantity(raw.get("value"), path),
            None
            if policy is None
            else self._policy(mapping(policy, path), f"{path}.requestPolicy"),
        )

    def _policy(self, raw: Raw, path: str) -> RequestPolicy:
        self.unknown += strange(raw, frozenset({"default", "validValues", "validRange"}), path)
        values, bounds = raw.get("validValues"), raw.get("validRange")
        return RequestPolicy(
            default=_optional(raw.get("default"), path),
            values=None
            if values is None
            else tuple(quantity(v, path) for v in sequence(values, path)),
            range=None
            if bounds is None
            else CapacityRange(
                *(_optional(bounds.get(end), path) for end in ("min", "max", "step"))
            ),
        )

    def _node_shares(self, raw: Raw, path: str) -> tuple[NodeShare, ...]:
        shares = []
        for resource, entry in mapping(raw.get(_OLD), path).items():
            share = _old_share(resource, mapping(entry, path))
            shares.append(share)
            if share.shape == UNKNOWN:
                self.unknown.append(f"{path}.{_OLD}[{resource}]")
        for resource, entry in mapping(raw.get(_NEW), path).items():
            share = _new_share(resource, mapping(entry, path))
            shares.append(share)
            if share.shape == UNKNOWN:
                self.unknown.append(f"{path}.{_NEW}[{resource}]")
        return tuple(shares)


def _attribute(raw: object) -> Attribute:
    if not isinstance(raw, Mapping):
        return Attribute(UNKNOWN)
    for kind in KINDS:
        value = raw.get(kind)
        if value is None:
            continue
        wanted = _TYPES[kind.removesuffix("s") if kind in LISTS else kind]
        if kind in LISTS:
            if isinstance(value, list | tuple) and all(type(item) is wanted for item in value):
                return Attribute(kind, tuple(value))
        elif type(value) is wanted:
            return Attribute(kind, value)
        return Attribute(UNKNOWN)
    return Attribute(UNKNOWN)


def _old_share(resource: str, raw: Raw) -> NodeShare:
    """1.36: a multiplier without a key counts devices; without either the scheduler adds zero."""
    key = raw.get("capacityKey") or ""
    if not raw.keys() <= {"capacityKey", "allocationMultiplier"} or not isinstance(key, str):
        return NodeShare(resource, UNKNOWN)
    return NodeShare(
        resource,
        "1.36",
        capacity_key=key,
        multiplier=_optional(raw.get("allocationMultiplier"), "allocationMultiplier"),
    )


def _new_share(resource: str, raw: Raw) -> NodeShare:
    """1.37: a mapping (per device, or per unit of a capacity), an overhead, or both."""
    share, extra = mapping(raw.get("mapping"), "mapping"), mapping(raw.get("overhead"), "overhead")
    key = share.get("capacityKey") or ""
    known = (
        raw.keys() <= {"mapping", "overhead"}
        and isinstance(key, str)
        and extra.keys() <= {"perPod", "perContainer"}
        and share.keys() in ({"deviceMultiplier"}, {"capacityKey", "capacityMultiplier"}, set())
        and (share or extra)
    )
    if not known:
        return NodeShare(resource, UNKNOWN)
    return NodeShare(
        resource,
        "1.37",
        capacity_key=key,
        multiplier=_optional(
            share.get("deviceMultiplier") or share.get("capacityMultiplier"), "mapping"
        ),
        per_pod=_optional(extra.get("perPod"), "overhead.perPod"),
        per_container=_optional(extra.get("perContainer"), "overhead.perContainer"),
    )


def _counter_uses(raw: object) -> tuple[CounterUse, ...]:
    path = "spec.devices.consumesCounters"
    return tuple(
        CounterUse(
            text(item.get("counterSet"), path),
            _values(item.get("counters"), path),
            texts(item.get("compatibilityGroups"), path),
        )
        for item in sequence(raw, path)
    )


def _values(raw: object, path: str) -> dict[str, Quantity]:
    """Counters: a map of names to ``{value: quantity}``."""
    return quantities(
        {name: mapping(item, path).get("value") for name, item in mapping(raw, path).items()}, path
    )


def _optional(raw: object, path: str) -> Quantity | None:
    return None if raw is None else quantity(raw, path)
