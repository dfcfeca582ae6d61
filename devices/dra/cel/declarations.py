"""Which functions Kubernetes adds to CEL's standard ones, and of which types: a table in words.

From ``apiserver/pkg/cel/environment/base.go``: quantities, semantic versions, regular expressions,
lists, texts (cel-go's ext.Strings, version 2), addresses, URLs and named formats. Sorting, sets and
loops with two variables come with the engine (`EXTENSIONS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from devices.dra.cel.formats import FORMATS

_COMPARABLE: Final = ("int", "uint", "double", "bool", "string", "bytes")
_NUMBERS: Final = ("int", "uint", "double")


def _over(kind: str, result: str, elements: tuple[str, ...]) -> tuple[str, ...]:
    """One overload for lists of each type of element."""
    return tuple(f". {kind}<{element}> {result.replace('same', element)}" for element in elements)


#: Comparisons, which Kubernetes also has between numbers of different types.
COMPARISONS: Final = tuple(
    f"{kind} {kind} -> bool" for kind in (*_COMPARABLE, "duration", "timestamp")
) + tuple(f"{one} {other} -> bool" for one in _NUMBERS for other in _NUMBERS if one != other)
#: What replaces the engine's own function of that name.
REPLACED: Final = ("_<_", "_<=_", "_>_", "_>=_", "string")
_PRINTED: Final = (*_COMPARABLE, "duration", "timestamp", "ip", "cidr")

#: name → overloads; each is "member? parameters -> result", a leading dot marks a member function.
OVERLOADS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), COMPARISONS),
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
    "ip": ("string -> ip", ". cidr -> ip"),
    "isIP": ("string -> bool",),
    "ip.isCanonical": ("string -> bool",),
    "family": (". ip -> int",),
    **dict.fromkeys(
        (
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
        ),
        (". ip -> bool",),
    ),
    "cidr": ("string -> cidr",),
    "isCIDR": ("string -> bool",),
    "containsIP": (". cidr string -> bool", ". cidr ip -> bool"),
    "containsCIDR": (". cidr string -> bool", ". cidr cidr -> bool"),
    "prefixLength": (". cidr -> int",),
    "masked": (". cidr -> cidr",),
    "string": tuple(f"{kind} -> string" for kind in _PRINTED),
    "url": ("string -> url",),
    "isURL": ("string -> bool",),
    **dict.fromkeys(
        ("getScheme", "getHost", "getHostname", "getPort", "getEscapedPath"), (". url -> string",)
    ),
    "getQuery": (". url -> query",),
    "format": (". string list -> string",),
    "strings.quote": ("string -> string",),
    "format.named": ("string -> dyn",),
    "validate": (". format string -> dyn",),
    **dict.fromkeys((f"format.{name}" for name in FORMATS), (" -> format",)),
    "optional.unwrap": ("list -> list",),
    "unwrapOpt": (". list -> list",),
    "charAt": (". string int -> string",),
    "lowerAscii": (". string -> string",),
    "upperAscii": (". string -> string",),
    "replace": (". string string string -> string", ". string string string int -> string"),
    "split": (". string string -> strings", ". string string int -> strings"),
    "substring": (". string int -> string", ". string int int -> string"),
    "trim": (". string -> string",),
    "join": (". strings -> string", ". strings string -> string"),
}

#: Parts of the engine itself, by the names of its configuration: macros cannot be declared.
EXTENSIONS: Final = ("two-var-comprehensions", "lists", "sets")
