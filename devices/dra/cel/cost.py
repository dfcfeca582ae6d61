"""About how much an expression costs at worst, so that what can never be accepted is said at once.

Only loops make an expression dear. The API server's own estimate (cel-go's checker/cost.go) is
finer; this one counts steps and how often loops within loops repeat them.
"""

from __future__ import annotations

from typing import Final

from devices.dra.cel.paths import ATTRIBUTES, CAPACITY
from devices.dra.cel.syntax import Call, Const, Fold, Ident, ListOf, MapOf, Node, children

#: ResourceSliceMaxAttributesAndCapacitiesPerDevice.
MOST_NAMES: Final = 32
#: DeviceAttributeMaxValueLength: of a text, and more than a list attribute can have elements.
LONGEST_VALUE: Final = 64


def worst_cost(node: Node) -> int:
    """About how many steps a tree takes on the dearest device."""
    match node:
        case Const():
            return 0
        case Fold():
            repeated = worst_cost(node.condition) + worst_cost(node.step)
            once = worst_cost(node.range) + worst_cost(node.start) + worst_cost(node.result)
            return once + _size(node.range) * repeated
        case ListOf():
            return 10 + sum(map(worst_cost, node.elements))
        case MapOf():
            return 30 + sum(map(worst_cost, children(node)))
        case Call(function="_&&_" | "_||_"):
            return sum(map(worst_cost, node.args))
        case Call(function="_?_:_"):
            condition, yes, no = map(worst_cost, node.args)
            return condition + max(yes, no)
    return 1 + sum(map(worst_cost, children(node)))


def _size(node: Node) -> int:
    """How many times at most a loop over this goes round."""
    match node:
        case ListOf():
            return len(node.elements)
        case MapOf():
            return len(node.entries)
        case Ident(name=name) if name in (ATTRIBUTES, CAPACITY):
            return MOST_NAMES
        case Call(function="_[_]", args=[Ident(name=name), _]) if name in (ATTRIBUTES, CAPACITY):
            return MOST_NAMES
        case Fold():
            return _size(node.range)
    return LONGEST_VALUE
