"""Selectors in plain words: ``memory at least 40 GiB and driver gpu.nvidia.com``.

Says only what it is sure of: a condition that has no plain form is answered as None, and whoever
shows it shows the expression itself. Decides nothing about devices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from devices.dra.cel.evaluate import Unmodelled
from devices.dra.cel.functions import FUNCTIONS
from devices.dra.cel.paths import CAPACITY, constant_path
from devices.dra.cel.syntax import Call, Const, Fold, Ident, ListOf, Select
from devices.dra.cel.syntax import Node as Tree
from devices.dra.cel.values import CelError
from devices.dra.quantity import QuantityError, parse
from devices.dra.selector import SelectorError, compile_selector

#: Comparisons: of plain values, of amounts and of versions.
_PLAIN: Final = {
    "_==_": "is",
    "_!=_": "is not",
    "_<_": "below",
    "_<=_": "at most",
    "_>_": "above",
    "_>=_": "at least",
}
_MIRRORED: Final = {"_<_": "_>_", "_<=_": "_>=_", "_>_": "_<_", "_>=_": "_<=_"}
_OPPOSITE: Final = {
    "_==_": "_!=_",
    "_!=_": "_==_",
    "_<_": "_>=_",
    "_>=_": "_<_",
    "_>_": "_<=_",
    "_<=_": "_>_",
}
_AMOUNTS: Final = {
    **_PLAIN,
    "_==_": "exactly",
    "_!=_": "not exactly",
    "_<_": "less than",
    "_>_": "more than",
}
_VERSIONS: Final = {
    "_==_": "version",
    "_!=_": "not version",
    "_<_": "older than",
    "_<=_": "at most version",
    "_>_": "newer than",
    "_>=_": "at least version",
}
_TEXTS: Final = {
    "startsWith": ("starts with", "start with"),
    "endsWith": ("ends with", "end with"),
    "contains": ("contains", "contain"),
    "matches": ("matches", "match"),
}
_ORDERS: Final = {"isLessThan": "_<_", "isGreaterThan": "_>_"}

#: What names stand for inside cel.bind.
_Names = Mapping[str, Tree]


def restate(expression: str) -> str | None:
    """The whole selector in words, or None where some part of it has no plain form."""
    try:
        tree = compile_selector(expression).tree
    except (SelectorError, Unmodelled):
        return None
    return _words(tree, {}, False)


def restated(expressions: tuple[str | None, ...]) -> tuple[str, ...]:
    """Each selector in words where that is possible, else the expression as it is written."""
    return tuple(
        "an unknown kind of selector" if text is None else restate(text) or text
        for text in expressions
    )


def _words(node: Tree, names: _Names, negated: bool) -> str | None:
    """A condition, or its negation, in words."""
    node = _named(node, names)
    match node:
        case Const(value=bool(value)):
            return "any device" if value is not negated else "no device"
        case Fold() if isinstance(node.range, ListOf) and not node.range.elements:
            # cel.bind(name, start, result)
            return _words(node.result, {**names, node.accumulator: node.start}, negated)
        case Select(test=True):
            return _published(node.field, negated)
        case Ident(name="device.allowMultipleAllocations"):
            return "not shareable" if negated else "shareable"
        case Call():
            return _call(node, names, negated)
    name = _subject(node, names)
    return None if name is None else f"{'not ' if negated else ''}{name}"


def _call(node: Call, names: _Names, negated: bool) -> str | None:
    no = "not " if negated else ""
    match node.function, node.operands:
        case "!_", [inner]:
            return _words(inner, names, not negated)
        case "_&&_" | "_||_", [left, right]:
            return _joined(node, left, right, names, negated)
        case (("@in" | "_in_"), [Const(value=str(field)), Call() | Select() | Ident()]):
            return _published(field, negated)
        case (("@in" | "_in_"), [subject, ListOf() as options]):
            return _one_of(subject, options, names, negated)
        case function, [subject, Const(value=str(text))] if function in _TEXTS:
            name = _subject(subject, names)
            verb = f"does not {_TEXTS[function][1]}" if negated else _TEXTS[function][0]
            return None if name is None else f"{name} {verb} {text}"
        case function, [left, right] if function in _PLAIN:
            return _comparison(_OPPOSITE[function] if negated else function, left, right, names)
        case function, [left, right] if function in _ORDERS:
            operator = _OPPOSITE[_ORDERS[function]] if negated else _ORDERS[function]
            return _amount(operator, left, right, names)
    name = _subject(node, names)
    missing = _default(node, names)
    return (
        None
        if name is None
        else f"{no}{name}{_also(missing is not None and missing is not negated)}"
    )


def _joined(node: Call, left: Tree, right: Tree, names: _Names, negated: bool) -> str | None:
    """Two conditions together; a guard that a value is published says nothing beside a condition
    on the value itself, and is left out.
    """
    both = node.function == "_&&_"
    parts = [_words(side, names, negated) for side in (left, right)]
    if None in parts:
        return None
    if both is negated:
        return " or ".join(str(part) for part in parts)
    guards = [_guarded(side, names) for side in (left, right)]
    for guard, other in ((0, 1), (1, 0)):
        if guards[guard] and not negated and guards[guard] in str(parts[other]):
            return parts[other]
    return " and ".join(f"({part})" if " or " in str(part) else str(part) for part in parts)


def _guarded(node: Tree, names: _Names) -> str:
    """The name whose being there a condition asks for, and nothing else."""
    match _named(node, names):
        case Select(test=True) as test:
            return spaced(test.field)
        case Call(
            function="@in" | "_in_", operands=[Const(value=str(name)), Call() | Select() | Ident()]
        ):
            return spaced(name)
    return ""


def _comparison(function: str, left: Tree, right: Tree, names: _Names) -> str | None:
    left, right = _named(left, names), _named(right, names)
    if isinstance(left, Const) and not isinstance(right, Const):
        return _comparison(_MIRRORED.get(function, function), right, left, names)
    match left:
        case Call(function="compareTo", operands=[subject, amount]):
            return _amount(function, subject, amount, names) if _is_zero(right) else None
        case Ident(name="device.driver") if isinstance(right, Const):
            return f"driver {'' if function == '_==_' else 'not '}{right.value}"
    value, name = _value(right), _subject(left, names)
    if name is None:
        return None
    if isinstance(right, Call):
        return _amount(function, left, right, names)
    also = _also(_holds_for_default(function, _default(left, names), right))
    if isinstance(right, Const) and isinstance(right.value, bool):
        wanted = right.value is (function == "_==_")
        return f"{'' if wanted else 'not '}{name}{also}"
    return None if value is None else f"{name} {_PLAIN[function]} {value}{also}"


def _default(node: Tree, names: _Names) -> Any:
    """What stands in for a value that is not published, or None where nothing does."""
    match _named(node, names):
        case Call(function="orValue", operands=[_, Const(value=value)]):
            return value
    return None


def _holds_for_default(function: str, default: Any, wanted: Tree) -> bool:
    """Whether a condition also holds for devices that do not publish the value."""
    if default is None or not isinstance(wanted, Const):
        return False
    try:
        return bool(FUNCTIONS[function](default, wanted.value))
    except CelError:
        return False


def _also(unpublished: bool) -> str:
    return " or not published" if unpublished else ""


def _amount(function: str, subject: Tree, amount: Tree, names: _Names) -> str | None:
    """A comparison with a quantity or a version."""
    name = _subject(subject, names)
    amount = _named(amount, names)
    if name is None or not isinstance(amount, Call):
        return None
    match amount.function, amount.operands:
        case "quantity", [Const(value=str(text))]:
            words = {
                **_PLAIN,
                "_==_": "exactly",
                "_!=_": "not exactly",
                "_<_": "less than",
                "_>_": "more than",
            }
            return f"{name} {words[function]} {shown(text)}"
        case "semver", [Const(value=str(text)), *_]:
            return f"{name} {_VERSIONS[function]} {text.removeprefix('v')}"
    return None


def _one_of(subject: Tree, options: ListOf, names: _Names, negated: bool) -> str | None:
    values = [_value(option) for option in options.elements]
    name = "driver" if _is_driver(_named(subject, names)) else _subject(subject, names)
    if name is None or None in values or not values:
        return None
    return f"{name} {'is none of' if negated else 'is one of'} {', '.join(map(str, values))}"


def _subject(node: Tree, names: _Names) -> str | None:
    """The value that a condition is about, by the last part of its name."""
    node = _named(node, names)
    match node:
        case Call(function="orValue", operands=[inner, Const()]):
            return _subject(inner, names)
        case Call(function="lowerAscii" | "upperAscii", operands=[inner]):
            return _subject(inner, names)
        case Call(function="_?._" | "_[?_]" | "_[_]", operands=[inner, Const(value=str(field))]):
            return spaced(field) if _domain(inner, names) else None
        case Select(test=False) if _domain(node.operand, names):
            return spaced(node.field)
    path = constant_path(node)
    return None if path is None else spaced(path[2])


def _domain(node: Tree, names: _Names) -> bool:
    """Whether a node is one domain's map of attributes or capacities."""
    node = _named(node, names)
    match node:
        case Call(function="_[_]" | "_[?_]", operands=[Ident(name=name), key]):
            constant = isinstance(key, Const) or _is_driver(key)
            return constant and name in (CAPACITY, "device.attributes")
    return False


def _is_driver(node: Tree) -> bool:
    return isinstance(node, Ident) and node.name == "device.driver"


def _is_zero(node: Tree) -> bool:
    return isinstance(node, Const) and node.value == 0 and not isinstance(node.value, bool)


def _value(node: Tree) -> str | None:
    if isinstance(node, Const) and isinstance(node.value, str | int | float):
        return str(node.value) if str(node.value) else '""'
    if isinstance(node, Call) and node.function == "-_" and isinstance(node.args[0], Const):
        return f"-{node.args[0].value}"
    return None


def _named(node: Tree, names: _Names) -> Tree:
    while isinstance(node, Ident) and node.name in names:
        node = names[node.name]
    return node


def _published(name: str, negated: bool) -> str:
    return f"{spaced(name)} is {'not ' if negated else ''}published"


def spaced(name: str) -> str:
    """``driverVersion`` as words: driver version. What is all capitals stays."""
    short = name.rpartition("/")[2]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", short).replace("_", " ").split()
    return " ".join(w if w.isupper() and len(w) > 1 else w.lower() for w in words) or name


def shown(text: str) -> str:
    """A quantity for people: 40Gi as 40 GiB; one that cannot be read as it is."""
    try:
        canonical = str(parse(text))
    except QuantityError:
        return text
    return re.sub(r"(\d)([KMGTPE]i)$", r"\1 \2B", canonical)
