"""Counters that the devices of a pool share, during one search (KEP-4815).

Through 1.36 the scheduler knows counters by the pool's *name* alone: two drivers with one pool name
mix theirs, and what the first of them has decides for both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from devices.dra.gates import Gates
from devices.dra.pools import PoolKey
from devices.dra.slices import CounterUse, Device
from devices.dra.standing import counters_left
from devices.dra.usage import Usage
from devices.dra.visibility import PoolView

#: Counters by set and name, in billionths.
Amounts = dict[tuple[str, str], int]
#: A counter set of one pool, and the groups that all devices on it have in common so far.
SetKey = tuple[PoolKey, str]
Undo = list[tuple[SetKey, frozenset[str] | None]]


class Counters:
    """What is left of every pool's counters, and what the search has taken of them."""

    def __init__(self, used: Usage, gates: Gates) -> None:
        self._used = used
        self._by_name = not gates.at_least("1.37")
        self._left: dict[Hashable, Amounts] = {}
        self._taken: dict[Hashable, Amounts] = {}

    def take(self, pool: PoolView, device: Device) -> bool:
        """Takes a device's counters, or answers False and takes nothing.

        A counter that is overdrawn already refuses every device of the pool that uses counters.
        """
        key = pool.name if self._by_name else pool.key
        left = self._left.get(key)
        if left is None:
            left = self._left[key] = self._initial(pool)
        taken = self._taken.setdefault(key, {})
        amounts = amounts_of(device.consumes)
        for counter, amount in amounts.items():
            taken[counter] = taken.get(counter, 0) + amount
        if all(amount >= taken.get(counter, 0) for counter, amount in left.items()):
            return True
        self._give(taken, amounts)
        return False

    def give_back(self, pool: PoolView, device: Device) -> None:
        """Undoes `take`."""
        key = pool.name if self._by_name else pool.key
        self._give(self._taken[key], amounts_of(device.consumes))

    def state(self) -> Hashable:
        """What has been taken so far, as a key."""
        return tuple(
            (key, counter, amount)
            for key, taken in self._taken.items()
            for counter, amount in sorted(taken.items())
            if amount
        )

    def most(self, pool: PoolView, devices: Iterable[Device]) -> int:
        """No more of these devices of one pool can be taken together, in the best of cases."""
        key = pool.name if self._by_name else pool.key
        left = self._left.get(key)
        if left is None:
            left = self._left[key] = self._initial(pool)
        taken = self._taken.get(key, {})
        by_set: dict[str, list[Amounts]] = {}
        for device in devices:
            amounts = amounts_of(device.consumes)
            by_set.setdefault(device.consumes[0].counter_set, []).append(amounts)
        total = 0
        for name, group in by_set.items():
            mine = [counter for counter in left if counter[0] == name]
            total += min(
                (_fitting(left[c] - taken.get(c, 0), [a.get(c, 0) for a in group]) for c in mine),
                default=len(group),
            )
        return total

    def _initial(self, pool: PoolView) -> Amounts:
        left = counters_left((*pool.slices, *pool.others), self._used, pool.counters or {})
        return {
            (name, counter): amount.nanos
            for name, counters in left.items()
            for counter, amount in counters.items()
        }

    @staticmethod
    def _give(taken: Amounts, amounts: Mapping[tuple[str, str], int]) -> None:
        for counter, amount in amounts.items():
            taken[counter] -= amount


def amounts_of(consumes: tuple[CounterUse, ...]) -> Amounts:
    """What a device takes, by counter set and counter."""
    out: Amounts = {}
    for use in consumes:
        for name, amount in use.counters.items():
            counter = (use.counter_set, name)
            out[counter] = out.get(counter, 0) + amount.nanos
    return out


def _fitting(room: int, needs: list[int]) -> int:
    """How many of the smallest needs fit."""
    count = 0
    for need in sorted(needs):
        room -= need
        if room < 0:
            break
        count += 1
    return count


class Groups:
    """Compatibility groups: devices of one counter set live together only if they share a group.

    (KEP-5963, gate DRADeviceCompatibilityGroups.) A device without groups goes only with others
    that have none.
    """

    def __init__(self, used: Usage) -> None:
        self._used = used
        self._common: dict[SetKey, frozenset[str] | None] = {}
        self._seeded: set[PoolKey] = set()

    def take(self, pool: PoolView, device: Device) -> Undo | None:
        """Adds a device; answers what `give_back` needs, or None where it does not go with them."""
        if pool.key not in self._seeded:
            self._seeded.add(pool.key)
            self._seed(pool)
        undo: Undo = []
        for use in device.consumes:
            key = (pool.key, use.counter_set)
            groups = frozenset(use.groups)
            common = self._common.get(key)
            if common is not None and not (common & groups or (not common and not groups)):
                self.give_back(undo)
                return None
            undo.append((key, common))
            self._common[key] = groups if common is None else common & groups
        return undo

    def give_back(self, undo: Undo) -> None:
        """Undoes `take`."""
        for key, before in reversed(undo):
            self._common[key] = before

    def state(self) -> Hashable:
        """What the devices have in common so far, as a key."""
        return tuple(self._common.items())

    def _seed(self, pool: PoolView) -> None:
        for piece in (*pool.slices, *pool.others):
            for device in piece.devices:
                if self._used.taken((piece.driver, piece.pool, device.name)):
                    for use in device.consumes:
                        key = (pool.key, use.counter_set)
                        groups, common = frozenset(use.groups), self._common.get(key)
                        if common is None:
                            self._common[key] = groups
                        elif common and groups:
                            self._common[key] = common & groups
