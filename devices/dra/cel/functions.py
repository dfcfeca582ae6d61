"""The functions and operators of CEL as Kubernetes offers them: one table, and what each costs.

Each function takes values of `values` and returns one, or raises CelError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from devices.dra.cel import (
    addresses,
    amounts,
    arithmetic,
    formats,
    lists,
    printing,
    texts,
    times,
    urls,
)
from devices.dra.cel.arguments import a_list, a_text
from devices.dra.cel.values import (
    NONE,
    Optional,
    TypeName,
    compare,
    contains,
    differ,
    equal,
    is_zero,
    lookup,
    type_name,
)


def _always(value: Any) -> Callable[[], Any]:
    return lambda: value


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "_==_": equal,
    "_!=_": differ,
    "_<_": lambda left, right: compare(left, right) < 0,
    "_<=_": lambda left, right: compare(left, right) <= 0,
    "_>_": lambda left, right: compare(left, right) > 0,
    "_>=_": lambda left, right: compare(left, right) >= 0,
    "_+_": arithmetic.add,
    "_-_": arithmetic.subtract,
    "_*_": arithmetic.multiply,
    "_/_": arithmetic.divide,
    "_%_": arithmetic.remainder,
    "-_": arithmetic.negate,
    "!_": arithmetic.negation,
    "_[_]": lookup,
    "@in": lambda wanted, items: contains(items, wanted),
    "_in_": lambda wanted, items: contains(items, wanted),
    "size": arithmetic.size,
    "dyn": lambda value: value,
    "type": lambda value: TypeName(type_name(value)),
    "int": arithmetic.to_int,
    "uint": arithmetic.to_uint,
    "double": arithmetic.to_double,
    "string": arithmetic.to_string,
    "bool": arithmetic.to_bool,
    "bytes": arithmetic.to_bytes,
    "startsWith": lambda value, start: a_text(value).startswith(a_text(start)),
    "endsWith": lambda value, end: a_text(value).endswith(a_text(end)),
    "contains": lambda value, part: a_text(part) in a_text(value),
    "matches": texts.matches,
    "find": texts.find,
    "findAll": texts.find_all,
    "charAt": texts.char_at,
    "indexOf": texts.index_of,
    "lastIndexOf": texts.last_index_of,
    "lowerAscii": texts.case(str.lower),
    "upperAscii": texts.case(str.upper),
    "replace": texts.replace,
    "split": texts.split,
    "substring": texts.substring,
    "trim": lambda value: a_text(value).strip(),
    "join": texts.join,
    "reverse": lists.reverse,
    "isSorted": lists.is_sorted,
    "sum": lists.total,
    "min": lists.extreme(-1, "min"),
    "max": lists.extreme(1, "max"),
    "includes": lists.includes,
    "distinct": lists.distinct,
    "slice": lists.part,
    "flatten": lists.flatten,
    "sets.contains": lists.all_in,
    "sets.equivalent": lambda one, other: lists.all_in(one, other) and lists.all_in(other, one),
    "sets.intersects": lambda one, other: any(contains(one, item) for item in a_list(other)),
    "quantity": amounts.quantity,
    "isQuantity": amounts.readable(amounts.quantity),
    "semver": amounts.semver,
    "isSemver": amounts.readable(amounts.semver),
    "compareTo": amounts.order,
    "isLessThan": lambda left, right: amounts.order(left, right) < 0,
    "isGreaterThan": lambda left, right: amounts.order(left, right) > 0,
    "add": lambda left, right: amounts.as_quantity(left) + amounts.term(right),
    "sub": lambda left, right: amounts.as_quantity(left) - amounts.term(right),
    "asInteger": amounts.as_integer,
    "isInteger": lambda value: amounts.as_quantity(value).as_int64() is not None,
    "asApproximateFloat": lambda value: float(amounts.as_quantity(value).fraction),
    "sign": amounts.sign,
    "major": amounts.version_part("major"),
    "minor": amounts.version_part("minor"),
    "patch": amounts.version_part("patch"),
    "timestamp": times.timestamp,
    "duration": times.duration,
    **times.READERS,
    "ip": addresses.ip,
    "isIP": amounts.readable(addresses.ip),
    "ip.isCanonical": addresses.is_canonical,
    "family": addresses.family,
    "isUnspecified": addresses.test(lambda address: address.is_unspecified),
    "isLoopback": addresses.test(lambda address: address.is_loopback),
    "isLinkLocalMulticast": addresses.test(addresses.link_local_multicast),
    "isLinkLocalUnicast": addresses.test(lambda address: address.is_link_local),
    "isGlobalUnicast": addresses.test(addresses.global_unicast),
    "cidr": addresses.cidr,
    "isCIDR": amounts.readable(addresses.cidr),
    "containsIP": addresses.contains_ip,
    "containsCIDR": addresses.contains_cidr,
    "prefixLength": addresses.prefix_length,
    "masked": addresses.masked,
    "url": urls.url,
    "isURL": amounts.readable(urls.url),
    **urls.READERS,
    "format": printing.formatted,
    "strings.quote": printing.quote,
    "format.named": formats.named,
    "validate": formats.validate,
    **{f"format.{name}": _always(found) for name, found in formats.FORMATS.items()},
    "sort": lists.in_order,
    "@sortByAssociatedKeys": lists.in_order_of,
    "lists.range": lists.numbers,
    "first": lists.end(0),
    "last": lists.end(-1),
    "cel.@mapInsert": lists.with_entry,
    "optional.unwrap": lists.unwrapped,
    "unwrapOpt": lists.unwrapped,
    "optional.of": lambda value: Optional(True, value),
    "optional.none": lambda: NONE,
    "optional.ofNonZeroValue": lambda value: NONE if is_zero(value) else Optional(True, value),
    "hasValue": amounts.has_value,
    "value": amounts.optional_value,
}


def _tenths(*values: Any) -> int:
    """Texts cost a tenth of a step for each letter."""
    return math.ceil(sum(len(v) if isinstance(v, str | bytes) else 1 for v in values) / 10)


def _shorter(values: Sequence[Any]) -> int:
    sizes = (len(v) if isinstance(v, str | bytes | list | tuple | Mapping) else 1 for v in values)
    return math.ceil(min(sizes) / 10) or 1


def _length(value: Any) -> int:
    return len(value) if isinstance(value, str | bytes | list | tuple | Mapping) else 1


#: What a call costs where it is not one step.
COSTS: Final[Mapping[str, Callable[[Sequence[Any]], int]]] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _shorter),
    **dict.fromkeys(("startsWith", "endsWith"), lambda values: _tenths(values[1])),
    "_+_": lambda values: max(1, _tenths(*values)),
    "@in": lambda values: _length(values[1]) if isinstance(values[1], list | tuple) else 1,
    "contains": lambda values: _tenths(values[0]) * _tenths(values[1]),
    "matches": lambda values: (
        math.ceil((1 + _length(values[0])) / 10) * math.ceil(_length(values[1]) / 4)
    ),
}
