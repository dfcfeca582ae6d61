"""About how much an expression costs at worst, so that what can never be accepted is said at once.

Loops within loops make an expression dear, and so does comparing what has no known size. The API
server's own estimate (cel-go's checker/cost.go) is finer; this one counts steps, a tenth of a step
for each letter of a text that is read, and how often loops repeat them.
"""

from __future__ import annotations

from typing import Final

from devices.dra.cel.paths import ATTRIBUTES, CAPACITY
from devices.dra.cel.syntax import Call, Const, Fold, Ident, ListOf, MapOf, Node, children

#: ResourceSliceMaxAttributesAndCapacitiesPerDevice.
MOST_NAMES: Final = 32
#: DeviceAttributeMaxValueLength: of a text, and more than a list attribute can have elements.
LONGEST_VALUE: Final = 64
#: The cost of what has no bound.
ENDLESS: Final = 2**63


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
        case Call(function="_==_" | "_!=_", args=sides) if any(map(_is_type, sides)):
            return ENDLESS
    return _own(node) + sum(map(worst_cost, children(node)))


def _is_type(node: Node) -> bool:
    return isinstance(node, Call) and node.function == "type"


def _own(node: Node) -> int:
    """What a step itself costs, without what it is applied to."""
    text = -(-LONGEST_VALUE // 10)
    match node:
        case Call(function="matches" | "find", operands=[_, Const(value=str(pattern))]):
            return text * -(-len(pattern) // 4)
        case Call(function="lowerAscii" | "upperAscii" | "trim" | "contains" | "replace"):
            return text
        case Call(function="_==_" | "_!=_", args=[one, other]):
            return 1 if isinstance(one, Const) or isinstance(other, Const) else text
    return 1


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
        case Call(function="lists.range", args=[Const(value=int(amount))]):
            return max(amount, 0)
    return LONGEST_VALUE
