"""Reads and writes the matrix: one row per address and method, one cell per kind of caller.

A row is `METHOD route ?query body | cells`. The route is written as in urls.py, the body as a form
(a=1&b=2) or as JSON; query and body are left out where none is needed. A cell is the status that
this caller must get; `in` is a redirect to sign in. Cells stand in the order of `CALLERS`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from django.urls import URLPattern, URLResolver, get_resolver

FOLDER = Path(__file__).parent
FILES = ("pages.txt", "api.txt")
SIGN_IN = "in"
CALLERS = (
    "owner",  # of the tenant
    "member",  # of it
    "viewer",  # of it
    "stranger",  # owner of another tenant
    "operator",  # of the platform, in no tenant; so are the next three
    "auditor",
    "approver",
    "admin",
    "anonymous",
    "expired",  # the owner's token, an hour late
    "reads",  # the owner's token with the scope read and no other
    "asks",  # the owner's token with the scope request and no other
)
METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Row:
    """What every caller must get at one address with one method."""

    method: str
    route: str
    body: str
    cells: tuple[str, ...]

    @property
    def key(self) -> tuple[str, str]:
        return self.method, self.route

    def __str__(self) -> str:
        head = " ".join(part for part in (f"{self.method:<6}", self.route, self.body) if part)
        return (
            f"{head:<88} | "
            + " ".join(f"{cell:<{width(n)}}" for n, cell in enumerate(self.cells)).rstrip()
        )


def width(column: int) -> int:
    """How wide a column is: as its heading."""
    return max(3, len(CALLERS[column]))


def parse(line: str) -> Row:
    """One line of a file; a row without cells is one that nobody has filled yet."""
    head, _, cells = line.partition("|")
    method, route, *body = head.split(maxsplit=2)
    return Row(method, route, body[0].strip() if body else "", tuple(cells.split()))


def read(file: str) -> list[Row]:
    """The rows of one file; lines that begin with # are for people."""
    lines = (FOLDER / file).read_text().splitlines()
    return [parse(line) for line in lines if line.strip() and not line.startswith("#")]


def all_rows() -> list[Row]:
    return [row for file in FILES for row in read(file)]


@dataclass(frozen=True, slots=True)
class Address:
    """An address that Berth answers; `methods` are known for operations of the API only."""

    route: str
    methods: tuple[str, ...]


def addresses() -> list[Address]:
    """Every address, as urls.py writes it."""
    return list(_below(get_resolver(), ""))


def missing(rows: Iterable[Row]) -> list[str]:
    """Addresses and operations without a row; pages need one row at least."""
    rows = list(rows)
    known, routes = {row.key for row in rows}, {row.route for row in rows}
    lacking = []
    for address in addresses():
        if address.methods:
            lacking += [
                f"{method} {address.route}"
                for method in address.methods
                if (method, address.route) not in known
            ]
        elif address.route not in routes:
            lacking.append(f"GET {address.route}")
    return lacking


def surplus(rows: Iterable[Row]) -> list[str]:
    """Rows of addresses that exist no longer."""
    existing = {address.route for address in addresses()}
    return [f"{row.method} {row.route}" for row in rows if row.route not in existing]


def _below(resolver: URLResolver, prefix: str) -> Iterable[Address]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLPattern):
            view = getattr(pattern.callback, "cls", None)
            methods = tuple(one.upper() for one in METHODS if view and hasattr(view, one))
            # The root is written as a slash, so that a row never lacks its route.
            yield Address(route or "/", methods)
        else:
            yield from _below(pattern, route)
