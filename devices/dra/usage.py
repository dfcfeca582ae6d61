"""What is taken: devices, shares and capacity, as the allocated claims of the cluster say.

Allocation results are the only truth about use (adminAccess uses nothing). Source: upstream's
``scheduler/framework/plugins/dynamicresources/allocateddevices.go``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from devices.dra.claims import Claim, DeviceKey
from devices.dra.pools import PoolKey
from devices.dra.quantity import Quantity
from devices.dra.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Usage:
    """Who holds what. ``whole`` are devices that are taken as a whole, ``shared`` those of which
    shares are taken, ``consumed`` the capacity taken of each, ``admin`` who looks at them.
    """

    whole: Mapping[DeviceKey, tuple[Claim, ...]]
    shared: Mapping[DeviceKey, tuple[Claim, ...]]
    consumed: Mapping[DeviceKey, Mapping[str, Quantity]]
    admin: Mapping[DeviceKey, tuple[Claim, ...]]

    def taken(self, key: DeviceKey) -> bool:
        """Whether a device counts as allocated, in whole or in part."""
        return key in self.whole or key in self.shared

    def devices(self) -> Set[DeviceKey]:
        """Every device that is taken, in whole or in part."""
        return self.whole.keys() | self.shared.keys()

    def holders(self, key: DeviceKey) -> tuple[Claim, ...]:
        """The claims that hold the device or a share of it."""
        return (*self.whole.get(key, ()), *self.shared.get(key, ()))


def names_taken(snapshot: Snapshot) -> Mapping[PoolKey, frozenset[str]]:
    """By pool, the names of devices that are taken, in whole or in part: for those who go through
    all of them pool by pool, without a key for each device.
    """
    return snapshot.once("names taken", _names_taken)


def _names_taken(snapshot: Snapshot) -> Mapping[PoolKey, frozenset[str]]:
    used = usage(snapshot)
    found: dict[PoolKey, set[str]] = defaultdict(set)
    for taken in (used.whole, used.shared):
        for driver, pool, name in taken:
            found[driver, pool].add(name)
    return {pool: frozenset(names) for pool, names in found.items()}


def usage(snapshot: Snapshot) -> Usage:
    """What is taken in a snapshot, by its own gates (see `usage_of`)."""
    return snapshot.once(
        "usage", lambda s: usage_of(s.claims.values(), "DRAConsumableCapacity" in s.gates)
    )


def usage_of(claims: Iterable[Claim], shares: bool) -> Usage:
    """What claims take. Without consumable capacity (``shares``) the scheduler takes a shared
    device as wholly used.
    """
    whole: dict[DeviceKey, list[Claim]] = defaultdict(list)
    shared: dict[DeviceKey, list[Claim]] = defaultdict(list)
    admin: dict[DeviceKey, list[Claim]] = defaultdict(list)
    consumed: dict[DeviceKey, dict[str, Quantity]] = {}
    for claim in claims:
        if claim.allocation is None:
            continue
        for result in claim.allocation.results:
            if result.admin:
                admin[result.key].append(claim)
            elif result.share_id and shares:
                shared[result.key].append(claim)
                if result.consumed is not None:
                    total = consumed.setdefault(result.key, {})
                    for name, amount in result.consumed.items():
                        total[name] = total[name] + amount if name in total else amount
            else:
                whole[result.key].append(claim)
    return Usage(_frozen(whole), _frozen(shared), consumed, _frozen(admin))


def _frozen(found: Mapping[DeviceKey, list[Claim]]) -> dict[DeviceKey, tuple[Claim, ...]]:
    return {key: tuple(claims) for key, claims in found.items()}
