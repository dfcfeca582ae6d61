"""Rolling the accounting out over nodes: canaries, soak, the rest; stop, repair, resume. Pure.

Berth turns no gate on: people do, kubelet by kubelet. A rollout says which nodes come first, waits
until they have the feature and their ledgers are safe, watches them for the soak, and stops where
one of them cannot be relied on. While it is stopped, new requests for its nodes are held and what
is bound stays. It goes on only from mappings that are newer than those it stopped at.

    canary → soaking → wide → done          stopped → repaired → canary
       └─────────┴────────┴──────┴──────────────┘   (by a person, or by an unsafe node)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from devices.dra.ledgerpools import Version
from devices.dra.ledgerreport import Feature
from devices.dra.pools import PoolKey
from devices.dra.wording import lasting, many, some_of

#: The reason by which nodes of a stopped rollout are kept; it is not one against the rollout.
STOPPED_CODE: Final = "LEDGER_STOPPED"
_NAMED: Final = 4


class Phase(StrEnum):
    """Where a rollout stands."""

    CANARY = "canary"
    SOAKING = "soaking"
    WIDE = "wide"
    DONE = "done"
    STOPPED = "stopped"
    REPAIRED = "repaired"
    ENDED = "ended"


#: Which phase may follow which; the others are refused.
MOVES: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.CANARY: frozenset({Phase.SOAKING, Phase.STOPPED, Phase.ENDED}),
    Phase.SOAKING: frozenset({Phase.CANARY, Phase.WIDE, Phase.STOPPED, Phase.ENDED}),
    Phase.WIDE: frozenset({Phase.DONE, Phase.STOPPED, Phase.ENDED}),
    Phase.DONE: frozenset({Phase.STOPPED, Phase.ENDED}),
    Phase.STOPPED: frozenset({Phase.REPAIRED, Phase.ENDED}),
    Phase.REPAIRED: frozenset({Phase.STOPPED, Phase.CANARY, Phase.ENDED}),
    Phase.ENDED: frozenset(),
}
#: Phases in which new requests for the rollout's nodes are held.
HOLDS: Final = frozenset({Phase.STOPPED, Phase.REPAIRED})


@dataclass(frozen=True, slots=True)
class Rollout:
    """What is asked for, and where it stands. ``floors`` are the versions of slice pools when it
    was stopped; ``exported``: the ledger of that moment has been written out.
    """

    phase: Phase
    since: datetime
    canaries: tuple[str, ...]
    soak: timedelta
    floors: Mapping[PoolKey, Version] = field(default_factory=dict)
    exported: bool = False


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """One node now. ``code`` is the gravest reason why it is not safe, that of a stop left out."""

    feature: Feature
    safe: bool
    unsafe: bool = False
    code: str = ""

    @property
    def has(self) -> bool:
        return self.feature in (Feature.DECLARED, Feature.USED)


@dataclass(frozen=True, slots=True)
class RolloutSeen:
    """All nodes on which devices cost something, the canaries whether they do or not, and the slice
    pools whose devices do, by the version that is published now (None: nothing is).
    """

    nodes: Mapping[str, NodeSeen]
    pools: Mapping[PoolKey, Version | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decision:
    """The phase to be in, why, and what people have to do meanwhile, node by node."""

    phase: Phase
    why: str
    waits: tuple[str, ...] = ()


def decide(rollout: Rollout, seen: RolloutSeen, now: datetime) -> Decision:
    """What follows from what is seen. Never starts anew and never ends: people do that."""
    match rollout.phase:
        case Phase.CANARY:
            return _canary(rollout, seen)
        case Phase.SOAKING:
            return _soaking(rollout, seen, now)
        case Phase.WIDE | Phase.DONE:
            return _wide(rollout, seen)
        case Phase.STOPPED | Phase.REPAIRED:
            return _stopped(rollout, seen)
    return Decision(rollout.phase, "It is over.")


def held(rollout: Rollout, seen: RolloutSeen, *, wide: bool) -> frozenset[str]:
    """Nodes that new requests wait for while it is stopped: the canaries; every node with such
    devices where it had gone wide.
    """
    return frozenset(seen.nodes) if wide else frozenset(rollout.canaries)


def _canary(rollout: Rollout, seen: RolloutSeen) -> Decision:
    stop = _unsafe(rollout.canaries, seen)
    if stop is not None:
        return stop
    waits = _waits(rollout.canaries, seen)
    if waits:
        return Decision(
            Phase.CANARY, f"{many(len(waits), 'node')} of the canaries to get ready.", waits
        )
    return Decision(Phase.SOAKING, "Every canary has the feature and a safe ledger.")


def _soaking(rollout: Rollout, seen: RolloutSeen, now: datetime) -> Decision:
    stop = _unsafe(rollout.canaries, seen)
    if stop is not None:
        return stop
    without = tuple(name for name in rollout.canaries if not _node(name, seen).has)
    if without:
        return Decision(
            Phase.CANARY, f"{_names(without)} lost the feature; the soak begins anew.", without
        )
    waits = _waits(rollout.canaries, seen)
    left = rollout.since + rollout.soak - now
    if waits:
        return Decision(Phase.SOAKING, "The soak cannot end while a canary rebuilds.", waits)
    if left > timedelta(0):
        return Decision(
            Phase.SOAKING, f"Nothing differed so far; {lasting(left)} of the soak to go."
        )
    return Decision(Phase.WIDE, "The canaries soaked and nothing differed.")


def _wide(rollout: Rollout, seen: RolloutSeen) -> Decision:
    stop = _unsafe(seen.nodes, seen)
    if stop is not None:
        return stop
    waits = _waits(seen.nodes, seen)
    if waits:
        return Decision(rollout.phase, f"{many(len(waits), 'node')} to follow.", waits)
    return Decision(Phase.DONE, "Every node with such devices has the feature and a safe ledger.")


def _stopped(rollout: Rollout, seen: RolloutSeen) -> Decision:
    if not rollout.exported:
        return Decision(Phase.STOPPED, "The ledger of that moment is being written out.")
    waits = []
    for key, floor in sorted(rollout.floors.items()):
        now = seen.pools.get(key)
        name = "/".join(key)
        if now is None:
            waits.append(f"{name} is not published")
        elif now <= floor:
            waits.append(f"{name} still publishes {now}, which it was stopped at")
    waits += [
        f"{name}: {node.code or 'not safe'}"
        for name, node in sorted(seen.nodes.items())
        if not node.safe
    ]
    if waits:
        why = "Repair what drivers publish, and publish it anew; bound Pods keep what they have."
        return Decision(Phase.STOPPED, why, tuple(waits))
    return Decision(
        Phase.REPAIRED, "Every mapping is newer than the stop, and every ledger is safe: resume it."
    )


def _unsafe(names: Collection[str], seen: RolloutSeen) -> Decision | None:
    bad = [name for name in sorted(names) if _node(name, seen).unsafe]
    if not bad:
        return None
    code = _node(bad[0], seen).code
    return Decision(
        Phase.STOPPED, f"The ledger of {_names(bad)} cannot be relied on ({code}).", tuple(bad)
    )


def _waits(names: Collection[str], seen: RolloutSeen) -> tuple[str, ...]:
    """Nodes that are not there yet, with what each waits for."""
    found = []
    for name in sorted(names):
        node = _node(name, seen)
        if not node.has:
            what = "is not known to have" if node.feature is Feature.UNKNOWN else "has not"
            found.append(f"{name} {what} the feature")
        elif not node.safe:
            found.append(f"{name}: {node.code or 'its ledger is not known'}")
    return tuple(found)


_NOBODY: Final = NodeSeen(Feature.UNKNOWN, safe=False)


def _node(name: str, seen: RolloutSeen) -> NodeSeen:
    return seen.nodes.get(name, _NOBODY)


def _names(names: Collection[str]) -> str:
    return some_of(sorted(names), _NAMED)
