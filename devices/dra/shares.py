"""What is left on devices that are given out in shares, exactly and by whoever holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from devices.dra.claims import DeviceKey
from devices.dra.published import published
from devices.dra.quantity import ZERO, Quantity
from devices.dra.snapshot import Snapshot
from devices.dra.usage import usage


@dataclass(frozen=True, slots=True)
class Shared:
    """One capacity of a shareable device: how much there is, and who has taken how much.

    ``by_namespace`` is for people who may see it: a tenant sees its own part and the rest as one.
    """

    total: Quantity
    taken: Quantity
    by_namespace: Mapping[str, Quantity]

    @property
    def left(self) -> Quantity:
        """Negative where more was given than there is."""
        return self.total - self.taken


def shares(snapshot: Snapshot, key: DeviceKey) -> Mapping[str, Shared]:
    """Each capacity of a device by name; empty for a device that is not published or that cannot
    be shared. Amounts are compared by value, whatever unit the scheduler wrote them in.
    """
    found = published(snapshot, key)
    if found is None or not found.device.shareable:
        return {}
    used = usage(snapshot)
    taken: dict[str, dict[str, Quantity]] = {}
    for claim in {str(c): c for c in used.shared.get(key, ())}.values():
        for result in claim.allocation.results if claim.allocation else ():
            if result.key == key and not result.admin:
                for name, amount in (result.consumed or {}).items():
                    by = taken.setdefault(name, {})
                    by[claim.meta.namespace] = by.get(claim.meta.namespace, ZERO) + amount
    return {
        name: _shared(capacity.value, taken.get(name, {}))
        for name, capacity in found.device.capacity.items()
    }


def _shared(value: Quantity, taken: Mapping[str, Quantity]) -> Shared:
    """Amounts in the unit in which the device itself is described."""
    by = {who: Quantity(amount.nanos, value.format) for who, amount in taken.items()}
    return Shared(value, sum(by.values(), Quantity(0, value.format)), by)
