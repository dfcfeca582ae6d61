"""What cel-go refuses beyond types: its validators, and what it folds while it makes a program.

Sources: cel-go's ``cel/validator.go``, ``ext/formatting.go``, ``interpreter/decorators.go``, and
``validateOutputType`` of ``k8s.io/dynamic-resource-allocation/cel``.
"""

from __future__ import annotations

from typing import Any, Final

from devices.dra.cel import functions
from devices.dra.cel.evaluate import TYPE_NAMES
from devices.dra.cel.patterns import check_pattern, pattern
from devices.dra.cel.printing import clauses
from devices.dra.cel.syntax import (
    ANY,
    Call,
    Checked,
    Const,
    Fold,
    Ident,
    ListOf,
    MapOf,
    Node,
    Select,
    children,
    walk,
)
from devices.dra.cel.values import CelError

_FIELDS: Final = frozenset({"driver", "attributes", "capacity", "allowMultipleAllocations"})
_OPEN: Final = frozenset({"dyn", ANY})
#: Conversions that cel-go carries out at once where what they convert is constant.
_CONVERSIONS: Final = frozenset(
    {"bytes", "double", "duration", "int", "string", "timestamp", "uint", "bool"}
)
_PRINTABLE: Final = frozenset(
    ["string", "bytes", "bool", "int", "uint", "double", "list", "map", "null", "type"]
) | {"duration", "timestamp"}
#: What each clause of a format takes.
_TAKES: Final = {
    "s": _PRINTABLE,
    "d": frozenset({"int", "uint"}),
    "f": frozenset({"double", "string"}),
    "e": frozenset({"double", "string"}),
    "b": frozenset({"int", "uint", "bool"}),
    "o": frozenset({"int", "uint"}),
    "x": frozenset({"int", "uint", "string", "bytes"}),
    "X": frozenset({"int", "uint", "string", "bytes"}),
}
_NOT_CONSTANT: Final = object()


def check(checked: Checked, dynamic: bool, any_result: bool) -> None:
    """Raises CelError for what does not compile although its types are right. ``dynamic`` is
    whether attributes may be lists, ``any_result`` whether the result may be other than bool.
    """
    result = checked.types.get(checked.root.id, "dyn")
    if not any_result and result not in ("bool", "dyn" if dynamic else ANY):
        raise CelError(f"must evaluate to bool or the unknown type, not {result}")
    parents = {id(child): node for node in walk(checked.root) for child in children(node)}
    mixed = {id(arg) for node in walk(checked.root) for arg in _format_values(node)}
    for node in walk(checked.root):
        match node:
            case Ident(name="device"):
                _device(node, parents.get(id(node)))
            case Ident() if checked.types.get(node.id) == "type" and node.name not in TYPE_NAMES:
                raise CelError(f"reference to undefined type: {node.name}")
            case Select(operand=Ident(name="device")) if node.field not in _FIELDS:
                raise CelError(f"undefined field '{node.field}'")
            case ListOf() if id(node) not in mixed:
                _one_type(checked, node)
            case Call():
                _call(checked, node)


def _format_values(node: Node) -> tuple[Node, ...]:
    """The list that a format is filled from, the only one whose elements may be of many types."""
    return node.args if isinstance(node, Call) and node.function == "format" else ()


def _device(node: Ident, parent: Node | None) -> None:
    """``device`` alone can be bound to a name; it is no map that could be indexed or listed."""
    bound = isinstance(parent, Fold) and parent.start is node
    if not bound and not isinstance(parent, Select):
        raise CelError("device is an object: only its fields can be used")


def _one_type(checked: Checked, node: ListOf) -> None:
    kinds = {_type(checked, element) for element in node.elements} - _OPEN
    if len(kinds) > 1:
        raise CelError(f"expected elements of one type, found {', '.join(sorted(kinds))}")


def _call(checked: Checked, node: Call) -> None:
    match node:
        case Call(function="_[_]", args=[_, ListOf() | MapOf() | Const(value=None)]):
            raise CelError("invalid qualifier type: only names and numbers are keys")
        case Call(function="_[_]", args=[_, Ident(name=name)]) if name in TYPE_NAMES:
            raise CelError("invalid qualifier type: a type is no key")
        case Call(function="_[_]", args=[_, Call(function="type")]):
            raise CelError("invalid qualifier type: a type is no key")
        case Call(function="matches", operands=[_, Const(value=str(text))]):
            check_pattern(text)
        case Call(function="find" | "findAll", operands=[_, Const(value=str(text)), *_]):
            pattern(text)
        case Call(function="format", target=Const(value=str(text)), args=[ListOf(elements=given)]):
            _format(checked, text, given)
        case Call(function="optional.unwrap" | "unwrapOpt", operands=[ListOf(elements=given)]):
            if any(_type(checked, each) not in {"optional_type", *_OPEN} for each in given):
                raise CelError(f"found no matching overload for '{node.function}'")
        case Call(function="flatten", operands=[of]):
            if checked.elements.get(of.id, "dyn") not in {"list", *_OPEN}:
                raise CelError("found no matching overload for 'flatten'")
    _constant(node)


def _constant(node: Node) -> Any:
    """The value of a constant or of a conversion of one; raises CelError where that fails."""
    if isinstance(node, Const):
        return node.value
    if isinstance(node, Call) and node.function in _CONVERSIONS and len(node.operands) == 1:
        value = _constant(node.operands[0])
        return value if value is _NOT_CONSTANT else functions.FUNCTIONS[node.function](value)
    return _NOT_CONSTANT


def _format(checked: Checked, text: str, given: tuple[Node, ...]) -> None:
    wanted = clauses(text)
    if len(wanted) > len(given):
        raise CelError(f"index {len(given)} out of range")
    for letter, element in zip(wanted, given, strict=False):
        kind = _type(checked, element)
        if letter not in _TAKES or kind not in {*_TAKES[letter], "dyn"}:
            raise CelError(f"error during formatting: %{letter} does not take {kind}")
    if len(given) > len(wanted):
        raise CelError(f"too many arguments supplied to string.format, {len(wanted)} are used")


def _type(checked: Checked, node: Node) -> str:
    return checked.types.get(node.id, "dyn")
