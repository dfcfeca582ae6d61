"""Probes: answered by any address and scheme, honest about the database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from portal import probes
from tests.factories import make_person, make_tenant


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_a_kubelet_gets_an_answer_by_the_pods_address(path: str, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = Client().get(path, headers={"host": "10.1.2.3:8000"})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@contextmanager
def no_database() -> Iterator[None]:
    """PostgreSQL is where nobody listens."""
    connection: Any = probes.connection
    connection.close()
    host = connection.settings_dict["HOST"]
    try:
        connection.close_pool()
        connection.settings_dict["HOST"] = "127.0.0.1"
        connection.settings_dict["PORT"] = "9"
        connection.settings_dict["OPTIONS"]["pool"]["timeout"] = 0.2
        yield
    finally:
        connection.close()
        connection.close_pool()
        connection.settings_dict["HOST"], connection.settings_dict["PORT"] = host, ""
        connection.settings_dict["OPTIONS"]["pool"]["timeout"] = 10


@pytest.mark.django_db(transaction=True)
def test_without_a_database_it_is_alive_and_not_ready() -> None:
    with no_database():
        assert Client().get("/livez").status_code == 200
        assert Client().get("/readyz").status_code == 503


@pytest.mark.django_db(transaction=True)
def test_without_a_database_people_and_programs_are_told_to_come_again() -> None:
    person = make_person("plover", make_tenant("tidewater"))
    client = Client(raise_request_exception=False)
    client.force_login(person)
    with no_database():
        page = client.get("/t/tidewater/")
        answer = client.get(
            "/api/v1/tenants/tidewater/claims", headers={"authorization": "Bearer berth_a_b"}
        )
    assert (page.status_code, page["Retry-After"]) == (503, "5")
    assert "database does not answer" in page.text
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.json()["code"] == "DATABASE_AWAY"
