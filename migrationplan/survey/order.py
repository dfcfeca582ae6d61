"""In which order the nodes of a pool should move: the least risk first. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from devices.dra.ownership import Owner, Ownership
from migrationplan.survey.users import By, User

#: Why a node is in no wave, by its owner.
_OUT: Final = {
    Owner.DRA: "it has moved",
    Owner.NONE: "nobody offers devices on it",
    Owner.CONFLICT: "it has two owners: a person must look first",
    Owner.UNKNOWN: "what its kubelet says cannot be read",
}
#: A canary is one node, so that a first mistake costs one.
CANARY: Final = 1


@dataclass(frozen=True, slots=True)
class Wave:
    """Nodes that should go together, and why then. ``until`` is when the last Pod that they wait
    for ends, None where that is not known (or nothing is waited for: ``pods`` is 0). ``again``:
    all of them may be started again.
    """

    name: str
    words: str
    nodes: tuple[str, ...]
    pods: int = 0
    until: datetime | None = None
    again: bool = False


def owner(found: Ownership | None) -> Owner:
    """Who gives out a node's devices; nobody, where nothing is said of it."""
    return found.owner if found is not None else Owner.NONE


def waves(
    nodes: Iterable[str], owned: Mapping[str, Ownership], users: Sequence[User]
) -> tuple[tuple[Wave, ...], tuple[tuple[str, str], ...]]:
    held: dict[str, list[User]] = defaultdict(list)
    for user in users:
        if user.node and user.by in (By.PLUGIN, By.BOTH):
            held[user.node].append(user)
    left_out = []
    stages: dict[str, list[str]] = {"retryable": [], "ending": [], "long": []}
    for name in sorted(nodes):
        found = owner(owned.get(name))
        if found is not Owner.PLUGIN:
            left_out.append((name, _OUT[found]))
            continue
        stages[_stage(held[name])].append(name)
    stages["retryable"].sort(key=lambda node: (len(held[node]), node))
    stages["ending"].sort(key=lambda node: (_last(held[node]), node))
    order = [node for stage in stages.values() for node in stage]
    canary = order[:CANARY]
    parts = [
        ("Canary", "One node, the one that costs least: what goes wrong shows here.", canary),
        ("Retryable", "Nodes that hold nothing, or only Pods that may be started again.",
         [node for node in stages["retryable"] if node not in canary]),
        ("Ending", "Nodes whose Pods end by themselves, the earliest first.",
         [node for node in stages["ending"] if node not in canary]),
        ("Long-running", "Nodes with Pods of which nobody knows when they end: ask their owners.",
         [node for node in stages["long"] if node not in canary]),
    ]  # fmt: skip
    made = tuple(_wave(name, words, part, held) for name, words, part in parts if part)
    return made, tuple(left_out)


def _wave(name: str, words: str, nodes: Sequence[str], held: Mapping[str, list[User]]) -> Wave:
    pods = [user for node in nodes for user in held.get(node, ())]
    again = all(user.retryable for user in pods)
    return Wave(name, words, tuple(nodes), len(pods), _until(pods), again)


def _stage(pods: Sequence[User]) -> str:
    if all(user.retryable for user in pods):
        return "retryable"
    firm = [user for user in pods if not user.retryable]
    return "ending" if all(user.ends is not None for user in firm) else "long"


def _until(pods: Sequence[User]) -> datetime | None:
    """When the last of them ends; None where there is none, or one has not said so."""
    ends = [user.ends for user in pods]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def _last(pods: Sequence[User]) -> datetime:
    """When the last of those ends that may not be started again; each of them has said when."""
    return max(user.ends for user in pods if user.ends is not None and not user.retryable)
