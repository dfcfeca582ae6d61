"""How each published device stands, whoever asks: free, taken, shared, closed, or unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from devices.dra.claims import DeviceKey
from devices.dra.pools import Pool, PoolKey, counter_sets, pools
from devices.dra.quantity import Quantity
from devices.dra.slices import CounterSet, Device, Slice
from devices.dra.snapshot import Snapshot
from devices.dra.taints import DeviceTaint
from devices.dra.usage import Usage, names_taken, usage


class State(StrEnum):
    """What can be said of a device before anybody asks for it."""

    FREE = "free"
    ALLOCATED = "allocated"
    SHARED = "shared"
    UNAVAILABLE = "unavailable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Standing:
    """A state, and the code that says why a device is unavailable or unknown."""

    state: State
    reason: str = ""


FREE, ALLOCATED, SHARED = Standing(State.FREE), Standing(State.ALLOCATED), Standing(State.SHARED)
TAINTED = Standing(State.UNAVAILABLE, "DEVICE_TAINTED")
COUNTERS = Standing(State.UNAVAILABLE, "COUNTERS_TAKEN")
CAPACITY = Standing(State.UNAVAILABLE, "CAPACITY_TAKEN")
INCOMPLETE = Standing(State.UNAVAILABLE, "POOL_INCOMPLETE")
INVALID = Standing(State.UNAVAILABLE, "POOL_INVALID")
FEATURE_OFF = Standing(State.UNAVAILABLE, "FEATURE_OFF")
NO_NODE = Standing(State.UNKNOWN, "NODE_UNKNOWN")


def standings(snapshot: Snapshot) -> Mapping[str, Sequence[Standing]]:
    """By slice name (newest generations only), how each device of the slice stands."""
    return snapshot.once("standings", _standings)


def taints(snapshot: Snapshot, piece: Slice, device: Device) -> tuple[DeviceTaint, ...]:
    """The device's own taints and those that rules put on it; none where the gate is off.

    Through 1.36 a rule without any deviceSelector taints every device for the scheduler, although
    the API says that it selects none.
    """
    if "DRADeviceTaints" not in snapshot.gates:
        return ()
    rules = rule_taints(snapshot, piece)
    if not rules:
        return device.taints
    return (*device.taints, *(taint for name, taint in rules if name in ("", device.name)))


def rule_taints(snapshot: Snapshot, piece: Slice) -> Sequence[tuple[str, DeviceTaint]]:
    """Taints that rules put on a slice: pairs of device name ("" for every device) and taint."""
    if not snapshot.rules:
        return ()
    return snapshot.once(("rules", piece.driver, piece.pool), lambda s: _rule_taints(s, piece))


def _rule_taints(snapshot: Snapshot, piece: Slice) -> Sequence[tuple[str, DeviceTaint]]:
    if "DRADeviceTaintRules" not in snapshot.gates:
        return ()
    nil_selects_all = not snapshot.gates.at_least("1.37")
    return tuple(
        (rule.device, rule.taint)
        for rule in snapshot.rules
        if rule.matches(piece.driver, piece.pool, rule.device) and (rule.selects or nil_selects_all)
    )


def counters_left(
    slices: Sequence[Slice], used: Usage, sets: Mapping[str, CounterSet]
) -> dict[str, dict[str, Quantity]]:
    """By counter set and counter, what allocated devices of the pool leave; may be negative."""
    left = {name: dict(found.counters) for name, found in sets.items()}
    if not left:
        return left
    for piece in slices:
        for device in piece.devices:
            if device.consumes and used.taken((piece.driver, piece.pool, device.name)):
                for use in device.consumes:
                    counters = left.get(use.counter_set, {})
                    for name, amount in use.counters.items():
                        if name in counters:
                            counters[name] = counters[name] - amount
    return left


def fits_counters(device: Device, left: Mapping[str, Mapping[str, Quantity]]) -> bool:
    """Whether the counters that a device consumes are all left."""
    return all(
        amount <= left[use.counter_set][name]
        for use in device.consumes
        for name, amount in use.counters.items()
    )


def pool_standings(snapshot: Snapshot, pool: Pool) -> Mapping[str, Sequence[Standing]]:
    """The same for the slices of one pool, without looking at any other."""
    known: Mapping[str, Sequence[Standing]] | None = snapshot.memo.get("standings")
    return _of_pool(snapshot, pool, usage(snapshot)) if known is None else known


def _standings(snapshot: Snapshot) -> Mapping[str, Sequence[Standing]]:
    used = usage(snapshot)
    out: dict[str, Sequence[Standing]] = {}
    for pool in pools(snapshot).values():
        out.update(_of_pool(snapshot, pool, used))
    return out


def _of_pool(snapshot: Snapshot, pool: Pool, used: Usage) -> Mapping[str, Sequence[Standing]]:
    whole_pool = INVALID if pool.invalid else INCOMPLETE if pool.incomplete else None
    if whole_pool is not None:
        return {
            piece.name: tuple(
                ALLOCATED if used.taken(_key(pool.key, device)) else whole_pool
                for device in piece.devices
            )
            for piece in pool.slices
        }
    left = counters_left(pool.slices, used, counter_sets(pool.slices))
    return {piece.name: _of_slice(snapshot, pool, piece, used, left) for piece in pool.slices}


def _of_slice(
    snapshot: Snapshot,
    pool: Pool,
    piece: Slice,
    used: Usage,
    left: Mapping[str, Mapping[str, Quantity]],
) -> Sequence[Standing]:
    gone = bool(piece.reach.node_name and snapshot.nodes) and (
        piece.reach.node_name not in snapshot.nodes
    )
    rules = rule_taints(snapshot, piece)
    binding, partitions = snapshot.gates.binding, "DRAPartitionableDevices" in snapshot.gates
    plain = not (gone or rules)
    driver, name = pool.key
    whole, shared = used.whole, used.shared
    taken = names_taken(snapshot).get(pool.key, frozenset())
    out = []
    for device in piece.devices:
        if (
            plain
            and device.name not in taken
            and not (
                device.taints or device.consumes or device.shareable or device.binding_conditions
            )
        ):
            out.append(FREE)
            continue
        key = (driver, name, device.name)
        if key in whole:
            out.append(ALLOCATED)
        elif gone:
            out.append(NO_NODE)
        elif any(taint.closes for taint in taints(snapshot, piece, device)):
            out.append(TAINTED)
        elif (device.binding_conditions and not binding) or (device.consumes and not partitions):
            out.append(FEATURE_OFF)
        elif key in shared:
            out.append(SHARED if _something_left(device, used.consumed.get(key, {})) else CAPACITY)
        elif device.consumes and not fits_counters(device, left):
            out.append(COUNTERS)
        else:
            out.append(FREE)
    return tuple(out)


def _something_left(device: Device, consumed: Mapping[str, Quantity]) -> bool:
    """Whether the smallest share that can be asked for still fits every capacity."""
    for name, capacity in device.capacity.items():
        policy, least = capacity.policy, Quantity(1)
        if policy and policy.range and policy.range.min:
            least = policy.range.min
        elif policy and policy.values:
            least = min(policy.values)
        if name in consumed and consumed[name] + least > capacity.value:
            return False
    return True


def _key(pool: PoolKey, device: Device) -> DeviceKey:
    return (*pool, device.name)
