"""What a Pod's status says about its devices, read from the raw object: conditions, containers,
health, and what the scheduler charges the node for its claims.

Unlike the Pod itself, its status is never refused: a part that cannot be read is left out or
marked unknown, since a page must show the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from devices.dra.quantity import Quantity
from devices.dra.reading import Raw, Unreadable, moment, quantities, quantity

TRUE, FALSE = "True", "False"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, as metav1.Condition and core/v1 PodCondition have it."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    at: datetime | None = None

    @property
    def true(self) -> bool:
        """False for "False" and for "Unknown"."""
        return self.status == TRUE


@dataclass(frozen=True, slots=True)
class ContainerSeen:
    """One container's state; ``waiting`` is the kubelet's reason, such as ContainerCreating."""

    name: str
    waiting: str = ""
    message: str = ""
    started: datetime | None = None
    running: bool = False
    ended: bool = False


@dataclass(frozen=True, slots=True)
class DeviceHealth:
    """What the kubelet says of one device of a container (KEP-4680).

    ``claim`` is the Pod's own name for the claim; ``resource`` is driver/pool/device.
    """

    container: str
    claim: str
    request: str
    resource: str
    health: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class ClaimCharge:
    """What the scheduler wrote into the Pod's status for one claim (KEP-5517).

    ``mapping`` counts once, ``per_pod`` once for the Pod, ``per_container`` once for each name in
    ``containers``. The 1.36 shape has a mapping only. ``shape`` is "unknown" where it is neither.
    """

    claim: str
    shape: str
    containers: tuple[str, ...] = ()
    mapping: Mapping[str, Quantity] = field(default_factory=dict)
    per_pod: Mapping[str, Quantity] = field(default_factory=dict)
    per_container: Mapping[str, Quantity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodStatus:
    """A Pod's status, as far as devices are concerned."""

    conditions: Mapping[str, Condition] = field(default_factory=dict)
    containers: tuple[ContainerSeen, ...] = ()
    health: tuple[DeviceHealth, ...] = ()
    charges: tuple[ClaimCharge, ...] = ()
    started: datetime | None = None

    def is_true(self, kind: str) -> bool:
        """Whether the condition is there and True."""
        found = self.conditions.get(kind)
        return found is not None and found.true


NOTHING: Final = PodStatus()


def read_pod_status(raw: Raw) -> PodStatus:
    """The status part of a raw Pod; never raises."""
    status = _map(raw.get("status"))
    if not status:
        return NOTHING
    return PodStatus(
        conditions={c.type: c for c in read_conditions(status.get("conditions"))},
        containers=tuple(_container(item) for item in _maps(status.get("containerStatuses"))),
        health=tuple(health for item in _statuses(status) for health in _health(item)),
        charges=tuple(
            _charge(item) for item in _maps(status.get("nodeAllocatableResourceClaimStatuses"))
        ),
        started=moment(status.get("startTime")),
    )


def plugin_devices(raw: Raw, resource: str) -> tuple[str, ...]:
    """Ids of a plugin's devices that a raw Pod's status names, in the order of its containers.

    Kept where the Pod has ended, and absent where it has not started or the kubelet tells no health
    (KEP-4680): that none is named does not mean that none is held. Never raises.
    """
    return tuple(
        _text(item.get("resourceID"))
        for status in _statuses(_map(raw.get("status")))
        for entry in _maps(status.get("allocatedResourcesStatus"))
        if entry.get("name") == resource
        for item in _maps(entry.get("resources"))
    )


def read_conditions(raw: object) -> tuple[Condition, ...]:
    """A list of conditions, or nothing for null."""
    return tuple(
        Condition(
            _text(item.get("type")),
            _text(item.get("status")),
            _text(item.get("reason")),
            _text(item.get("message")),
            moment(item.get("lastTransitionTime")),
        )
        for item in _maps(raw)
    )


def _statuses(status: Raw) -> list[Raw]:
    """The status of every container, those that run first included."""
    return [
        item
        for part in ("initContainerStatuses", "containerStatuses")
        for item in _maps(status.get(part))
    ]


def _container(raw: Raw) -> ContainerSeen:
    state = _map(raw.get("state"))
    waiting, running = _map(state.get("waiting")), state.get("running")
    return ContainerSeen(
        name=_text(raw.get("name")),
        waiting=_text(waiting.get("reason")),
        message=_text(waiting.get("message")),
        started=moment(_map(running).get("startedAt")),
        running=running is not None,
        ended=state.get("terminated") is not None,
    )


def _health(raw: Raw) -> list[DeviceHealth]:
    """Entries named ``claim:<claim>`` or ``claim:<claim>/<request>``; others are plugins'."""
    out = []
    for entry in _maps(raw.get("allocatedResourcesStatus")):
        kind, _, name = _text(entry.get("name")).partition(":")
        if kind != "claim":
            continue
        claim, _, request = name.partition("/")
        out += [
            DeviceHealth(
                container=_text(raw.get("name")),
                claim=claim,
                request=request,
                resource=_text(item.get("resourceID")),
                health=_text(item.get("health")) or "Unknown",
                message=_text(item.get("message")),
            )
            for item in _maps(entry.get("resources"))
        ]
    return out


def _charge(raw: Raw) -> ClaimCharge:
    claim = _text(raw.get("resourceClaimName"))
    named = raw.get("containers")
    containers = tuple(map(_text, named)) if isinstance(named, list) else ()
    known = {"resourceClaimName", "containers"}
    try:
        if raw.keys() <= known | {"resources"} and "resources" in raw:
            return ClaimCharge(
                claim, "1.36", containers, quantities(raw["resources"], "status.resources")
            )
        if raw.keys() <= known | {"mapping", "overhead"}:
            overhead = _maps(raw.get("overhead"))
            return ClaimCharge(
                claim,
                "1.37",
                containers,
                _named(_maps(raw.get("mapping")), "quantity"),
                _named(overhead, "perPod"),
                _named(overhead, "perContainer"),
            )
    except Unreadable:
        pass  # the shape is known and the amount is not: shown as unknown like a shape that is not
    return ClaimCharge(claim, "unknown", containers)


def _named(items: list[Raw], amount: str) -> dict[str, Quantity]:
    return {
        _text(item.get("name")): quantity(item[amount], amount)
        for item in items
        if item.get(amount) is not None
    }


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _maps(value: object) -> list[Raw]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
