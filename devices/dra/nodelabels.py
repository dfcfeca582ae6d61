"""Labels that would let a node reach devices which are chosen by node labels, and what then comes.

Slices of devices that sit outside any one node (a fabric, a network) name their nodes by a
selector. Labels are the administrators' to set: nothing here is a tenant's own step.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from devices.dra.nodes import Node, Requirement, Term
from devices.dra.snapshot import Snapshot

#: How many pairs of a node and a set of labels are handed out.
MOST: Final = 24
#: Derived values that no node has a part in, so that they stay true after a relabelling.
_KEPT: Final = frozenset({"outcomes", "answers", "closed", "row", "attribute"})

#: By label the value that it gets, or None where it is taken away.
Labels = tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class Relabelling:
    """Labels that a node would need so that some slice or device chooses it."""

    node: str
    labels: Labels

    @property
    def text(self) -> str:
        """The change in words."""
        parts = [
            f"without label {key}" if value is None else f"with label {key}={value}"
            for key, value in self.labels
        ]
        return f"{' and '.join(parts)} on node {self.node}"


def relabellings(snapshot: Snapshot, nodes: Iterator[str]) -> Iterator[Relabelling]:
    """For each of these nodes, every set of labels that one term of a selector asks for beyond what
    the node has; the smallest sets first.
    """
    found = {
        Relabelling(node.name, labels)
        for node in (snapshot.nodes[name] for name in nodes if name in snapshot.nodes)
        for term in _terms(snapshot)
        if (labels := _missing(term, node))
    }
    ordered = sorted(found, key=lambda each: (len(each.labels), each.node, str(each.labels)))
    yield from ordered[:MOST]


def relabelled(snapshot: Snapshot, node: str, labels: Labels) -> Snapshot:
    """The same cluster with other labels on one node."""
    changed = _with(snapshot.nodes[node], labels)
    memo: dict[Hashable, Any] = {
        key: value
        for key, value in snapshot.memo.items()
        if isinstance(key, tuple) and key and key[0] in _KEPT
    }
    return replace(snapshot, nodes={**snapshot.nodes, node: changed}, memo=memo)


def _terms(snapshot: Snapshot) -> tuple[Term, ...]:
    """Every term by which slices and devices choose nodes, each once."""
    return snapshot.once(
        "node terms",
        lambda s: tuple(
            dict.fromkeys(
                term
                for piece in s.slices
                for reach in (piece.reach, *(d.reach for d in piece.devices if d.reach.selector))
                if reach.selector is not None
                for term in reach.selector.terms
            )
        ),
    )


def _missing(term: Term, node: Node) -> Labels:
    """What a node lacks of a term; empty where nothing, or where labels cannot help."""
    labels = [
        (each.key, _value(each))
        for each in sorted(term.labels, key=lambda each: each.key)
        if not each.holds(node.labels)
    ]
    found = tuple(dict(labels).items())
    return found if found and term.matches(_with(node, found)) else ()


def _value(wanted: Requirement) -> str | None:
    match wanted.operator:
        case "In":
            return wanted.values[0] if wanted.values else None
        case "Exists":
            return "true"
        case "Gt" | "Lt" if len(wanted.values) == 1 and wanted.values[0].lstrip("-").isdecimal():
            return str(int(wanted.values[0]) + (1 if wanted.operator == "Gt" else -1))
    return None


def _with(node: Node, labels: Labels) -> Node:
    changed: Mapping[str, str | None] = {**node.labels, **dict(labels)}
    return replace(node, labels={k: v for k, v in changed.items() if v is not None})
