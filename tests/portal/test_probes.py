"""Probes: answered by any address and scheme, honest about the database."""

from __future__ import annotations

import pytest
from django.test import Client
from pytest_django import Settings

from portal import probes


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/livez", "/readyz"])
def test_a_kubelet_gets_an_answer_by_the_pods_address(path: str, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    answer = Client().get(path, headers={"host": "10.1.2.3:8000"})
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db(transaction=True)
def test_without_a_database_it_is_alive_and_not_ready(settings: Settings) -> None:
    connection = probes.connection
    connection.close()
    host = connection.settings_dict["HOST"]
    try:
        connection.close_pool()
        connection.settings_dict["HOST"] = "127.0.0.1"
        connection.settings_dict["PORT"] = "9"
        connection.settings_dict["OPTIONS"]["pool"]["timeout"] = 0.2
        assert Client().get("/livez").status_code == 200
        assert Client().get("/readyz").status_code == 503
    finally:
        connection.close()
        connection.close_pool()
        connection.settings_dict["HOST"], connection.settings_dict["PORT"] = host, ""
        connection.settings_dict["OPTIONS"]["pool"]["timeout"] = 10
