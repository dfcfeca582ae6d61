"""What would be taken if some claims were gone: the question behind "wait for" and "make room"."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar

from devices.dra.claims import Claim, DeviceKey
from devices.dra.snapshot import Snapshot
from devices.dra.usage import Usage, usage, usage_of

Value = TypeVar("Value")


def usage_without(snapshot: Snapshot, gone: Collection[str]) -> Usage:
    """The snapshot's usage without the claims of these names (``namespace/name``).

    Only the devices that they hold are looked at again, whatever the size of the cluster.
    """
    used = usage(snapshot)
    touched: set[DeviceKey] = set()
    for name in gone:
        claim = snapshot.claims.get(claim_key(name))
        if claim is not None and claim.allocation is not None:
            touched.update(result.key for result in claim.allocation.results)
    stay: dict[str, Claim] = {}
    for key in touched:
        for claim in (
            *used.whole.get(key, ()),
            *used.shared.get(key, ()),
            *used.admin.get(key, ()),
        ):
            if str(claim) not in gone:
                stay[str(claim)] = claim
    again = usage_of(stay.values(), "DRAConsumableCapacity" in snapshot.gates)
    return Usage(
        whole=_replaced(used.whole, again.whole, touched),
        shared=_replaced(used.shared, again.shared, touched),
        consumed=_replaced(used.consumed, again.consumed, touched),
        admin=_replaced(used.admin, again.admin, touched),
    )


def released(snapshot: Snapshot, gone: Collection[str]) -> Snapshot:
    """The same cluster without these claims."""
    left = {key: claim for key, claim in snapshot.claims.items() if str(claim) not in gone}
    return Snapshot(
        slices=snapshot.slices,
        claims=left,
        templates=snapshot.templates,
        classes=snapshot.classes,
        rules=snapshot.rules,
        nodes=snapshot.nodes,
        pods=snapshot.pods,
        gates=snapshot.gates,
        taken=snapshot.taken,
        unknown=snapshot.unknown,
        unread=snapshot.unread,
    )


def claim_key(name: str) -> tuple[str, str]:
    """Namespace and name of a claim out of ``namespace/name``."""
    namespace, _, own = name.partition("/")
    return namespace, own


def _replaced(
    before: Mapping[DeviceKey, Value], again: Mapping[DeviceKey, Value], touched: set[DeviceKey]
) -> dict[DeviceKey, Value]:
    found = dict(before)
    for key in touched:
        found.pop(key, None)
        if key in again:
            found[key] = again[key]
    return found
