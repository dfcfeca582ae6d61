"""What else to think of before a node pool moves. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from devices.dra.claims import Claim
from devices.dra.ownership import Owner, Ownership
from devices.dra.published import node_of
from devices.dra.snapshot import Snapshot
from devices.dra.wording import many
from migrationplan.survey.order import owner
from migrationplan.survey.users import By, PoolFacts, User, named, title


def risks(
    pool: PoolFacts,
    snapshot: Snapshot,
    owned: Mapping[str, Ownership],
    users: Sequence[User],
    nodes: Sequence[str],
) -> Iterable[str]:
    if conflicts := [n for n in nodes if owner(owned.get(n)) is Owner.CONFLICT]:
        yield f"Two owners on {named(conflicts)}: nothing may move there until one is gone."
    if away := [n for n in nodes if snapshot.nodes[n].ready is not True]:
        yield f"Not ready: {named(away)}. A proof that nobody sends is waited for in vain."
    wanted = pool.devices_per_node
    if wanted is None:
        yield "Nobody recorded how many devices a node has: no step can prove that all came back."
    elif short := [
        n for n, one in owned.items() if one.owner is Owner.PLUGIN and one.plugin != wanted
    ]:
        yield f"Another number of devices than {wanted} on {named(sorted(short))}."
    if not pool.sets:
        yield "No DaemonSet is named: nobody can prove that a plugin or a driver is off."
    open_end = [
        u for u in users if u.node and u.by is By.PLUGIN and u.ends is None and not u.retryable
    ]
    if open_end:
        owners = sorted({title(user) for user in open_end})
        yield f"No end is known of {named(owners)}; their nodes wait as long as they run."
    if waiting := [user for user in users if not user.node]:
        owners = sorted({title(user) for user in waiting})
        pods = many(len(waiting), "Pod waits", "Pods wait")
        yield f"{pods} for devices now ({named(owners)}): each closed node takes some away."
    on_plugin = {n for n, one in owned.items() if one.owner is Owner.PLUGIN}
    strays = [one for one in snapshot.claims.values() if _holds(one, pool)]
    if found := sorted(str(one) for one in strays if node_of(one, snapshot) in on_plugin):
        yield f"Claims hold devices of {pool.driver} on nodes of the plugin: {named(found)}."


def _holds(claim: Claim, pool: PoolFacts) -> bool:
    results = claim.allocation.results if claim.allocation is not None else ()
    return any(one.driver == pool.driver for one in results)
