"""Nodes as devices see them: names, labels, what they can hold, and selectors that choose them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from devices.dra.quantity import Quantity
from devices.dra.reading import Raw, Unreadable, mapping, quantities, sequence, text, texts

_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"})


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on a label or field of a node (core/v1 NodeSelectorRequirement)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether labels satisfy it; Gt and Lt compare whole numbers, as Kubernetes does."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return _compares(value, self.operator, self.values)
        return False

    def __str__(self) -> str:
        match self.operator:
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "In" if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
        return f"{self.key} {self.operator} ({', '.join(self.values)})"


@dataclass(frozen=True, slots=True)
class Term:
    """Conditions that must all hold; a term without any condition matches no node."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, node: Node) -> bool:
        """Whether the node satisfies every condition (only metadata.name is a field)."""
        if not self.labels and not self.fields:
            return False
        fields = {"metadata.name": node.name}
        return all(r.holds(node.labels) for r in self.labels) and all(
            r.holds(fields) for r in self.fields
        )


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must match (core/v1 NodeSelector)."""

    terms: tuple[Term, ...]

    def matches(self, node: Node) -> bool:
        """Whether some term matches the node."""
        return any(term.matches(node) for term in self.terms)

    @property
    def only_node(self) -> str | None:
        """The one node name it allows, where it is written as Kubernetes pins allocations."""
        if len(self.terms) == 1 and not self.terms[0].labels and len(self.terms[0].fields) == 1:
            pin = self.terms[0].fields[0]
            if pin.key == "metadata.name" and pin.operator == "In" and len(pin.values) == 1:
                return pin.values[0]
        return None

    def __str__(self) -> str:
        return " or ".join(
            " and ".join(str(r) for r in (*term.labels, *term.fields)) or "nothing"
            for term in self.terms
        )


@dataclass(frozen=True, slots=True)
class NodeTaint:
    """A taint on a node."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        return f"{self.key}{'=' + self.value if self.value else ''}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Node:
    """One node; ``declared_features`` is None where the node's status has no such list."""

    name: str
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[NodeTaint, ...] = ()
    unschedulable: bool = False
    allocatable: Mapping[str, Quantity] = field(default_factory=dict)
    declared_features: frozenset[str] | None = None
    ready: bool | None = None
    raw: Raw = field(default_factory=dict, compare=False, repr=False)


def read_node(raw: Raw) -> Node:
    """A core/v1 Node; raises Unreadable."""
    meta, spec, status = (mapping(raw.get(part), part) for part in ("metadata", "spec", "status"))
    features = status.get("declaredFeatures")
    ready = [
        c
        for c in sequence(status.get("conditions"), "status.conditions")
        if c.get("type") == "Ready"
    ]
    return Node(
        name=text(meta.get("name"), "metadata.name"),
        uid=meta.get("uid") or "",
        labels=dict(mapping(meta.get("labels"), "metadata.labels")),
        taints=tuple(
            NodeTaint(t.get("key") or "", t.get("value") or "", t.get("effect") or "")
            for t in sequence(spec.get("taints"), "spec.taints")
        ),
        unschedulable=spec.get("unschedulable") is True,
        allocatable=quantities(status.get("allocatable"), "status.allocatable"),
        declared_features=None
        if features is None
        else frozenset(texts(features, "status.declaredFeatures")),
        ready=ready[0].get("status") == "True" if ready else None,
        raw=raw,
    )


def read_selector(raw: object, path: str) -> NodeSelector | None:
    """A NodeSelector, or None for null; raises Unreadable for an unknown operator."""
    if raw is None:
        return None
    terms = sequence(mapping(raw, path).get("nodeSelectorTerms"), f"{path}.nodeSelectorTerms")
    return NodeSelector(tuple(read_term(term, f"{path}.nodeSelectorTerms") for term in terms))


def read_term(raw: object, path: str) -> Term:
    """One NodeSelectorTerm."""
    term = mapping(raw, path)
    return Term(
        labels=_requirements(term.get("matchExpressions"), f"{path}.matchExpressions"),
        fields=_requirements(term.get("matchFields"), f"{path}.matchFields"),
    )


def _requirements(raw: object, path: str) -> tuple[Requirement, ...]:
    out = []
    for item in sequence(raw, path):
        operator = item.get("operator")
        if operator not in _OPERATORS:
            raise Unreadable(f"{path}: {operator!r} is no operator of a node selector")
        out.append(Requirement(item.get("key") or "", operator, texts(item.get("values"), path)))
    return tuple(out)


def _compares(value: str | None, operator: str, values: tuple[str, ...]) -> bool:
    try:
        found, wanted = int(value or ""), int(values[0]) if len(values) == 1 else None
    except ValueError:
        return False
    if wanted is None:
        return False
    return found > wanted if operator == "Gt" else found < wanted
