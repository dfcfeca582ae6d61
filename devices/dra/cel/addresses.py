"""IP addresses and networks in CEL (``apiserver/pkg/cel/library/ip.go`` and ``cidr.go``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address, IPv6Address, ip_address
from typing import Any

from devices.dra.cel.arguments import a_text
from devices.dra.cel.kinds import Address, Network
from devices.dra.cel.values import CelError, no_overload


def ip(value: Any) -> Address:
    """``ip("10.0.0.1")``, and the address of a network. Zones and IPv4 within IPv6 are refused."""
    if isinstance(value, Network):
        return Address(value.value)
    return Address(_address(a_text(value)))


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        found = ip_address(text)
    except (AddressValueError, ValueError) as error:
        raise CelError(
            f'IP Address "{text}" parse error during conversion from string: {error}'
        ) from error
    if isinstance(found, IPv6Address):
        if found.scope_id is not None:
            raise CelError(f'IP address "{text}" with zone value is not allowed')
        if found.ipv4_mapped is not None:
            raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return found


def cidr(value: Any) -> Network:
    """``cidr("10.0.0.0/8")``; bits behind the prefix may be set."""
    text = a_text(value)
    address, slash, bits = text.rpartition("/")
    try:
        if not slash or not re.fullmatch("0|[1-9][0-9]{0,2}", bits, re.ASCII):
            raise CelError("no length of the prefix, or a bad one")
        found = _address(address)
        if int(bits) > found.max_prefixlen:
            raise CelError("prefix length out of range")
    except CelError as error:
        raise CelError(
            f"network address parse error during conversion from string: {error}"
        ) from error
    return Network(found, int(bits))


def is_canonical(value: Any) -> bool:
    text = a_text(value)
    return as_text(Address(_address(text))) == text


def as_text(value: Address | Network) -> str:
    """In Go's spelling, which is Python's too."""
    text = str(value.value)
    return f"{text}/{value.bits}" if isinstance(value, Network) else text


def family(value: Any) -> int:
    return _an_address(value).version


def test(holds: Callable[[IPv4Address | IPv6Address], bool]) -> Callable[[Any], bool]:
    """A question about an address."""
    return lambda value: holds(_an_address(value))


def link_local_multicast(address: IPv4Address | IPv6Address) -> bool:
    packed = address.packed
    if address.version == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 2


def global_unicast(address: IPv4Address | IPv6Address) -> bool:
    """As Go says it: whatever is none of the others, private networks included."""
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == IPv4Address("255.255.255.255")
    )


def contains_ip(network: Any, wanted: Any) -> bool:
    inside = wanted if isinstance(wanted, Address) else ip(a_text(wanted))
    return _within(_a_network(network), inside.value)


def contains_cidr(network: Any, wanted: Any) -> bool:
    outer = _a_network(network)
    inner = wanted if isinstance(wanted, Network) else cidr(a_text(wanted))
    return outer.bits <= inner.bits and _within(outer, inner.value)


def _within(network: Network, address: IPv4Address | IPv6Address) -> bool:
    if network.value.version != address.version:
        return False
    rest = network.value.max_prefixlen - network.bits
    return int(network.value) >> rest == int(address) >> rest


def prefix_length(value: Any) -> int:
    return _a_network(value).bits


def masked(value: Any) -> Network:
    network = _a_network(value)
    rest = network.value.max_prefixlen - network.bits
    return Network(type(network.value)(int(network.value) >> rest << rest), network.bits)


def _an_address(value: Any) -> IPv4Address | IPv6Address:
    if not isinstance(value, Address):
        raise no_overload(value)
    return value.value


def _a_network(value: Any) -> Network:
    if not isinstance(value, Network):
        raise no_overload(value)
    return value
