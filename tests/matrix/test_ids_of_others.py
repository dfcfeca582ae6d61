"""A tenant's owner who guesses ids of others at their own addresses gets what nothing gets."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from tests.factories import make_person, make_tenant
from tests.matrix.table import Row, all_rows
from tests.matrix.test_matrix import status, world  # noqa: F401 - the matrix's own world
from tests.matrix.world import World

pytestmark = pytest.mark.django_db
INSIDE = ("t/<slug:slug>/", "api/v1/tenants/<slug:slug>/")
#: What stands in place of an id that nobody gave; names of classes and nodes are everybody's.
NOTHING = {"public_id": "zzzzzzzz", "prefix": "0000000000", "username": "nobody", "view": "none"}


def guessed() -> list[Row]:
    """Rows inside a tenant that name one thing of it."""
    parameters = re.compile(rf"<\w+:({'|'.join(NOTHING)})>")
    return [
        row for row in all_rows() if row.route.startswith(INSIDE) and parameters.search(row.route)
    ]


@pytest.fixture
def guesser(world: World) -> Client:  # noqa: F811
    """An owner of a tenant that has nothing to do with those of the matrix."""
    client = Client()
    client.force_login(make_person("sorrel", make_tenant("chalk", ("chalk-x",)), "owner"))
    return client


@pytest.mark.parametrize("row", guessed(), ids=lambda row: f"{row.method} {row.route} {row.body}")
def test_at_ones_own_tenant_the_id_of_another_is_nothing(
    world: World,  # noqa: F811
    guesser: Client,
    row: Row,
) -> None:
    path = world.path(row.route).replace("/tidewater/", "/chalk/", 1)
    nothing = row.route.replace("<slug:slug>", "chalk", 1)
    for name, text in NOTHING.items():
        nothing = re.sub(rf"<\w+:{name}>", text, nothing)
    guess = status(guesser, row, path)
    assert guess == status(guesser, row, f"/{nothing}")
    assert guess in {"404", "204", "302"}, "ending what is not there is fine"
