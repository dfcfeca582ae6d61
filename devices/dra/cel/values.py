"""Values of CEL and how cel-go compares them; the plain types are Python's own.

Kubernetes adds quantities and semantic versions, which are equal to nothing of another type: the
comparison is an error, not false (``apiserver/pkg/cel/quantity.go``, ``semver.go``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from devices.dra.cel.kinds import (
    STRICT,
    Address,
    Duration,
    NamedFormat,
    Network,
    Timestamp,
    Url,
)
from devices.dra.quantity import Quantity
from devices.dra.semver import Semver


class CelError(Exception):
    """A run-time error of an expression; as a value it can stand in && and || without harm."""


class CostExceeded(CelError):
    """The expression took more steps than Kubernetes allows; nothing absorbs this error."""


class Uint(int):
    """An unsigned 64-bit integer, which CEL keeps apart from int."""


@dataclass(frozen=True, slots=True)
class Optional:
    """CEL's optional value; ``present`` tells it from one that holds null."""

    present: bool
    value: Any = None


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as a value, such as ``int`` or what ``type(x)`` answers."""

    name: str


NONE: Final = Optional(False)
EMPTY: Final[Mapping[str, Any]] = {}


class Domains(Mapping[str, Any]):
    """``device.attributes`` and ``device.capacity``: a domain nobody published is an empty map,
    though it is neither counted, nor listed, nor ``in`` the map.
    """

    __slots__ = ("_found",)

    def __init__(self, found: Mapping[str, Any]) -> None:
        self._found = found

    def __getitem__(self, key: str) -> Any:
        return self._found.get(key, EMPTY)

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, key: object) -> bool:
        return key in self._found


def no_overload(*_: object) -> CelError:
    """The error of a function or operator that has no variant for the types it was given."""
    return CelError("no such overload")


_NAMES: Final = (
    (bool, "bool"),
    (Uint, "uint"),
    (int, "int"),
    (float, "double"),
    (str, "string"),
    (bytes, "bytes"),
    (type(None), "null_type"),
    (Quantity, "kubernetes.Quantity"),
    (Semver, "kubernetes.Semver"),
    (Optional, "optional_type"),
    (Duration, "google.protobuf.Duration"),
    (Timestamp, "google.protobuf.Timestamp"),
    (Address, "net.IP"),
    (Network, "net.CIDR"),
    (Url, "kubernetes.URL"),
    (NamedFormat, "kubernetes.NamedFormat"),
    (TypeName, "type"),
    (Mapping, "map"),
    ((list, tuple), "list"),
)


def type_name(value: object) -> str:
    """The CEL type of a value."""
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    return "dyn"


#: Kinds that are equal to nothing of another kind: comparing them is an error, not false.
_STRICT: Final = (Quantity, Semver, *STRICT)


def is_number(value: object) -> bool:
    """int, uint or double; a bool is none of them."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_zero(value: object) -> bool:
    """Whether a value is nothing of its kind: 0, "", [], null, the year 1. Amounts never are."""
    if isinstance(value, Duration):
        return value.nanos == 0
    if isinstance(value, Timestamp):
        return value.nanos == -62135596800 * 10**9
    plain = isinstance(value, bool | int | float | str | bytes | list | tuple | Mapping)
    return value is None or (plain and not value)


def equal(left: Any, right: Any) -> bool:
    """``left == right``: false across types, an error against a quantity or a version on the left.

    Raises CelError. The order of the operands matters, as it does in cel-go.
    """
    if left is None or right is None:
        return left is right
    if isinstance(left, _STRICT):
        if type(left) is not type(right):
            raise no_overload(left, right)
        return bool(left == right)
    if is_number(left) and is_number(right):
        return bool(left == right)
    if isinstance(left, Mapping):
        return _equal_maps(left, right)
    if isinstance(left, list | tuple):
        same = isinstance(right, list | tuple) and len(left) == len(right)
        return same and all(equal(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, Optional):
        if not isinstance(right, Optional) or left.present != right.present:
            return False
        return not left.present or equal(left.value, right.value)
    return type(left) is type(right) and bool(left == right)


def differ(left: Any, right: Any) -> bool:
    """``left != right``: true as well where ``==`` would be an error."""
    try:
        return not equal(left, right)
    except CelError:
        return True


def contains(items: Any, wanted: Any) -> bool:
    """``wanted in items``: an element that cannot be compared is passed over."""
    if isinstance(items, Mapping):
        hashable = isinstance(wanted, str | bool) or is_number(wanted)
        return hashable and _key(items, wanted) is not _ABSENT
    if not isinstance(items, list | tuple):
        raise no_overload(wanted, items)
    for item in items:
        try:
            if equal(wanted, item):
                return True
        except CelError:
            continue
    return False


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1; raises CelError for types that have no order together."""
    comparable = (is_number(left) and is_number(right)) or (
        type(left) is type(right) and isinstance(left, bool | str | bytes | Duration | Timestamp)
    )
    if not comparable:
        raise no_overload(left, right)
    return int(left > right) - int(left < right)


_ABSENT: Final = object()


def lookup(container: Any, key: Any) -> Any:
    """``container[key]`` or ``container.key``; raises CelError where nothing is there."""
    if isinstance(container, Mapping):
        found = (
            container[key]
            if type(container) is Domains and isinstance(key, str)
            else _key(container, key)
        )
        if found is _ABSENT:
            raise CelError(f"no such key: {_shown(key)}")
        return found
    if isinstance(container, list | tuple):
        if isinstance(key, bool) or not is_number(key) or key != int(key):
            raise CelError(f"unsupported index type '{type_name(key)}' in list")
        if not 0 <= key < len(container):
            raise CelError(f"index out of bounds: {int(key)}")
        return container[int(key)]
    raise no_overload(container, key)


def has_key(container: Any, key: Any) -> bool:
    """Whether ``container.key`` is there; a domain always is (see Domains)."""
    if isinstance(container, Domains):
        return True
    if isinstance(container, Mapping):
        return _key(container, key) is not _ABSENT
    raise no_overload(container, key)


def _key(items: Mapping[Any, Any], key: Any) -> Any:
    """The value under a key of the same type (numbers of any type are one), or _ABSENT."""
    if isinstance(key, str):
        return items[key] if key in items else _ABSENT  # noqa: SIM401
    if is_number(key) or isinstance(key, bool):
        for found, value in items.items():
            alike = type(found) is type(key) or (is_number(found) and is_number(key))
            if alike and found == key:
                return value
        return _ABSENT
    raise CelError(f"unsupported key type: {type_name(key)}")


def _equal_maps(left: Mapping[Any, Any], right: Any) -> bool:
    if not isinstance(right, Mapping) or len(left) != len(right):
        return False
    for key, value in left.items():
        other = _key(right, key)
        if other is _ABSENT or not equal(value, other):
            return False
    return True


def _shown(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)
