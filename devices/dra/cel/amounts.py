"""Functions over quantities, semantic versions and optionals (``apiserver/pkg/cel/library``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devices.dra import quantity as quantities
from devices.dra import semver as semvers
from devices.dra.cel.arguments import a_text, an_int
from devices.dra.cel.values import CelError, Optional, no_overload
from devices.dra.quantity import Quantity
from devices.dra.semver import Semver


def quantity(text: Any) -> Quantity:
    try:
        return quantities.parse(a_text(text))
    except quantities.QuantityError as error:
        raise CelError(str(error)) from error


def semver(text: Any, lenient: Any = False) -> Semver:
    if not isinstance(lenient, bool):
        raise no_overload(lenient)
    try:
        return (semvers.parse_leniently if lenient else semvers.parse)(a_text(text))
    except semvers.SemverError as error:
        raise CelError(str(error)) from error


def readable(reader: Callable[..., Any]) -> Callable[..., bool]:
    def readable(*args: Any) -> bool:
        a_text(args[0])
        try:
            reader(*args)
        except CelError:
            return False
        return True

    return readable


def order(left: Any, right: Any) -> int:
    """isLessThan, isGreaterThan and compareTo: two quantities or two versions, never a mix."""
    if isinstance(left, Quantity) and isinstance(right, Quantity):
        return (left > right) - (left < right)
    if isinstance(left, Semver) and isinstance(right, Semver):
        return (left > right) - (left < right)
    raise no_overload(left, right)


def as_quantity(value: Any) -> Quantity:
    if not isinstance(value, Quantity):
        raise no_overload(value)
    return value


def term(value: Any) -> Quantity:
    """The other side of add and sub may be an int."""
    return value if isinstance(value, Quantity) else quantities.whole(an_int(value))


def as_integer(value: Any) -> int:
    number = as_quantity(value).as_int64()
    if number is None:
        raise CelError("cannot convert value to integer")
    return number


def sign(value: Any) -> int:
    nanos = as_quantity(value).nanos
    return (nanos > 0) - (nanos < 0)


def version_part(name: str) -> Callable[[Any], int]:
    def part(value: Any) -> int:
        if not isinstance(value, Semver):
            raise no_overload(value)
        return int(getattr(value, name))

    return part


def optional_value(value: Any) -> Any:
    if not isinstance(value, Optional):
        raise no_overload(value)
    if not value.present:
        raise CelError("optional.none() dereference")
    return value.value


def has_value(value: Any) -> bool:
    if not isinstance(value, Optional):
        raise no_overload(value)
    return value.present
