"""A checked CEL expression as a tree, read from the bytes in which engines exchange them.

The bytes are protobuf ``cel.expr.CheckedExpr`` (github.com/google/cel-spec). Only the fields that
matter here are read, which is why this needs no protobuf library.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from devices.dra.cel.values import Uint

#: The type of an attribute value where list attributes are off: anything but a list or a map.
ANY: Final = "any"


@dataclass(frozen=True, slots=True)
class Const:
    """A literal."""

    id: int
    value: Any


@dataclass(frozen=True, slots=True)
class Ident:
    """A variable, or the name of a type."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """``operand.field``; with ``test`` it is ``has(operand.field)``."""

    id: int
    operand: Node
    field: str
    test: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator; ``target`` is the receiver of a member call."""

    id: int
    function: str
    target: Node | None
    args: tuple[Node, ...]

    @property
    def operands(self) -> tuple[Node, ...]:
        """Receiver and arguments together."""
        return self.args if self.target is None else (self.target, *self.args)


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list literal; ``optional`` are the positions of ``?element``."""

    id: int
    elements: tuple[Node, ...]
    optional: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a map literal."""

    key: Node
    value: Node
    optional: bool


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map literal; ``message`` is not empty where it builds a protobuf message instead."""

    id: int
    message: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """A comprehension, to which all macros over lists and maps (and cel.bind) are unfolded.

    With a ``second`` variable the first one is the position or the key, the second the value.
    """

    id: int
    variable: str
    range: Node
    accumulator: str
    start: Node
    condition: Node
    step: Node
    result: Node
    second: str = ""


Node = Const | Ident | Select | Call | ListOf | MapOf | Fold


@dataclass(frozen=True, slots=True)
class Checked:
    """A tree, and the type of each node by its id: int, dyn, list, kubernetes.Semver and so on;
    ``elements`` has of each list what it is a list of.
    """

    root: Node
    types: dict[int, str]
    elements: dict[int, str]


def read_checked(data: bytes) -> Checked:
    """Reads a CheckedExpr, bare or wrapped in a protobuf Any."""
    fields = dict(_fields(data))
    if isinstance(fields.get(1), bytes) and fields[1].startswith(b"type.googleapis.com/"):
        data = fields[2]
    types: dict[int, str] = {}
    elements: dict[int, str] = {}
    root: Node | None = None
    for number, value in _fields(data):
        if number == 3:
            entry = dict(_fields(value))
            types[entry.get(1, 0)] = _type(entry.get(2, b""))
            elements[entry.get(1, 0)] = _element(entry.get(2, b""))
        elif number == 4:
            root = _node(value)
    if root is None:
        raise ValueError("no expression in the checked tree")
    return Checked(root, types, elements)


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes under it."""
    yield node
    for child in children(node):
        yield from walk(child)


def children(node: Node) -> tuple[Node, ...]:
    """The nodes right under a node."""
    match node:
        case Select():
            return (node.operand,)
        case Call():
            return node.operands
        case ListOf():
            return node.elements
        case MapOf():
            return tuple(part for entry in node.entries for part in (entry.key, entry.value))
        case Fold():
            return (node.range, node.start, node.condition, node.step, node.result)
    return ()


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Protobuf's wire format: pairs of field number and number or bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == 0:
            value, position = _varint(data, position)
            yield tag >> 3, value
        elif kind == 2:
            length, position = _varint(data, position)
            yield tag >> 3, data[position : position + length]
            position += length
        elif kind == 1:
            yield tag >> 3, data[position : position + 8]
            position += 8
        else:
            raise ValueError(f"wire type {kind} does not occur in an expression")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _node(data: bytes) -> Node:
    identity = 0
    for number, value in _fields(data):
        match number:
            case 2:
                identity = value
            case 3:
                return Const(identity, _constant(value))
            case 4:
                return Ident(identity, _text(value, 1))
            case 5:
                part = dict(_fields(value))
                return Select(identity, _node(part[1]), part[2].decode(), bool(part.get(3)))
            case 6:
                return _call(identity, value)
            case 7:
                return _list(identity, value)
            case 8:
                return _map(identity, value)
            case 9:
                part = dict(_fields(value))
                bodies = (_node(part[field]) for field in (2, 4, 5, 6, 7))
                over, start, condition, step, result = bodies
                variable, accumulator, second = (
                    part.get(field, b"").decode() for field in (1, 3, 8)
                )
                return Fold(
                    identity, variable, over, accumulator, start, condition, step, result, second
                )
    raise ValueError("an empty node")


def _call(identity: int, data: bytes) -> Call:
    target, function, args = None, "", []
    for number, value in _fields(data):
        if number == 1:
            target = _node(value)
        elif number == 2:
            function = value.decode()
        elif number == 3:
            args.append(_node(value))
    return Call(identity, function, target, tuple(args))


def _list(identity: int, data: bytes) -> ListOf:
    elements, optional = [], []
    for number, value in _fields(data):
        if number == 1:
            elements.append(_node(value))
        elif isinstance(value, bytes):  # packed positions
            position = 0
            while position < len(value):
                index, position = _varint(value, position)
                optional.append(index)
        else:
            optional.append(value)
    return ListOf(identity, tuple(elements), tuple(optional))


def _map(identity: int, data: bytes) -> MapOf:
    message, entries = "", []
    for number, value in _fields(data):
        if number == 1:
            message = value.decode()
        elif number == 2:
            part = dict(_fields(value))
            key = _node(part[3]) if 3 in part else Const(0, part.get(2, b"").decode())
            entries.append(Entry(key, _node(part[4]), bool(part.get(5))))
    return MapOf(identity, message, tuple(entries))


def _constant(data: bytes) -> Any:
    for number, value in _fields(data):
        match number:
            case 1:
                return None
            case 2:
                return bool(value)
            case 3:
                return _signed(value)
            case 4:
                return Uint(value)
            case 5:
                return struct.unpack("<d", value)[0]
            case 6:
                return value.decode()
            case 7:
                return bytes(value)
    raise ValueError("a literal of a kind that selectors do not have")


def _text(data: bytes, field: int) -> str:
    return next((value.decode() for number, value in _fields(data) if number == field), "")


_PRIMITIVES = {1: "bool", 2: "int", 3: "uint", 4: "double", 5: "string", 6: "bytes"}
_WELL_KNOWN = {1: ANY, 2: "timestamp", 3: "duration"}


def _type(data: bytes) -> str:
    for number, value in _fields(data):
        match number:
            case 2:
                return "null"
            case 3:
                return _PRIMITIVES.get(value, "dyn")
            case 5:
                return _WELL_KNOWN.get(value, "dyn")
            case 6:
                return "list"
            case 7:
                return "map"
            case 11:
                return "type"
            case 9:
                return value.decode() if isinstance(value, bytes) else "dyn"
            case 14:
                return _text(value, 1)
    return "dyn"


def _element(data: bytes) -> str:
    """What a list is a list of; "dyn" where it is no list."""
    for number, value in _fields(data):
        if number == 6:
            return _type(next((inner for field, inner in _fields(value) if field == 1), b""))
    return "dyn"
