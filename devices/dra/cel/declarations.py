"""Which functions Kubernetes adds to CEL's standard ones, and of which types: a table in words.

From ``apiserver/pkg/cel/environment/base.go``: quantities, semantic versions, regular expressions,
lists, sets and texts (cel-go's ext.Strings, version 2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: name → overloads; each is "member? parameters -> result", a leading dot marks a member function.
OVERLOADS: Final[Mapping[str, tuple[str, ...]]] = {
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
    "isSorted": (". list -> bool",),
    "sum": (". list -> dyn",),
    "min": (". list -> dyn",),
    "max": (". list -> dyn",),
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
