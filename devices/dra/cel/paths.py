"""Which attributes and capacities an expression looks at, read off its tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from devices.dra.cel.syntax import Call, Const, Ident, Select, walk
from devices.dra.cel.syntax import Node as Tree

ATTRIBUTES: Final = "device.attributes"
CAPACITY: Final = "device.capacity"


@dataclass(frozen=True, slots=True)
class Paths:
    """What an expression looks at: pairs of domain and name. ``whole`` means it cannot be told."""

    attributes: frozenset[tuple[str, str]] = frozenset()
    capacity: frozenset[tuple[str, str]] = frozenset()
    driver: bool = False
    shareable: bool = False
    whole: bool = False


def paths_of(root: Tree) -> Paths:
    """The attributes and capacities that an expression names; whole where one is computed."""
    attributes: set[tuple[str, str]] = set()
    capacity: set[tuple[str, str]] = set()
    seen: set[int] = set()
    names: set[str] = set()
    for node in walk(root):
        path = constant_path(node)
        if path is not None:
            kind, domain, name = path
            (attributes if kind == ATTRIBUTES else capacity).add((domain, name))
            seen |= {id(part) for part in walk(node)}
    for node in walk(root):
        if isinstance(node, Ident) and id(node) not in seen:
            names.add(node.name)
    return Paths(
        frozenset(attributes),
        frozenset(capacity),
        driver="device.driver" in names,
        shareable="device.allowMultipleAllocations" in names,
        whole=bool(names & {"device", ATTRIBUTES, CAPACITY}),
    )


def constant_path(node: Tree) -> tuple[str, str, str] | None:
    """``device.attributes["domain"].name`` in any spelling → (variable, domain, name)."""
    inner, name = _step(node)
    if inner is None or name is None:
        return None
    variable, domain = _step(inner)
    if (
        isinstance(variable, Ident)
        and variable.name in (ATTRIBUTES, CAPACITY)
        and domain is not None
    ):
        return variable.name, domain, name
    return None


def _step(node: Tree) -> tuple[Tree | None, str | None]:
    """One step of a path: what it starts from, and the constant key."""
    match node:
        case Select():
            return node.operand, node.field
        case Call(function="_[_]" | "_?._" | "_[?_]", operands=[inner, Const(value=str(key))]):
            return inner, key
        case Call(function="@in" | "_in_", operands=[Const(value=str(key)), inner]):
            return inner, key
    return None, None
