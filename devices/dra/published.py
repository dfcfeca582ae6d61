"""Finding a published device by its identity, and the node that an allocation is bound to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from devices.dra.claims import Claim, DeviceKey
from devices.dra.pools import PoolKey, pools
from devices.dra.slices import Device, Slice
from devices.dra.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Published:
    """A device as it stands in its slice."""

    piece: Slice
    device: Device

    @property
    def node_name(self) -> str:
        """The one node it belongs to; empty where it belongs to several or to none."""
        reach = self.device.reach if self.piece.reach.per_device else self.piece.reach
        return reach.node_name


def published(snapshot: Snapshot, key: DeviceKey) -> Published | None:
    """The device of that driver, pool *and* name in the pool's newest generation."""
    driver, pool, name = key
    return _in_pool(snapshot, (driver, pool)).get(name)


def node_of(claim: Claim, snapshot: Snapshot) -> str:
    """The node that an allocation is bound to: the one it is pinned to, else the node that its
    devices belong to; empty where it can be used from several nodes, or where nobody can say.
    """
    if claim.allocation is None:
        return ""
    selector = claim.allocation.selector
    if selector is not None and selector.only_node is not None:
        return selector.only_node
    found = (published(snapshot, result.key) for result in claim.allocation.results)
    names = {device.node_name for device in found if device is not None}
    return names.pop() if len(names) == 1 else ""


def _in_pool(snapshot: Snapshot, key: PoolKey) -> Mapping[str, Published]:
    def compute(s: Snapshot) -> Mapping[str, Published]:
        pool = pools(s).get(key)
        pieces = pool.slices if pool is not None else ()
        return {
            device.name: Published(piece, device) for piece in pieces for device in piece.devices
        }

    return snapshot.once(("published", key), compute)
