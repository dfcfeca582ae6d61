"""Values of CEL that are no amounts and not Python's own: times, addresses, URLs, formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time in nanoseconds, as Go holds it: a signed number of 64 bits."""

    nanos: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """A moment: nanoseconds since 1970 in UTC. ``offset`` (minutes) is how it was written down."""

    nanos: int
    offset: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address, what ``ip("…")`` yields."""

    value: IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class Network:
    """An address and the length of its prefix, what ``cidr("…")`` yields; host bits are kept."""

    value: IPv4Address | IPv6Address
    bits: int


@dataclass(frozen=True, slots=True)
class Url:
    """What ``url("…")`` yields; equal to another one that is written the same."""

    text: str
    scheme: str = field(default="", compare=False)
    host: str = field(default="", compare=False)
    path: str = field(default="", compare=False)
    query: Mapping[str, list[str]] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """What ``format.dns1123Label()`` yields: a name, and what is wrong with a text, if anything."""

    name: str
    problems: Callable[[str], list[str]] = field(compare=False, repr=False)


#: Kinds that are equal to nothing of another kind: comparing them is an error, not false.
STRICT = (Address, Network, Url, NamedFormat)
