"""Which nodes go in which wave, and in which order: retryable work first, long-running last."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from devices.dra.conversion.driver import driver_claims
from devices.dra.conversion.place import Place
from devices.dra.ownership import Owner
from devices.dra.podends import expected_end, retryable
from devices.dra.pods import Pod
from devices.dra.snapshot import Snapshot
from devices.fleet.nodepools import place_named, selected
from devices.fleet.ownershipbook import as_of
from devices.models import NodePool
from migrationplan.phases import Holder
from migrationplan.plans.wishes import WaveWish
from migrationplan.steps import Direction

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that a wave may take, and who holds its devices now."""

    pool: NodePool
    node: str
    uid: str
    holders: tuple[Holder, ...] = ()

    @property
    def rank(self) -> tuple[bool, datetime, int, str]:
        """Retryable work first, then what ends soonest; unknown ends are last."""
        ends = max((one.ends or LATEST for one in self.holders), default=EARLIEST)
        stays = any(not one.retryable for one in self.holders)
        return (stays, ends, len(self.holders), self.node)


def source_of(direction: Direction) -> Owner:
    """The path that nodes leave."""
    return Owner.PLUGIN if direction is Direction.TO_DRA else Owner.DRA


def candidates(
    pools: Sequence[NodePool], direction: Direction, snapshot: Snapshot
) -> tuple[list[Candidate], int]:
    """Nodes of these pools whose devices belong to the path that they are to leave, ordered; and
    how many others there are. One query.
    """
    source = source_of(direction).value
    names = {pool.slug: selected(pool.selector, snapshot) for pool in pools}
    everyone = {name for some in names.values() for name in some}
    owners = {
        (node, type_): owner
        for node, type_, owner in as_of()
        .filter(node__in=everyone)
        .values_list("node", "type", "owner")
    }
    found, others = [], 0
    for pool in pools:
        by_node = plugin_pods(pool, snapshot) if direction is Direction.TO_DRA else {}
        for name in names[pool.slug]:
            lines = {owners.get((name, pool.resource)), owners.get((name, pool.driver))}
            uid = snapshot.nodes[name].uid
            if lines - {None, Owner.NONE.value} != {source} or not uid:
                others += 1
                continue
            pods: Sequence[Pod] = by_node.get(name, ())
            if direction is Direction.TO_PLUGIN:
                pods = claim_pods(place_named(pool, name, uid), snapshot)
            found.append(Candidate(pool, name, uid, tuple(holder_of(pod) for pod in pods)))
    return sorted(found, key=lambda one: one.rank), others


def shared_out(
    wishes: Sequence[WaveWish], nodes: Sequence[Candidate]
) -> list[tuple[WaveWish, list[Candidate]]]:
    """Each wave with its nodes: named ones, or its share of each pool rounded up, of what no wave
    before took. Ten nodes and 10 %, 50 %, 100 %: 1, 5 and 4.
    """
    left = list(nodes)
    sizes: dict[str, int] = defaultdict(int)
    for one in nodes:
        sizes[one.pool.slug] += 1
    named = {name for wish in wishes for name in wish.nodes}
    shares = []
    for wish in wishes:
        if wish.nodes:
            taken = [one for one in left if one.node in wish.nodes]
        else:
            taken = []
            rest = {
                slug: math.ceil(size * (wish.percent or 0) / 100) for slug, size in sizes.items()
            }
            for one in left:
                if one.node not in named and rest[one.pool.slug] > 0:
                    rest[one.pool.slug] -= 1
                    taken.append(one)
        chosen = set(map(id, taken))
        left = [one for one in left if id(one) not in chosen]
        shares.append((wish, taken))
    return shares


def plugin_pods(pool: NodePool, snapshot: Snapshot) -> Mapping[str, list[Pod]]:
    """By node, the Pods that hold devices of the pool's plugin; one look at each Pod."""
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in snapshot.pods.values():
        if pod.finished or not pod.node_name:
            continue
        if any(
            pool.resource in container.limits
            and container.limits[pool.resource].nanos > 0
            and (container.name, pool.resource) not in pod.extended_requests
            for container in pod.containers
        ):
            found[pod.node_name].append(pod)
    return found


def claim_pods(place: Place, snapshot: Snapshot) -> list[Pod]:
    """The Pods that hold devices of the driver on one node."""
    here, _ = driver_claims(place, snapshot)
    wanted = {consumer.uid for claim in here for consumer in claim.reserved_for}
    return [pod for pod in snapshot.pods.values() if pod.meta.uid in wanted]


def holder_of(pod: Pod) -> Holder:
    """A Pod in the words of a wave: by its Job where it has one."""
    owner = next((one for one in pod.meta.owners if one.controller), None)
    words = f"{owner.kind.lower()} {owner.name}" if owner else f"Pod {pod.meta.name}"
    return Holder(str(pod), words, retryable(pod), expected_end(pod))
