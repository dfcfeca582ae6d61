"""Whether a node's ledger can be relied on: safe, rebuilding, unsafe, or nobody knows. Pure.

A node becomes safe again only when the slices of its pools are complete, the claims that are bound
to it are accounted for, versions went forward and its capacity holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from devices.dra.charges import Rule
from devices.dra.ledgercompare import Difference, Verdict
from devices.dra.ledgerentries import Entry, Seen
from devices.dra.ledgerlog import node_sums
from devices.dra.ledgerpools import PoolState
from devices.dra.pools import PoolKey
from devices.dra.snapshot import Snapshot


class State(StrEnum):
    """From good to bad; of several reasons the worst counts."""

    SAFE = "safe"
    REBUILDING = "rebuilding"
    UNSAFE = "unsafe"


@dataclass(frozen=True, slots=True, order=True)
class Reason:
    """Why a node is not safe: a code, and what it is about."""

    code: str
    about: str


@dataclass(frozen=True, slots=True)
class NodeState:
    """One node's state with its reasons, the worst first."""

    node: str
    state: State
    reasons: tuple[Reason, ...] = ()


#: Reasons that pass by themselves while a driver or a node comes back.
PASSING = frozenset({"LEDGER_REBUILDING", "LEDGER_MAPPING_STALE", "LEDGER_STOPPED"})


def states(
    snapshot: Snapshot,
    pools: Mapping[PoolKey, PoolState],
    standing: Mapping[str, Entry],
    seen: Seen,
    differences: Iterable[Difference],
    stale: Mapping[str, str],
    stopped: Collection[str] = (),
    only: Collection[str] | None = None,
) -> tuple[NodeState, ...]:
    """Every node of the snapshot, or ``only`` some, of which all that stands is given. ``stale``
    says, by node, why what its drivers publish may be old (its lease expired, a driver's Pod is
    not ready); ``stopped`` are nodes whose rollout of the accounting is stopped.
    """
    found: dict[str, set[Reason]] = defaultdict(set)
    for node, why in stale.items():
        found[node].add(Reason("LEDGER_MAPPING_STALE", why))
    for node in stopped:
        found[node].add(Reason("LEDGER_STOPPED", "the rollout is stopped"))
    for node, reason in _of_pools(snapshot, pools, standing, seen):
        found[node].add(reason)
    for entry in standing.values():
        if entry.amount is None or entry.code == "LEDGER_DEVICE_NOT_FOUND":
            code = entry.code or "LEDGER_UNKNOWN_SHAPE"
            found[entry.node].add(Reason(code, f"{entry.resource} of claim {entry.claim}"))
    for entry in seen.older:
        about = "/".join(entry.device or ())
        found[entry.node].add(Reason("LEDGER_OLDER_VERSION", f"{about} for Pod {entry.pod}"))
    for one in differences:
        if one.verdict is not Verdict.LATER:
            found[one.node].add(Reason(one.code, f"{one.resource} of Pod {one.pod}"))
    for node, reason in _overcommitted(standing):
        found[node].add(reason)
    return tuple(
        _judged(name, found.get(name, set()))
        for name in snapshot.nodes
        if only is None or name in only
    )


def _judged(node: str, reasons: set[Reason]) -> NodeState:
    worst = sorted(reasons, key=lambda reason: (reason.code in PASSING, reason))
    if not worst:
        return NodeState(node, State.SAFE)
    passing = all(reason.code in PASSING for reason in worst)
    return NodeState(node, State.REBUILDING if passing else State.UNSAFE, tuple(worst))


def _of_pools(
    snapshot: Snapshot,
    pools: Mapping[PoolKey, PoolState],
    standing: Mapping[str, Entry],
    seen: Seen,
) -> Iterable[tuple[str, Reason]]:
    """Pools that are not settled, at the nodes that they belong to and where they are used."""
    nodes: dict[PoolKey, set[str]] = defaultdict(set)
    for piece in snapshot.slices:
        if piece.reach.node_name and any(device.node_shares for device in piece.devices):
            nodes[piece.driver, piece.pool].add(piece.reach.node_name)
    for entry in standing.values():
        if entry.device is not None:
            nodes[entry.device[:2]].add(entry.node)
    for key, used in nodes.items():
        state = pools.get(key)
        if state is None or state.settled:
            continue
        name = "/".join(key)
        if state.refused is not None:
            reason = Reason("LEDGER_OLDER_VERSION", f"{name}: {state.refused} after "
                            f"{state.generation}")  # fmt: skip
        elif state.invalid:
            reason = Reason("LEDGER_REBUILDING", f"{name} is invalid: {state.invalid}")
        elif state.gone:
            reason = Reason("LEDGER_REBUILDING", f"{name} is not published")
        else:
            reason = Reason("LEDGER_REBUILDING", f"{name} is incomplete")
        for node in used:
            yield node, reason


def _overcommitted(standing: Mapping[str, Entry]) -> Iterable[tuple[str, Reason]]:
    offered = {
        (entry.node, entry.resource): entry.amount
        for entry in standing.values()
        if entry.rule is Rule.ALLOCATABLE
    }
    for place, charged in node_sums(standing.values()).items():
        most = offered.get(place)
        if charged is not None and most is not None and charged > most:
            node, resource = place
            yield node, Reason("LEDGER_OVERCOMMITTED", f"{resource}: {charged} of {most}")
