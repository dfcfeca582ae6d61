"""How much of a device's capacity a request takes, and whether it may (KEP-5075).

Source: upstream's ``consumable_capacity.go``. 1.36 rounds in whole numbers; with
DRAFractionalCapacityRange (1.37) in thousandths, and what cannot be rounded ends the attempt.
"""

from __future__ import annotations

from collections.abc import Mapping

from devices.dra.gates import Gates
from devices.dra.quantity import MAX_INT64, NANO, Quantity
from devices.dra.slices import Capacity, CapacityRange, RequestPolicy

MILLI = NANO // 1000


class NotRepresentable(Exception):
    """An amount that no arithmetic of the scheduler can hold: it ends the scheduling attempt."""


def consumed(
    asked: Mapping[str, Quantity] | None, capacity: Mapping[str, Capacity], gates: Gates
) -> dict[str, Quantity] | None:
    """What one share takes of every capacity of a device, or None where the device refuses.

    ``asked`` is what the request names; a capacity it does not name costs its default, or all of
    it. A device refuses a capacity that it does not have and an amount that its policy forbids.
    Raises NotRepresentable from 1.37 on (older schedulers pass the device over).
    """
    asked = asked or {}
    if not asked.keys() <= capacity.keys():
        return None
    strict = gates.at_least("1.37")
    taken = {}
    for name, offer in capacity.items():
        amount = _amount(asked.get(name), offer, gates)
        if amount is None or (amount.nanos < 0 and strict):
            if strict:
                raise NotRepresentable(f'capacity "{name}": the amount cannot be represented')
            return None
        taken[name] = amount
    if any(_forbidden(taken[name], offer.policy, gates) for name, offer in capacity.items()):
        return None
    return taken


def fits(
    taken: Mapping[str, Quantity],
    capacity: Mapping[str, Capacity],
    used: Mapping[str, Quantity],
    more: Mapping[str, Quantity],
) -> bool:
    """Whether another share fits beside what allocated claims and this attempt have taken."""
    for name, amount in taken.items():
        total = amount.nanos
        if name in used:
            total += used[name].nanos
        if name in more:
            total += more[name].nanos
        if total > capacity[name].value.nanos:
            return False
    return True


def _amount(asked: Quantity | None, offer: Capacity, gates: Gates) -> Quantity | None:
    policy = offer.policy
    if asked is None:
        return policy.default if policy and policy.default is not None else offer.value
    if policy is None:
        return asked
    if policy.range and policy.range.min is not None:
        return _rounded(asked, policy.range, gates)
    if policy.values is not None:
        return next((value for value in policy.values if asked <= value), asked)
    return asked


def _rounded(asked: Quantity, bounds: CapacityRange, gates: Gates) -> Quantity | None:
    """Up to the next step above the minimum; None where that leaves the arithmetic's range."""
    least, step = bounds.min, bounds.step
    assert least is not None
    if asked < least:
        return least
    if step is None:
        return asked
    unit = _unit(bounds, gates)
    wanted, first, by = (_units(amount, unit) for amount in (asked, least, step))
    if by == 0 or (unit == MILLI and asked.nanos % MILLI) or wanted > MAX_INT64:
        return None
    total = first + -(-(wanted - first) // by) * by
    return Quantity(total * unit, step.format) if total <= MAX_INT64 else None


def _forbidden(amount: Quantity, policy: RequestPolicy | None, gates: Gates) -> bool:
    if policy is None or amount == policy.default:
        return False
    if policy.range is not None:
        return _outside(amount, policy.range, gates)
    return bool(policy.values) and amount not in (policy.values or ())


def _outside(amount: Quantity, bounds: CapacityRange, gates: Gates) -> bool:
    if bounds.max is not None and amount > bounds.max:
        return True
    if bounds.step is None or bounds.min is None:
        return False
    unit = _unit(bounds, gates)
    if unit == MILLI and amount.nanos % MILLI:
        return True
    step = _units(bounds.step, unit)
    return step == 0 or (_units(amount, unit) - _units(bounds.min, unit)) % step != 0


def _unit(bounds: CapacityRange, gates: Gates) -> int:
    """Thousandths where the gate is on and every bound is a whole number of them, else ones."""
    if "DRAFractionalCapacityRange" not in gates:
        return NANO
    named = [bound for bound in (bounds.min, bounds.max, bounds.step) if bound is not None]
    exact = all(
        bound.nanos % MILLI == 0 and abs(bound.nanos) <= MAX_INT64 * MILLI for bound in named
    )
    return MILLI if exact and (bounds.step is None or bounds.step.nanos >= MILLI) else NANO


def _units(amount: Quantity, unit: int) -> int:
    """An amount in whole units, rounded up as Go's ``Value`` and ``MilliValue`` do."""
    return -(-amount.nanos // unit)
