"""Claims, templates and classes: what is asked for, and what has been given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from devices.dra.meta import Meta, read_meta
from devices.dra.nodes import NodeSelector, read_selector
from devices.dra.quantity import Quantity
from devices.dra.reading import (
    Raw,
    mapping,
    moment,
    number,
    quantities,
    sequence,
    strange,
    text,
    texts,
)
from devices.dra.taints import Toleration, read_tolerations

#: A claim never holds more devices (AllocationResultsMaxSize).
MOST_DEVICES: Final = 32
#: A claim never serves more consumers (ResourceClaimReservedForMaxSize).
MOST_CONSUMERS: Final = 256
EXACT, ALL = "ExactCount", "All"
EXTENDED_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"
POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"

#: Driver, pool and device: what makes a device the same device.
DeviceKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Ask:
    """What one request, or one alternative of it, wants.

    ``admin`` is None where the field is absent; a selector is None where it is of an unknown
    kind (not CEL), which upstream refuses.
    """

    name: str
    device_class: str = ""
    selectors: tuple[str | None, ...] = ()
    mode: str = EXACT
    count: int = 1
    admin: bool | None = None
    tolerations: tuple[Toleration, ...] = ()
    capacity: Mapping[str, Quantity] | None = field(default=None, hash=False)
    derived: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """A request: ``exactly`` one ask, or alternatives of which the first that works is taken."""

    name: str
    exactly: Ask | None = None
    alternatives: tuple[Ask, ...] = ()

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The ask itself, or all alternatives."""
        return self.alternatives or ((self.exactly,) if self.exactly else ())


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition across devices of a claim: one attribute equal on all, or different on all.

    Both names are empty for a constraint of an unknown kind, which upstream refuses.
    """

    requests: tuple[str, ...] = ()
    match: str = ""
    distinct: str = ""


@dataclass(frozen=True, slots=True)
class ClaimSpec:
    """What a claim or a template asks for; ``configs`` are opaque and kept as they are."""

    requests: tuple[Request, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    configs: tuple[Raw, ...] = field(default=(), hash=False)

    def class_of(self, request: str) -> str:
        """The class that a request asks for, named as results name it: "gpu", or "gpu/first" for
        an alternative; empty where there is no such request.
        """
        name, _, alternative = request.partition("/")
        for found in self.requests:
            if found.name == name:
                asks = [ask for ask in found.asks if not alternative or ask.name == alternative]
                return asks[0].device_class if asks else ""
        return ""


@dataclass(frozen=True, slots=True)
class Result:
    """One device that was allocated to a claim (DeviceRequestAllocationResult)."""

    request: str
    driver: str
    pool: str
    device: str
    admin: bool = False
    share_id: str = ""
    consumed: Mapping[str, Quantity] | None = None
    tolerations: tuple[Toleration, ...] = ()
    binding_conditions: tuple[str, ...] = ()
    binding_failures: tuple[str, ...] = ()

    @property
    def key(self) -> DeviceKey:
        """Driver, pool and device."""
        return (self.driver, self.pool, self.device)


@dataclass(frozen=True, slots=True)
class Allocation:
    """What the scheduler gave; ``selector`` is None where every node can use it."""

    results: tuple[Result, ...] = ()
    selector: NodeSelector | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Consumer:
    """One entry of a claim's reservedFor: a Pod, a PodGroup or something else."""

    resource: str
    name: str
    uid: str
    api_group: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """A ResourceClaim; ``raw`` is the whole object as it was read."""

    meta: Meta
    spec: ClaimSpec
    allocation: Allocation | None = None
    reserved_for: tuple[Consumer, ...] = ()
    raw: Raw = field(default_factory=dict, compare=False, repr=False)

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.meta.namespace, self.meta.name)

    def __str__(self) -> str:
        return f"{self.meta.namespace}/{self.meta.name}"


@dataclass(frozen=True, slots=True)
class Template:
    """A ResourceClaimTemplate."""

    meta: Meta
    spec: ClaimSpec
    raw: Raw = field(default_factory=dict, compare=False, repr=False)

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.meta.namespace, self.meta.name)


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass; a selector is None where it is not CEL."""

    name: str
    selectors: tuple[str | None, ...] = ()
    extended_resource: str = ""
    created: datetime | None = None
    raw: Raw = field(default_factory=dict, compare=False, repr=False)


_ASK = frozenset(
    [
        "name",
        "deviceClassName",
        "selectors",
        "allocationMode",
        "count",
        "adminAccess",
        "tolerations",
        "capacity",
        "derivedAttributes",
    ]
)


#: Specs by their own JSON, with the paths in them that are not known: claims made from one
#: template have equal specs, which are read once and shared.
KnownSpecs = dict[bytes, tuple[ClaimSpec, list[str]]]


def read_claim(raw: Raw, known: KnownSpecs | None = None) -> tuple[Claim, list[str]]:
    """A ResourceClaim of any served version, and the paths that are not known."""
    spec, unknown = _read_once(raw.get("spec"), {} if known is None else known)
    status = mapping(raw.get("status"), "status")
    allocation = status.get("allocation")
    claim = Claim(
        meta=read_meta(raw),
        spec=spec,
        allocation=None
        if allocation is None
        else _allocation(mapping(allocation, "status.allocation")),
        reserved_for=tuple(
            Consumer(
                item.get("resource") or "",
                item.get("name") or "",
                item.get("uid") or "",
                item.get("apiGroup") or "",
            )
            for item in sequence(status.get("reservedFor"), "status.reservedFor")
        ),
        raw=raw,
    )
    return claim, unknown


def read_template(raw: Raw) -> tuple[Template, list[str]]:
    """A ResourceClaimTemplate, and the paths that are not known."""
    unknown: list[str] = []
    spec = mapping(raw.get("spec"), "spec")
    return Template(
        read_meta(raw), read_claim_spec(spec.get("spec"), "spec.spec", unknown), raw
    ), unknown


def read_class(raw: Raw) -> tuple[DeviceClass, list[str]]:
    """A DeviceClass, and the paths that are not known."""
    meta, spec = read_meta(raw), mapping(raw.get("spec"), "spec")
    device_class = DeviceClass(
        name=meta.name,
        selectors=_selectors(spec.get("selectors"), "spec.selectors"),
        extended_resource=spec.get("extendedResourceName") or "",
        created=meta.created,
        raw=raw,
    )
    known = frozenset({"selectors", "config", "extendedResourceName", "suitableNodes"})
    return device_class, strange(spec, known, "spec")


def read_claim_spec(raw: object, path: str, unknown: list[str]) -> ClaimSpec:
    """A ResourceClaimSpec of any served version; paths that are not known go to ``unknown``."""
    spec = mapping(raw, path)
    devices = mapping(spec.get("devices"), f"{path}.devices")
    unknown += strange(spec, frozenset({"devices"}), path)
    unknown += strange(devices, frozenset({"requests", "constraints", "config"}), f"{path}.devices")
    return ClaimSpec(
        requests=tuple(
            _request(mapping(item, path), f"{path}.devices.requests", unknown)
            for item in sequence(devices.get("requests"), f"{path}.devices.requests")
        ),
        constraints=tuple(
            Constraint(
                texts(item.get("requests"), f"{path}.devices.constraints"),
                item.get("matchAttribute") or "",
                item.get("distinctAttribute") or "",
            )
            for item in sequence(devices.get("constraints"), f"{path}.devices.constraints")
        ),
        configs=tuple(sequence(devices.get("config"), f"{path}.devices.config")),
    )


def _read_once(raw: object, known: KnownSpecs) -> tuple[ClaimSpec, list[str]]:
    key = msgspec.json.encode(raw)
    found = known.get(key)
    if found is None:
        unknown: list[str] = []
        found = known[key] = read_claim_spec(raw, "spec", unknown), unknown
    return found


def _request(raw: Raw, path: str, unknown: list[str]) -> Request:
    name = text(raw.get("name"), f"{path}.name")
    alternatives = sequence(raw.get("firstAvailable"), f"{path}.firstAvailable")
    if alternatives:
        asks = (
            _ask(mapping(item, path), f"{path}[{name}].firstAvailable", unknown)
            for item in alternatives
        )
        return Request(name, alternatives=tuple(asks))
    exactly = raw.get("exactly")
    if (
        exactly is None and "deviceClassName" in raw
    ):  # v1beta1 keeps the fields in the request itself
        return Request(name, _ask(raw, f"{path}[{name}]", unknown))
    if exactly is None:
        return Request(name)
    return Request(
        name, _ask({"name": name, **mapping(exactly, path)}, f"{path}[{name}].exactly", unknown)
    )


def _ask(raw: Raw, path: str, unknown: list[str]) -> Ask:
    unknown += strange(raw, _ASK, path)
    mode = raw.get("allocationMode") or EXACT
    capacity = raw.get("capacity")
    count = raw.get("count")
    return Ask(
        name=raw.get("name") or "",
        device_class=raw.get("deviceClassName") or "",
        selectors=_selectors(raw.get("selectors"), f"{path}.selectors"),
        mode=mode,
        count=number(1 if count is None and mode == EXACT else count or 0, f"{path}.count"),
        admin=raw.get("adminAccess"),
        tolerations=read_tolerations(raw.get("tolerations"), f"{path}.tolerations"),
        capacity=None
        if capacity is None
        else quantities(mapping(capacity, path).get("requests"), f"{path}.capacity.requests"),
        derived=tuple(
            (item.get("name") or "", item.get("expression") or "")
            for item in sequence(raw.get("derivedAttributes"), f"{path}.derivedAttributes")
        ),
    )


def _selectors(raw: object, path: str) -> tuple[str | None, ...]:
    out = []
    for item in sequence(raw, path):
        cel = mapping(item, path).get("cel")
        out.append(None if cel is None else mapping(cel, path).get("expression") or "")
    return tuple(out)


def _allocation(raw: Raw) -> Allocation:
    devices = mapping(raw.get("devices"), "status.allocation.devices")
    return Allocation(
        results=tuple(
            _result(mapping(item, "results"), "status.allocation.devices.results")
            for item in sequence(devices.get("results"), "status.allocation.devices.results")
        ),
        selector=read_selector(raw.get("nodeSelector"), "status.allocation.nodeSelector"),
        at=moment(raw.get("allocationTimestamp")),
    )


def _result(raw: Raw, path: str) -> Result:
    consumed = raw.get("consumedCapacity")
    return Result(
        request=raw.get("request") or "",
        driver=text(raw.get("driver"), f"{path}.driver"),
        pool=text(raw.get("pool"), f"{path}.pool"),
        device=text(raw.get("device"), f"{path}.device"),
        admin=raw.get("adminAccess") is True,
        share_id=raw.get("shareID") or "",
        consumed=None if consumed is None else quantities(consumed, f"{path}.consumedCapacity"),
        tolerations=read_tolerations(raw.get("tolerations"), f"{path}.tolerations"),
        binding_conditions=texts(raw.get("bindingConditions"), f"{path}.bindingConditions"),
        binding_failures=texts(
            raw.get("bindingFailureConditions"), f"{path}.bindingFailureConditions"
        ),
    )
