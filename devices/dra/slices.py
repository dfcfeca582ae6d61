"""ResourceSlices and their devices, as drivers publish them: frozen values and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from devices.dra.nodes import NodeSelector
from devices.dra.quantity import Quantity
from devices.dra.taints import DeviceTaint

#: Kinds of attribute values, in the order in which upstream looks for them.
KINDS: Final = ("ints", "bools", "strings", "versions", "int", "bool", "string", "version")
LISTS: Final = frozenset({"ints", "bools", "strings", "versions"})
UNKNOWN: Final = "unknown"


class Attribute(NamedTuple):
    """A typed attribute value: ``kind`` is one of KINDS, or "unknown" for one nobody here knows.

    A list's ``value`` is a tuple; a version's is its text. A tuple and no dataclass, because a
    cluster has half a million of them and they are compared all the time.
    """

    kind: str
    value: Any = None

    @property
    def elements(self) -> frozenset[Any]:
        """A scalar as a set of one, a list as the set of its elements."""
        return frozenset(self.value) if self.kind in LISTS else frozenset((self.value,))

    @property
    def element_kind(self) -> str:
        """The kind of one element: int, bool, string, version or unknown."""
        return self.kind[:-1] if self.kind in LISTS else self.kind

    def __str__(self) -> str:
        if self.kind in LISTS:
            return ", ".join(map(str, self.value))
        return str(self.value).lower() if self.kind == "bool" else str(self.value)


@dataclass(frozen=True, slots=True)
class CapacityRange:
    """Amounts that may be asked for: from ``min`` in steps of ``step`` up to ``max``."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """How much of a shareable capacity one request takes (KEP-5075)."""

    default: Quantity | None = None
    values: tuple[Quantity, ...] | None = None
    range: CapacityRange | None = None


@dataclass(frozen=True, slots=True)
class Capacity:
    """One capacity of a device."""

    value: Quantity
    policy: RequestPolicy | None = None


@dataclass(frozen=True, slots=True)
class CounterUse:
    """What a device takes from one counter set while it is allocated."""

    counter_set: str
    counters: Mapping[str, Quantity]
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CounterSet:
    """Counters that devices of a pool share."""

    name: str
    counters: Mapping[str, Quantity]


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What one device means for one resource of its node (KEP-5517), in either release's shape.

    1.36: ``multiplier`` times the consumed ``capacity_key``, or times the devices without a key.
    1.37: the same as *mapping* (``shape`` "1.37"), and ``per_pod`` and ``per_container`` as
    *overhead*. ``shape`` is "unknown" where the fields are neither; nothing is then assumed.
    """

    resource: str
    shape: str
    capacity_key: str = ""
    multiplier: Quantity | None = None
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    """From which nodes something can be used; one of four, or none where the shape is unknown."""

    node_name: str = ""
    all_nodes: bool = False
    selector: NodeSelector | None = None
    per_device: bool = False

    @property
    def known(self) -> bool:
        """False where a slice says none of the four: some future way of choosing nodes."""
        return bool(self.node_name or self.all_nodes or self.selector or self.per_device)


NOWHERE: Final = Reach()


_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Device(NamedTuple):
    """One device of a slice; its identity is driver, pool and ``name`` together.

    A tuple and no dataclass, because making 40,000 of them is a good part of reading a cluster.
    """

    name: str
    attributes: Mapping[str, Attribute] = _NOTHING
    capacity: Mapping[str, Capacity] = _NOTHING
    consumes: tuple[CounterUse, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    reach: Reach = NOWHERE
    shareable: bool = False
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failures: tuple[str, ...] = ()
    node_shares: tuple[NodeShare, ...] = ()
    odd_attributes: tuple[str, ...] = ()
    """Names of the attributes that are lists or unknown: older schedulers choke on them."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One ResourceSlice.

    ``plain`` is True where every device is a name with scalar attributes and capacities and nothing
    else (no taints, counters, shares, conditions): most slices are, and rules pass over them.
    """

    name: str
    driver: str
    pool: str
    generation: int
    slice_count: int
    reach: Reach
    devices: tuple[Device, ...] = ()
    counters: tuple[CounterSet, ...] = ()
    partition_type: str = ""
    skipped_operations: tuple[str, ...] = ()
    uid: str = ""
    version: str = ""
    plain: bool = field(default=False, compare=False)
