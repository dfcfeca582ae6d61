"""Every address × every kind of caller: what each gets is written down, and nothing is left out.

A new address fails `test_every_address_has_a_row`; docs/rights.md says how to add its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import transaction
from django.test import Client, override_settings
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from tests.matrix.table import (
    CALLERS,
    FILES,
    FOLDER,
    SIGN_IN,
    Row,
    all_rows,
    missing,
    parse,
    read,
    surplus,
)
from tests.matrix.world import World, build

pytestmark = pytest.mark.django_db
QUICK = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """One of everything, made once; each request's effects are undone, and at last the world.

    An event stream gives its connection back, which would end all that, so it keeps it here.
    """

    class Kept:
        def close(self) -> None:
            pass

    with (
        django_db_blocker.unblock(),
        pytest.MonkeyPatch.context() as patch,
        override_settings(PASSWORD_HASHERS=QUICK, ACCOUNT_RATE_LIMITS={}),
        transaction.atomic(),
    ):
        patch.setattr("devices.views.events.connection", Kept())
        yield build()
        transaction.set_rollback(True)


def in_time(body: str) -> str:
    """A body with `{soon}`, a moment in two days, and `{day}`, its day, filled in."""
    soon = timezone.now() + timedelta(days=2)
    return body.replace("{soon}", soon.isoformat()).replace("{day}", soon.date().isoformat())


def status(client: Client, row: Row, path: str) -> str:
    """What one caller gets; whatever it did is undone."""
    for_programs = row.route.startswith("api/v1/")
    kind = "application/json" if for_programs else "application/x-www-form-urlencoded"
    said = in_time(row.body)
    query, _, body = said.partition(" ") if said.startswith("?") else ("", "", said)
    if for_programs and row.method != "GET" and not body:
        body = "{}"
    client.raise_request_exception = False
    with transaction.atomic():
        if row.method == "GET":
            answer = client.get(path + query)
        else:
            answer = client.generic(row.method, path + query, body, content_type=kind)
        transaction.set_rollback(True)
    to = answer.headers.get("Location", "")
    return SIGN_IN if answer.status_code == 302 and "/login/" in to else str(answer.status_code)


def cells(world: World, row: Row) -> tuple[str, ...]:
    path = world.path(row.route)
    return tuple(status(world.callers[caller](), row, path) for caller in CALLERS)


@pytest.mark.parametrize("row", all_rows(), ids=lambda row: f"{row.method} {row.route}")
def test_everybody_gets_what_is_written(world: World, row: Row) -> None:
    assert len(row.cells) == len(CALLERS), "a cell is missing"
    found = cells(world, row)
    assert dict(zip(CALLERS, found, strict=True)) == dict(zip(CALLERS, row.cells, strict=True))


def test_every_address_has_a_row(world: World, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--write-golden"):
        write(world)
    assert missing(all_rows()) == [], "make golden adds them; read what it wrote, cell by cell"
    empty = [f"{row.method} {row.route}" for row in all_rows() if not row.cells]
    assert empty == [], "make golden fills them; read what it wrote, cell by cell"


def test_no_row_is_about_an_address_that_is_gone() -> None:
    assert surplus(all_rows()) == []


def test_no_operation_stands_twice_with_the_same_body() -> None:
    keys = [(row.key, row.body) for row in all_rows()]
    assert len(set(keys)) == len(keys)


def write(world: World) -> None:
    """Adds rows that are missing, and cells to rows without any, for somebody to read."""
    for text in missing(all_rows()):
        method, route = text.split()
        file = FOLDER / FILES[route.startswith("api/v1/")]
        file.write_text(f"{file.read_text().rstrip()}\n{method} {route} | \n")
    for file in FILES:
        lines = []
        for line in (FOLDER / file).read_text().splitlines():
            row = None if not line.strip() or line.startswith("#") else parse(line)
            lines.append(line if row is None else str(row if row.cells else filled(world, row)))
        (FOLDER / file).write_text("\n".join(lines) + "\n")


def filled(world: World, row: Row) -> Row:
    """The row with what callers get now; a page that takes no GET is asked with POST."""
    found = replace(row, cells=cells(world, row))
    if set(found.cells) == {"405"} and row.method == "GET":
        return filled(world, replace(row, method="POST"))
    return found


def test_the_files_are_as_they_would_be_written() -> None:
    for file in FILES:
        rows = [str(row) for row in read(file)]
        lines = (FOLDER / file).read_text().splitlines()
        assert [line for line in lines if line and not line.startswith("#")] == rows
