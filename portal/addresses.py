"""Where a request comes from: the connection's own address, or what trusted proxies say of it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from django.http import HttpRequest

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(request: HttpRequest, *, proxies: int) -> str:
    """The caller's address; empty where nobody can say.

    Anybody can write X-Forwarded-For, so only its last `proxies` entries count: each trusted proxy
    appended the address that it saw, and the first of those is the caller.
    """
    seen = [request.META.get("REMOTE_ADDR", "")]
    if proxies:
        forwarded = request.headers.get("X-Forwarded-For", "").split(",")
        seen = [*(one.strip() for one in forwarded if one.strip()), *seen]
        seen = seen[-(proxies + 1) :]
    try:
        return str(_plain(seen[0]))
    except ValueError:
        return ""


def networks(texts: Iterable[str]) -> list[Network]:
    """Ranges such as 10.20.0.0/16, or single addresses; `ValueError` carries what is none."""
    found = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text.strip(), strict=False))
        except ValueError:
            raise ValueError(text.strip()) from None
    return found


def within(address: str, ranges: Iterable[str]) -> bool:
    """Whether an address lies in one of the ranges; an unknown address lies in none."""
    try:
        one = _plain(address)
    except ValueError:
        return False
    return any(one in network for network in networks(ranges))


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """IPv4 addresses that a dual-stack socket writes as ::ffff:10.0.0.1 are IPv4 addresses."""
    one = ipaddress.ip_address(address)
    mapped = one.ipv4_mapped if isinstance(one, ipaddress.IPv6Address) else None
    return mapped or one
