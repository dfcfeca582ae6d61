"""What drivers say of the devices of an allocated claim (status.devices, KEP-4817): ready, failed,
silent, or not reported at all; missing news is unknown, never failure and never health.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from devices.dra.claims import Claim, Result
from devices.dra.podstatus import FALSE, Condition, read_conditions


class Health(StrEnum):
    """How one allocated device stands, by its driver."""

    READY = "ready"
    FAILED = "failed"
    PENDING = "pending"
    """There are conditions, and none says that it works or that it failed."""
    SILENT = "no conditions reported"
    UNREPORTED = "no status reported"

    @property
    def known(self) -> bool:
        """Whether the driver has said how it stands."""
        return self in (Health.READY, Health.FAILED)


@dataclass(frozen=True, slots=True)
class DeviceState:
    """One device of an allocation and what its driver says of it.

    ``waiting_for`` are its binding conditions that are not True yet, ``failed`` the conditions
    that say it failed. ``interface``, ``addresses`` and ``hardware`` come from network drivers.
    """

    result: Result
    health: Health
    conditions: tuple[Condition, ...] = ()
    waiting_for: tuple[str, ...] = ()
    failed: tuple[Condition, ...] = ()
    interface: str = ""
    addresses: tuple[str, ...] = ()
    hardware: str = ""


def device_states(claim: Claim) -> tuple[DeviceState, ...]:
    """Each allocated device of a claim, in the order of its results; empty where none is."""
    if claim.allocation is None:
        return ()
    status = claim.raw.get("status")
    entries = status.get("devices") if isinstance(status, Mapping) else None
    said = {
        _key(item): item
        for item in (entries if isinstance(entries, list) else ())
        if isinstance(item, Mapping)
    }
    return tuple(
        _state(result, said.get((*result.key, result.share_id)))
        for result in claim.allocation.results
    )


def _state(result: Result, entry: Mapping[str, Any] | None) -> DeviceState:
    if entry is None:
        return DeviceState(result, Health.UNREPORTED, waiting_for=result.binding_conditions)
    conditions = read_conditions(entry.get("conditions"))
    true = {c.type for c in conditions if c.true}
    failed = tuple(c for c in conditions if _failed(c, result))
    if failed:
        health = Health.FAILED
    elif "Ready" in true:
        health = Health.READY
    else:
        health = Health.PENDING if conditions else Health.SILENT
    network = entry.get("networkData")
    network = network if isinstance(network, Mapping) else {}
    return DeviceState(
        result,
        health,
        conditions,
        tuple(name for name in result.binding_conditions if name not in true),
        failed,
        interface=str(network.get("interfaceName") or ""),
        addresses=tuple(map(str, network.get("ips") or ())),
        hardware=str(network.get("hardwareAddress") or ""),
    )


def _failed(condition: Condition, result: Result) -> bool:
    """One of the scheduler's failure list fails when True, and "…Ready" when False. What any
    other type means is the driver's secret, so it is shown and not judged.
    """
    if condition.type in result.binding_failures:
        return condition.true
    waited_for = condition.type in result.binding_conditions
    return condition.type.endswith("Ready") and condition.status == FALSE and not waited_for


def _key(item: Mapping[str, Any]) -> tuple[str, str, str, str]:
    driver, pool, device, share = (
        str(item.get(name) or "") for name in ("driver", "pool", "device", "shareID")
    )
    return (driver, pool, device, share)
