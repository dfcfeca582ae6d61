"""Which addresses Berth may send to: what a person typed must not reach the inside of a network.

The name is looked up once, every address that it has is judged, and the connection goes to an
address that was judged (a second look-up could answer otherwise).
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Unfit(Exception):
    """The address cannot be used; the message says why and what would be right."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a message goes: `address` is what was judged, `host` what the certificate must say."""

    secure: bool
    host: str
    port: int
    address: str
    path: str


def networks(texts: Iterable[str]) -> list[Network]:
    """["10.0.0.0/8"] as networks; ValueError where one is none."""
    return [ip_network(text.strip()) for text in texts]


def shape(url: str) -> Target:
    """The parts of an address, without looking anything up. Raises `Unfit`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Unfit(f"This is no address: {error}.") from error
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise Unfit("Give a whole address that begins with https://.")
    if parts.username or parts.password:
        raise Unfit("Leave name and password out of the address; messages are signed instead.")
    if parts.fragment:
        raise Unfit("Leave out what follows the #; it is never sent.")
    secure = parts.scheme == "https"
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(secure, parts.hostname, port or (443 if secure else 80), "", path)


def target(url: str, allowed: Iterable[Network]) -> Target:
    """Where to connect. Raises `Unfit` where the name is unknown or leads to a closed address.

    Public addresses are open over https. Others, and plain http, only within `allowed`.
    """
    wanted, open_networks = shape(url), list(allowed)
    try:
        found = socket.getaddrinfo(wanted.host, wanted.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Unfit(f"The name {wanted.host} is not known here.") from error
    addresses = [ip_address(str(entry[4][0]).split("%")[0]) for entry in found]
    for address in addresses:
        judge(address, open_networks, secure=wanted.secure)
    return Target(wanted.secure, wanted.host, wanted.port, str(addresses[0]), wanted.path)


def judge(address: Address, allowed: Iterable[Network], *, secure: bool) -> None:
    """Raises `Unfit` for an address that Berth may not send to."""
    plain = getattr(address, "ipv4_mapped", None) or address
    if any(plain.version == network.version and plain in network for network in allowed):
        return
    if not plain.is_global or plain.is_multicast:
        raise Unfit(
            f"{address} lies inside a network. Berth sends there only if its operator lists that "
            "network in WEBHOOK_NETWORKS."
        )
    if not secure:
        raise Unfit("Messages leave the network over https:// only.")
