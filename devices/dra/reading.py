"""Reading decoded JSON of the cluster: what is unknown is noted, what is unreadable is refused.

Nothing is guessed: a field that this version of Berth does not know becomes an `Unknown` that
pages show, and an object that cannot be read at all is left out with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from devices.dra.quantity import Quantity, QuantityError, read

#: One decoded object of the API, as the gateway hands it out.
Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A field that this version does not know: shown to people, never taken as absent or zero."""

    object: str
    """``Kind/namespace/name`` of the object."""
    path: str
    """Where in the object, such as ``spec.devices[gpu-0].newThing``."""


@dataclass(frozen=True, slots=True)
class Unread:
    """An object that could not be read, and why."""

    object: str
    why: str


class Unreadable(ValueError):
    """An object does not have the shape its kind must have; the message names the field."""


def title(raw: Raw) -> str:
    """``Kind/namespace/name`` of an object, or what is known of it."""
    meta = raw.get("metadata")
    if not isinstance(meta, Mapping):  # the message that it is none needs a title too
        meta = {}
    parts = (raw.get("kind") or "?", meta.get("namespace"), meta.get("name") or "?")
    return "/".join(str(part) for part in parts if part)


def strange(found: Iterable[str], known: frozenset[str], path: str) -> list[str]:
    """Paths of the fields that are not known."""
    return [f"{path}.{name}" if path else name for name in found if name not in known]


def mapping(value: object, path: str) -> Mapping[str, Any]:
    """A JSON object, or an empty one for null; raises Unreadable for anything else."""
    if value is None:
        return {}
    if type(value) is not dict and not isinstance(value, Mapping):
        raise Unreadable(f"{path} must be an object, not {type(value).__name__}")
    return value


def sequence(value: object, path: str) -> Sequence[Any]:
    """A JSON list, or an empty one for null; raises Unreadable for anything else."""
    if value is None:
        return ()
    if type(value) is list:
        return value
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise Unreadable(f"{path} must be a list, not {type(value).__name__}")
    return value


def texts(value: object, path: str) -> tuple[str, ...]:
    """A list of strings."""
    if value is None:
        return ()
    items = sequence(value, path)
    if not all(isinstance(item, str) for item in items):
        raise Unreadable(f"{path} must be a list of strings")
    return tuple(items)


def text(value: object, path: str) -> str:
    """A string that must be there and not be empty."""
    if not isinstance(value, str) or not value:
        raise Unreadable(f"{path} must be a text")
    return value


def number(value: object, path: str) -> int:
    """An integer that must be there."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unreadable(f"{path} must be a whole number")
    return value


def quantity(value: object, path: str) -> Quantity:
    """A quantity that must be there."""
    try:
        return read(value)
    except QuantityError as error:
        raise Unreadable(f"{path}: {error}") from error


def quantities(value: object, path: str) -> dict[str, Quantity]:
    """A map of names to quantities, such as requests or allocatable."""
    return {name: quantity(item, f"{path}.{name}") for name, item in mapping(value, path).items()}


def moment(value: object) -> datetime | None:
    """A timestamp of the API (RFC 3339), or None where it is missing or unreadable."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None
