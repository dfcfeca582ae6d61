"""URLs in CEL, as Go's net/url reads them (``apiserver/pkg/cel/library/urls.go``)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote_from_bytes, unquote_to_bytes

from devices.dra.cel.arguments import a_text
from devices.dra.cel.kinds import Url
from devices.dra.cel.values import CelError, no_overload

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_USER: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_HOST: Final = re.compile(r"[^ \x00-\x1f\x7f\"<>\\^`{|}%/?#]*")
#: What Go leaves as it is in a path, and what may stand there although Go would not write it so.
_PATH: Final = "/$&+,:;=@-._~"
_PATH_AS_GIVEN: Final = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/\[\]]|%[0-9A-Fa-f]{2})*")


def url(value: Any) -> Url:
    """``url("https://host:443/path?a=b")``: absolute, or a path from the root."""
    text = a_text(value)
    try:
        _parts(text, request=True)
        parts = _parts(text.partition("#")[0], request=False)
        if _BAD_ESCAPE.search(text.partition("#")[2]):
            raise CelError("invalid URL escape")
    except CelError as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from error
    scheme, host, path, query = parts
    return Url(text, scheme, host, path, _query(query))


def request_problem(text: str) -> str:
    """Why Go's ParseRequestURI would refuse a text; empty where it takes it."""
    try:
        _parts(text, request=True)
    except CelError as error:
        return f'parse "{text}": {error}'
    return ""


def _parts(text: str, *, request: bool) -> tuple[str, str, str, str]:
    """Scheme, host, path as given, and query of a URL."""
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise CelError("net/url: invalid control character in URL")
    if not text and request:
        raise CelError("empty url")
    if text == "*":
        return "", "", "*", ""
    if text.startswith(":"):
        raise CelError("missing protocol scheme")
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    rest, _, query = text[found.end() if found else 0 :].partition("?")
    if not rest.startswith("/"):
        if scheme:
            return scheme, "", "", query
        if request:
            raise CelError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise CelError("first path segment in URL cannot contain colon")
    host = ""
    if (scheme or (not request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest, host = slash + path, _host(authority)
    if _BAD_ESCAPE.search(rest):
        raise CelError("invalid URL escape")
    return scheme, host, rest, query


def _host(authority: str) -> str:
    user, at, host = authority.rpartition("@")
    if at and (not _USER.fullmatch(user) or _BAD_ESCAPE.search(user)):
        raise CelError("net/url: invalid userinfo")
    if host.startswith("["):
        inside, bracket, port = host.rpartition("]")
        if not bracket:
            raise CelError("missing ']' in host")
        if not _HOST.fullmatch(inside.replace("%25", "")):
            raise CelError("invalid character in host name")
    else:
        name, colon, number = host.rpartition(":")
        port = colon + number if colon else ""
        if "[" in (name or number) or "]" in (name or number):
            raise CelError("invalid character in host name")
        if _BAD_ESCAPE.search(host) or not _HOST.fullmatch(
            re.sub("%[89A-Fa-f][0-9A-Fa-f]", "", host)
        ):
            raise CelError("invalid character in host name")
    if port and not re.fullmatch(r":[0-9]*", port, re.ASCII):
        raise CelError(f"invalid port {port!r} after host")
    return unquote_to_bytes(host).decode("utf-8", "replace")


def _query(text: str) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for pair in text.split("&"):
        if not pair or ";" in pair or _BAD_ESCAPE.search(pair):
            continue
        name, _, value = pair.partition("=")
        out.setdefault(_plain(name), []).append(_plain(value))
    return out


def _plain(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ")).decode("utf-8", "replace")


def _hostname(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0] if "]" in host else host
    return host.partition(":")[0]


def _port(host: str) -> str:
    found = re.search(r":([0-9]*)$", host, re.ASCII)
    return found[1] if found else ""


def _escaped_path(path: str) -> str:
    if path == "*" or _PATH_AS_GIVEN.fullmatch(path):
        return path
    return quote_from_bytes(unquote_to_bytes(path), safe=_PATH)


def part(read: Callable[[Url], Any]) -> Callable[[Any], Any]:
    """One of the get… functions."""

    def reader(value: Any) -> Any:
        if not isinstance(value, Url):
            raise no_overload(value)
        return read(value)

    return reader


READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "getScheme": part(lambda found: found.scheme),
    "getHost": part(lambda found: found.host),
    "getHostname": part(lambda found: _hostname(found.host)),
    "getPort": part(lambda found: _port(found.host)),
    "getEscapedPath": part(lambda found: _escaped_path(found.path)),
    "getQuery": part(lambda found: found.query),
}
