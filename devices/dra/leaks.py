"""Devices that are held and should not be: claims nobody uses, cannot end, or hold twice.

A finding is what the objects show now; how long it must last before it is believed stands with its
code (see `sightings`). Nothing here removes anything, and whatever was not read is not called gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from devices.dra.claims import Claim, DeviceKey
from devices.dra.codes import Code, code
from devices.dra.holders import Hold, Holder, Origin, Presence, hold, holders, origin, owner_pod
from devices.dra.pools import pools
from devices.dra.progress import allocated_at
from devices.dra.published import node_of, published
from devices.dra.snapshot import Snapshot
from devices.dra.usage import Usage, usage_of

#: Drivers that stop publishing a device while a Pod has it (google/dranet#97).
HIDES_DEVICES_IN_USE: Final = frozenset({"dra.net"})


@dataclass(frozen=True, slots=True)
class Leak:
    """One finding: what is wrong, with which claims, which devices they hold, and the proof.

    ``since`` is a time of the cluster's own where it has one; ``node`` is empty where the devices
    belong to none.
    """

    code: Code
    claims: tuple[str, ...]
    devices: tuple[DeviceKey, ...] = ()
    proof: tuple[str, ...] = ()
    node: str = ""
    since: datetime | None = None

    @property
    def key(self) -> str:
        """The same for the same finding, whenever it is made."""
        held = ",".join("/".join(device) for device in self.devices)
        return f"{self.code}:{','.join(self.claims)}:{held}"


def leaks(snapshot: Snapshot, *, hides: frozenset[str] = HIDES_DEVICES_IN_USE) -> tuple[Leak, ...]:
    """Every finding, by claim. ``hides`` are drivers that do not publish what is in use."""
    found: list[Leak] = []
    for claim in snapshot.claims.values():
        if origin(claim, snapshot) is Origin.PRETENDED:
            found.append(_leak("CLAIM_PRETENDS_EXTENDED", claim, snapshot, _owners(claim)))
        if claim.allocation is not None and claim.allocation.results:
            held_by = holders(claim, snapshot)
            found += _held_for_nobody(claim, held_by, snapshot)
            found += _vanished(claim, snapshot, hides)
    return (*found, *_doubled(snapshot))


def _held_for_nobody(claim: Claim, held_by: Sequence[Holder], snapshot: Snapshot) -> Iterable[Leak]:
    standing = hold(claim, tuple(held_by))
    pods_read = bool(snapshot.pods)
    absent = [h for h in held_by if h.presence.absent]
    if standing is Hold.DELETING:
        idle = all(h.presence.absent or h.presence is Presence.ENDED for h in held_by)
        if claim.meta.finalizers and idle and (pods_read or not held_by):
            yield _leak(
                "LEAK_FINALIZER", claim, snapshot, _proofs(held_by), since=claim.meta.deleted
            )
    elif standing is Hold.ALLOCATED:
        yield _leak(
            "LEAK_UNRESERVED", claim, snapshot, ("reservedFor is empty",), allocated_at(claim)
        )
    elif pods_read and absent:
        whole = len(absent) == len(held_by)
        devices = None if whole else ()  # the others still use them
        yield _leak("LEAK_RESERVED_BY_GONE_POD", claim, snapshot, _proofs(absent), None, devices)
    elif held_by and all(h.presence is Presence.ENDED for h in held_by):
        yield _leak("LEAK_RESERVED_BY_ENDED_POD", claim, snapshot, _proofs(held_by))
    generated = origin(claim, snapshot) in (Origin.TEMPLATE, Origin.EXTENDED)
    if generated and pods_read and owner_pod(claim, snapshot) is None:
        yield _leak("LEAK_GENERATED_CLAIM", claim, snapshot, _owners(claim))


def _vanished(claim: Claim, snapshot: Snapshot, hides: frozenset[str]) -> Iterable[Leak]:
    """Allocated devices that no complete pool of their driver publishes."""
    results = claim.allocation.results if claim.allocation else ()
    missing = [r for r in results if not r.admin and published(snapshot, r.key) is None]
    if not missing or not (snapshot.slices or snapshot.nodes):
        return
    node = node_of(claim, snapshot)
    if node and snapshot.nodes and node not in snapshot.nodes:
        keys = tuple(result.key for result in missing)
        yield _leak("LEAK_ORPHANED", claim, snapshot, (f"no node is called {node}",), None, keys)
        return
    for driver in sorted({result.driver for result in missing}):
        keys = tuple(result.key for result in missing if result.driver == driver)
        found = [pools(snapshot).get((driver, pool)) for _, pool, _ in keys]
        if any(pool is not None and pool.incomplete for pool in found):
            continue  # the device may stand in the slice that is still missing
        if driver in hides and all(pool is not None for pool in found):
            name, proof = "INFO_DEVICE_NOT_PUBLISHED", f"{driver} hides devices in use"
        elif all(pool is None for pool in found):
            name, proof = "DRIVER_NOT_PUBLISHING", f"{driver} publishes no such pool"
        else:
            name, proof = "LEAK_DEVICE_VANISHED", "not in the newest generation of its pool"
        yield _leak(name, claim, snapshot, (proof,), None, keys)


def _doubled(snapshot: Snapshot) -> Iterable[Leak]:
    """Devices that are held as a whole and by somebody else too, or in more shares than fit."""
    used = _given(snapshot)
    for key in sorted(used.devices()):
        whole, shared = used.whole.get(key, ()), used.shared.get(key, ())
        proof: list[str] = []
        if len(whole) > 1 or (whole and shared):
            proof.append(f"held by {len(whole) + len(shared)} claims that may not share it")
        shares = Counter(_shares(shared, key))
        proof += (f"share {share} is in {n} claims" for share, n in shares.items() if n > 1)
        proof += _overdrawn(snapshot, key)
        if proof:
            claims = tuple(sorted({str(claim) for claim in (*whole, *shared)}))
            node = next((n for c in (*whole, *shared) if (n := node_of(c, snapshot))), "")
            yield Leak(code("LEAK_DOUBLE_ALLOCATION"), claims, (key,), tuple(proof), node)


def _given(snapshot: Snapshot) -> Usage:
    """What is given out, shares as shares, whatever the cluster's gates are now."""
    return snapshot.once("usage with shares", lambda s: usage_of(s.claims.values(), shares=True))


def _overdrawn(snapshot: Snapshot, key: DeviceKey) -> Iterable[str]:
    consumed = _given(snapshot).consumed.get(key)
    found = published(snapshot, key) if consumed else None
    if found is None or consumed is None:
        return
    for name, amount in consumed.items():
        capacity = found.device.capacity.get(name)
        if capacity is not None and amount > capacity.value:
            yield f"{name}: {amount} given out of {capacity.value}"


def _shares(claims: Iterable[Claim], key: DeviceKey) -> Iterable[str]:
    for claim in {str(claim): claim for claim in claims}.values():
        for result in claim.allocation.results if claim.allocation else ():
            if result.key == key and result.share_id:
                yield result.share_id


def _leak(
    name: str,
    claim: Claim,
    snapshot: Snapshot,
    proof: Sequence[str],
    since: datetime | None = None,
    devices: tuple[DeviceKey, ...] | None = None,
) -> Leak:
    """A finding about one claim; it holds all its devices where none are named."""
    results = claim.allocation.results if claim.allocation else ()
    held = tuple(result.key for result in results if not result.admin)
    return Leak(
        code(name),
        (str(claim),),
        held if devices is None else devices,
        tuple(proof),
        node_of(claim, snapshot),
        since,
    )


def _proofs(held_by: Iterable[Holder]) -> tuple[str, ...]:
    return tuple(
        f"{h.consumer.resource}/{h.consumer.name} ({h.consumer.uid}): {h.presence}" for h in held_by
    )


def _owners(claim: Claim) -> tuple[str, ...]:
    return tuple(f"{owner.kind}/{owner.name} ({owner.uid}) owns it" for owner in claim.meta.owners)
