"""How much of a pool isolations close, counted with what is closed already."""

from __future__ import annotations

from devices.dra.claims import DeviceKey
from devices.dra.isolation import Room, room
from devices.dra.names import ISOLATED_TAINT
from devices.dra.pools import pools
from devices.dra.snapshot import Snapshot
from devices.dra.standing import taints
from devices.fleet.nodepools import selected
from devices.models import Isolation, NodePool


def room_of(row: Isolation, snapshot: Snapshot, share: float) -> Room:
    """How much of its pool would be closed with it: of its node pool, or of all that its driver
    publishes where it is in none.
    """
    node_pools = NodePool.objects.filter(driver=row.driver)
    pool = next((one for one in node_pools if row.node in selected(one.selector, snapshot)), None)
    nodes = set(selected(pool.selector, snapshot)) if pool is not None else None
    name = pool.name if pool is not None else f"driver {row.driver}"
    applied = Isolation.objects.filter(state=Isolation.State.APPLIED, driver=row.driver).exclude(
        pk=row.pk
    )
    others = list(applied)
    everything: list[DeviceKey] = []
    closed: list[DeviceKey] = []
    here: list[DeviceKey] = []
    for one in pools(snapshot).values():
        if one.driver != row.driver:
            continue
        for piece in one.slices:
            node = piece.reach.node_name
            if nodes is not None and node not in nodes:
                continue
            barred = _closed_node(snapshot, node) or any(
                other.node_taint and other.node == node for other in others
            )
            for device in piece.devices:
                key = (one.driver, one.name, device.name)
                everything.append(key)
                tainted = any(taint.closes for taint in taints(snapshot, piece, device))
                if barred or tainted or any(other.target.covers(key) for other in others):
                    closed.append(key)
                if row.target.covers(key) or (row.node_taint and node == row.node):
                    here.append(key)
    return room(name, everything, closed, here, share)


def _closed_node(snapshot: Snapshot, name: str) -> bool:
    node = snapshot.nodes.get(name)
    return node is not None and any(taint.key == ISOLATED_TAINT for taint in node.taints)
