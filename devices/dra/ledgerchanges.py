"""Which nodes a look at the ledger has to visit: those of which anything changed since the last.

Two snapshots of one warm picture share the objects that did not change, so that identity tells what
did; snapshots that share nothing differ in everything, which is slow and right. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from devices.dra.claims import Claim
from devices.dra.holders import claims_of
from devices.dra.pods import Pod
from devices.dra.pools import PoolKey
from devices.dra.slices import Slice
from devices.dra.snapshot import Snapshot

_ClaimKey = tuple[str, str]


def changed_nodes(before: Snapshot, now: Snapshot) -> set[str] | None:
    """Nodes whose entries may differ between two snapshots; None where all of them may."""
    if before.gates != now.gates:
        return None
    found = set(_nodes(before, now))
    found |= set(_pods(before, now))
    slices = _slices(before.slices, now.slices)
    found |= {piece.reach.node_name for piece in slices if piece.reach.node_name}
    shared = {(piece.driver, piece.pool) for piece in slices if not piece.reach.node_name}
    claims = _claims(before, now)
    if claims or shared:
        found |= set(_users(now, claims, shared))
    return with_sharers(now, found)


def with_sharers(snapshot: Snapshot, nodes: Collection[str]) -> set[str]:
    """These nodes and those whose Pods use a claim together with a Pod of theirs: what one of them
    is charged may be the other's. No node is left out that another one brings in.
    """
    found = set(nodes)
    several = _several(snapshot)
    while True:
        more = set().union(*(places for places in several if places & found), found)
        if more == found:
            return found
        found = more


def _several(snapshot: Snapshot) -> list[set[str]]:
    """The nodes of each claim whose Pods are on more than one."""
    places: dict[_ClaimKey, set[str]] = {}
    for pod in _with_claims(snapshot):
        for claim in claims_of(pod, snapshot).values():
            if claim is not None and len(claim.reserved_for) != 1:
                key = (claim.meta.namespace, claim.meta.name)
                places.setdefault(key, set()).add(pod.node_name)
    return [nodes for nodes in places.values() if len(nodes) > 1]


def _nodes(before: Snapshot, now: Snapshot) -> Iterator[str]:
    yield from before.nodes.keys() ^ now.nodes.keys()
    for name, node in now.nodes.items():
        was = before.nodes.get(name)
        if was is not node and was is not None and was.allocatable != node.allocatable:
            yield name


def _pods(before: Snapshot, now: Snapshot) -> Iterator[str]:
    for one, other in ((before, now), (now, before)):
        for key, pod in one.pods.items():
            if pod.node_name and other.pods.get(key) is not pod:
                yield pod.node_name


def _slices(before: Iterable[Slice], now: Iterable[Slice]) -> list[Slice]:
    was, is_ = {id(piece): piece for piece in before}, {id(piece): piece for piece in now}
    changed = was.keys() ^ is_.keys()
    return [piece for found in (was, is_) for key, piece in found.items() if key in changed]


def _claims(before: Snapshot, now: Snapshot) -> set[_ClaimKey]:
    return {
        key
        for one, other in ((before, now), (now, before))
        for key, claim in one.claims.items()
        if other.claims.get(key) is not claim
    }


def _users(now: Snapshot, claims: set[_ClaimKey], pools: set[PoolKey]) -> Iterator[str]:
    """Nodes of Pods that use one of these claims, or a claim for a device of these pools."""
    spaces = {namespace for namespace, _ in claims}
    for pod in _with_claims(now):
        if not pools and pod.meta.namespace not in spaces:
            continue
        names = {*pod.generated.values(), *(one.claim for one in pod.claims), pod.extended_claim}
        if any((pod.meta.namespace, name) in claims for name in names if name) or (
            pools and any(_of(claim, pools) for claim in claims_of(pod, now).values())
        ):
            yield pod.node_name


def _of(claim: Claim | None, pools: set[PoolKey]) -> bool:
    if claim is None or claim.allocation is None:
        return False
    return any(result.key[:2] in pools for result in claim.allocation.results)


def _with_claims(snapshot: Snapshot) -> Iterator[Pod]:
    for pod in snapshot.pods.values():
        if pod.node_name and (pod.claims or pod.extended_claim):
            yield pod
