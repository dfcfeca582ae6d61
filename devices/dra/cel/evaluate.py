"""A checked tree → a function of variables that answers as cel-go does, counting its steps.

Costs follow cel-go's ``interpreter/runtimecost.go``: one for a variable, a field or an index, ten
for a list, thirty for a map, and for calls what `functions` says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from devices.dra.cel import functions
from devices.dra.cel.syntax import Call, Const, Fold, Ident, ListOf, MapOf, Node, Select
from devices.dra.cel.values import (
    NONE,
    CelError,
    CostExceeded,
    Optional,
    TypeName,
    has_key,
    lookup,
    no_overload,
    type_name,
)

LIST_COST: Final = 10
MAP_COST: Final = 30
TYPE_NAMES: Final = frozenset(
    [
        "bool",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "list",
        "map",
        "null_type",
        "type",
        "optional_type",
        "google.protobuf.Duration",
        "google.protobuf.Timestamp",
        "net.IP",
        "net.CIDR",
        "kubernetes.Quantity",
        "kubernetes.Semver",
    ]
)


class Unmodelled(Exception):
    """The expression uses something of Kubernetes' CEL that is not modelled here; it is named."""


class Scope:
    """The variables of one evaluation, and what it may still cost."""

    __slots__ = ("budget", "names")

    def __init__(self, names: Mapping[str, Any], budget: int) -> None:
        self.names = dict(names)
        self.budget = budget

    def pay(self, cost: int) -> None:
        """Raises CostExceeded when the budget is used up."""
        self.budget -= cost
        if self.budget < 0:
            raise CostExceeded("operation cancelled: actual cost limit exceeded")


Step = Callable[[Scope], Any]


def compiled(node: Node) -> Step:
    """The function of a tree. It raises CelError as cel-go answers an error.

    Raises Unmodelled at once for what is not modelled.
    """
    match node:
        case Const(value=value):
            return lambda scope: value
        case Ident(name=name):
            return _ident(name)
        case Select():
            return _select(node)
        case Call():
            return _call(node)
        case ListOf():
            return _list(node)
        case MapOf():
            return _map(node)
        case Fold():
            return _fold(node)


def _ident(name: str) -> Step:
    if name in TYPE_NAMES:
        value = TypeName(name)
        return lambda scope: value

    def read(scope: Scope) -> Any:
        scope.pay(1)
        value = scope.names[name]
        if isinstance(value, CelError):  # an accumulator that holds the error of an earlier step
            raise value
        return value

    return read


def _select(node: Select) -> Step:
    operand, field, test = compiled(node.operand), node.field, node.test

    def select(scope: Scope) -> Any:
        value = operand(scope)
        if isinstance(value, Optional):
            return _select_optional(value, field, test)
        if test:
            return has_key(value, field)
        scope.pay(1)
        return lookup(value, field)

    return select


def _select_optional(value: Optional, field: str, test: bool) -> Any:
    """A field of an optional is optional, and absent where the optional is."""
    there = value.present and has_key(value.value, field)
    if test:
        return there
    return Optional(True, lookup(value.value, field)) if there else NONE


def _call(node: Call) -> Step:
    match node.function:
        case "_&&_":
            return _logic(node, stop=False)
        case "_||_":
            return _logic(node, stop=True)
        case "_?_:_":
            return _choice(node)
        case "@not_strictly_false" | "__not_strictly_false__":
            return _not_strictly_false(node)
        case "_?._" | "_[?_]":
            return _optional_step(node)
        case "or" | "orValue" if node.target is not None:
            return _otherwise(node)
        case "@in" if isinstance(node.args[1], ListOf) and not node.args[1].elements:
            return lambda scope: False  # cel-go folds this before it looks at the left side
    function = functions.FUNCTIONS.get(node.function)
    if function is None:
        raise Unmodelled(f"the CEL function {node.function} is not modelled here")
    cost = functions.COSTS.get(node.function)
    steps = tuple(compiled(operand) for operand in node.operands)

    def call(scope: Scope) -> Any:
        values = [step(scope) for step in steps]
        scope.pay(cost(values) if cost else 1)
        try:
            return function(*values)
        except TypeError as error:
            raise no_overload(*values) from error

    return call


def _logic(node: Call, stop: bool) -> Step:
    """&& and ||: one side that decides makes up for an error on the other."""
    sides = tuple(compiled(side) for side in node.args)

    def logic(scope: Scope) -> Any:
        error: CelError | None = None
        for side in sides:
            try:
                value = side(scope)
            except CostExceeded:
                raise
            except CelError as failed:
                error = error or failed
                continue
            if value is stop:
                return stop
            if not isinstance(value, bool):
                error = error or no_overload(value)
        if error is not None:
            raise error
        return not stop

    return logic


def _choice(node: Call) -> Step:
    condition, yes, no = (compiled(part) for part in node.args)

    def choose(scope: Scope) -> Any:
        value = condition(scope)
        if not isinstance(value, bool):
            raise no_overload(value)
        return yes(scope) if value else no(scope)

    return choose


def _not_strictly_false(node: Call) -> Step:
    argument = compiled(node.args[0])

    def test(scope: Scope) -> bool:
        scope.pay(1)
        try:
            return bool(argument(scope) is not False)
        except CostExceeded:
            raise
        except CelError:
            return True

    return test


def _optional_step(node: Call) -> Step:
    """``operand.?field`` and ``operand[?key]``."""
    operand, key = (compiled(part) for part in node.operands)

    def step(scope: Scope) -> Optional:
        value, wanted = operand(scope), key(scope)
        scope.pay(1)
        if isinstance(value, Optional):
            if not value.present:
                return NONE
            value = value.value
        if isinstance(value, list | tuple):
            there = isinstance(wanted, int) and 0 <= wanted < len(value)
        else:
            there = has_key(value, wanted)
        return Optional(True, lookup(value, wanted)) if there else NONE

    return step


def _otherwise(node: Call) -> Step:
    """``x.or(y)`` and ``x.orValue(y)``, which evaluate y only where x is absent."""
    target, other = (compiled(part) for part in node.operands)
    unwrap = node.function == "orValue"

    def otherwise(scope: Scope) -> Any:
        value = target(scope)
        if not isinstance(value, Optional):
            raise no_overload(value)
        if value.present:
            return value.value if unwrap else value
        return other(scope)

    return otherwise


def _list(node: ListOf) -> Step:
    steps = tuple(
        (compiled(e), position in node.optional) for position, e in enumerate(node.elements)
    )

    def build(scope: Scope) -> list[Any]:
        scope.pay(LIST_COST)
        out = []
        for step, optional in steps:
            value = step(scope)
            if not optional:
                out.append(value)
            elif not isinstance(value, Optional):
                raise no_overload(value)
            elif value.present:
                out.append(value.value)
        return out

    return build


def _map(node: MapOf) -> Step:
    if node.message:
        raise Unmodelled(f"building a {node.message} is not modelled here")
    steps = tuple((compiled(e.key), compiled(e.value), e.optional) for e in node.entries)

    def build(scope: Scope) -> dict[Any, Any]:
        scope.pay(MAP_COST)
        out: dict[Any, Any] = {}
        for key_step, value_step, optional in steps:
            key, value = key_step(scope), value_step(scope)
            if optional and isinstance(value, Optional):
                if not value.present:
                    continue
                value = value.value
            out[key] = value  # of two equal keys the later one counts
        return out

    return build


def _fold(node: Fold) -> Step:
    over, start, condition = (compiled(n) for n in (node.range, node.start, node.condition))
    step, result = compiled(node.step), compiled(node.result)
    variable, second, accumulator = node.variable, node.second, node.accumulator

    def fold(scope: Scope) -> Any:
        items = over(scope)
        if not isinstance(items, list | tuple | Mapping):
            raise CelError(f"got '{type_name(items)}', expected iterable type")
        names = scope.names
        mine = (variable, second, accumulator) if second else (variable, accumulator)
        before = {name: names[name] for name in mine if name in names}
        names[accumulator] = _or_error(start, scope)
        try:
            for number, item in enumerate(items):
                if second:
                    mapped = isinstance(items, Mapping)
                    names[variable] = item if mapped else number
                    names[second] = items[item] if mapped else item
                else:
                    names[variable] = item
                if condition(scope) is not True:
                    break
                names[accumulator] = _or_error(step, scope)
            return result(scope)
        finally:
            for name in mine:
                names.pop(name, None)
            names.update(before)

    return fold


def _or_error(step: Step, scope: Scope) -> Any:
    """The value of a step, or its error as a value, which a later && or || may absorb."""
    try:
        return step(scope)
    except CostExceeded:
        raise
    except CelError as error:
        return error
