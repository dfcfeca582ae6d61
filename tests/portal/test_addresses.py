"""Where a request comes from: only what trusted proxies wrote counts."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from portal.addresses import client_address


@pytest.mark.parametrize(
    ("forwarded", "proxies", "address"),
    [
        pytest.param(None, 0, "10.0.0.9", id="the connection itself"),
        pytest.param("6.6.6.6", 0, "10.0.0.9", id="anybody can claim to be anywhere"),
        pytest.param("192.0.2.1", 1, "192.0.2.1", id="one proxy wrote it"),
        pytest.param("6.6.6.6, 192.0.2.1", 1, "192.0.2.1", id="what came before it is a claim"),
        pytest.param("6.6.6.6, 192.0.2.1, 10.1.1.1", 2, "192.0.2.1", id="two proxies"),
        pytest.param(None, 2, "10.0.0.9", id="somebody went round the proxies"),
        pytest.param("nonsense", 1, "", id="unknown is said to be unknown"),
    ],
)
def test_the_callers_address(forwarded: str | None, proxies: int, address: str) -> None:
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request = RequestFactory().get("/", headers=headers, REMOTE_ADDR="10.0.0.9")
    assert client_address(request, proxies=proxies) == address
