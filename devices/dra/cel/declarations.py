"""Which functions Kubernetes adds to CEL's standard ones, and of which types: a table in words.

From ``apiserver/pkg/cel/environment/base.go``: quantities, semantic versions, regular expressions,
lists, sets and texts (cel-go's ext.Strings, version 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_COMPARABLE: Final = ("int", "uint", "double", "bool", "string", "bytes")
_NUMBERS: Final = ("int", "uint", "double")


def _over(kind: str, result: str, elements: tuple[str, ...]) -> tuple[str, ...]:
    """One overload for lists of each type of element."""
    return tuple(f". {kind}<{element}> {result.replace('same', element)}" for element in elements)


#: Comparisons, which Kubernetes also has between numbers of different types; they replace the
#: engine's own.
COMPARISONS: Final = tuple(f"{kind} {kind} -> bool" for kind in _COMPARABLE) + tuple(
    f"{one} {other} -> bool" for one in _NUMBERS for other in _NUMBERS if one != other
)
REPLACED: Final = ("_<_", "_<=_", "_>_", "_>=_")

#: name → overloads; each is "member? parameters -> result", a leading dot marks a member function.
OVERLOADS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(REPLACED, COMPARISONS),
    "quantity": ("string -> quantity",),
    "isQuantity": ("string -> bool",),
    "sign": ("quantity -> int",),
    "asInteger": (". quantity -> int",),
    "isInteger": (". quantity -> bool",),
    "asApproximateFloat": (". quantity -> double",),
    "add": (". quantity quantity -> quantity", ". quantity int -> quantity"),
    "sub": (". quantity quantity -> quantity", ". quantity int -> quantity"),
    "compareTo": (". quantity quantity -> int", ". semver semver -> int"),
    "isLessThan": (". quantity quantity -> bool", ". semver semver -> bool"),
    "isGreaterThan": (". quantity quantity -> bool", ". semver semver -> bool"),
    "semver": ("string -> semver", "string bool -> semver"),
    "isSemver": ("string -> bool", "string bool -> bool"),
    "major": (". semver -> int",),
    "minor": (". semver -> int",),
    "patch": (". semver -> int",),
    "find": (". string string -> string",),
    "findAll": (". string string -> strings", ". string string int -> strings"),
    "isSorted": _over("list", "-> bool", _COMPARABLE),
    "sum": _over("list", "-> same", ("int", "uint", "double")),
    "min": _over("list", "-> same", _COMPARABLE),
    "max": _over("list", "-> same", _COMPARABLE),
    "indexOf": (
        ". string string -> int",
        ". string string int -> int",
        ". list dyn -> int",
    ),
    "lastIndexOf": (
        ". string string -> int",
        ". string string int -> int",
        ". list dyn -> int",
    ),
    "includes": (". dyn dyn -> bool",),
    "distinct": (". list -> list",),
    "slice": (". list int int -> list",),
    "flatten": (". list -> list", ". list int -> list"),
    "reverse": (". list -> list",),
    "sets.contains": ("list list -> bool",),
    "sets.equivalent": ("list list -> bool",),
    "sets.intersects": ("list list -> bool",),
    "charAt": (". string int -> string",),
    "lowerAscii": (". string -> string",),
    "upperAscii": (". string -> string",),
    "replace": (". string string string -> string", ". string string string int -> string"),
    "split": (". string string -> strings", ". string string int -> strings"),
    "substring": (". string int -> string", ". string int int -> string"),
    "trim": (". string -> string",),
    "join": (". strings -> string", ". strings string -> string"),
}

#: Functions of Kubernetes' CEL that exist but are not modelled; a selector that uses one is shown
#: as such, never as wrong.
UNMODELLED: Final = frozenset(
    [
        "ip",
        "isIP",
        "cidr",
        "isCIDR",
        "url",
        "isURL",
        "transformList",
        "transformMap",
        "transformMapEntry",
        "existsOne",
        "sort",
        "sortBy",
        "first",
        "last",
        "timestamp",
        "duration",
        "format",
        "strings.quote",
        "lists.range",
    ]
)
