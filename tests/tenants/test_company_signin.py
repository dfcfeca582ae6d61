"""Signing in with the company's account, against an OpenID provider that runs as a process."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from django.test import Client
from pytest_django import Settings

from playground.running.ports import free_port
from portal.audit.models import AuditLine
from tenants.models import GroupRole, Membership, PlatformRole, User
from tests.factories import PASSWORD, make_person, make_tenant

pytestmark = pytest.mark.django_db
UP_WITHIN = 30.0
LOGIN = "/account/oidc/company/login/"


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The address of a provider of our own."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address, end = f"http://127.0.0.1:{port}", time.monotonic() + UP_WITHIN
    while True:
        try:
            requests.get(f"{address}/jwks", timeout=1).raise_for_status()
            break
        except requests.ConnectionError:
            if time.monotonic() > end or process.poll() is not None:
                process.kill()
                pytest.fail("The OpenID provider did not start", pytrace=False)
            time.sleep(0.1)
    yield address
    process.terminate()
    process.wait(timeout=10)


def offered(settings: Settings, address: str) -> None:
    company = settings.SOCIALACCOUNT_PROVIDERS["openid_connect"]
    app = {
        "provider_id": "company",
        "name": "company account",
        "client_id": "berth",
        "secret": "secret",
        "settings": {"server_url": address},
    }
    settings.SOCIALACCOUNT_PROVIDERS = {"openid_connect": {**company, "APPS": [app]}}


@pytest.fixture
def company(provider: str, settings: Settings) -> str:
    offered(settings, provider)
    return provider


def knows(provider: str, person: str, **claims: Any) -> None:
    """The provider's own record of somebody, from now on."""
    requests.put(f"{provider}/users/{person}", json=claims, timeout=5).raise_for_status()


def sign_in(person: str, client: Client | None = None, **said: str) -> tuple[Client, Any]:
    """The whole dance: our button, their page, our callback."""
    client = client or Client()
    away = client.post(LOGIN).headers["Location"]
    assert "code_challenge=" in away and "state=" in away
    back = requests.post(away, data=said or {"sub": person}, allow_redirects=False, timeout=5)
    return client, client.get(back.headers["Location"])


def stands(username: str) -> tuple[dict[str, str], set[str]]:
    user = User.objects.get(username=username)
    memberships = Membership.objects.filter(user=user).values_list("tenant__slug", "role")
    roles = PlatformRole.objects.filter(user=user).values_list("role", flat=True)
    return dict(memberships), set(roles)


def test_groups_become_roles_and_roles_go_with_the_groups(company: str) -> None:
    tenant = make_tenant()
    GroupRole.objects.create(group="vision", tenant=tenant, role="member")
    GroupRole.objects.create(group="sre", role="operator")
    knows(company, "1001", preferred_username="tim", name="Tim Plover", groups=["vision", "sre"])
    client, answer = sign_in("1001")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/")
    assert client.get("/t/tidewater/").status_code == 200
    assert stands("tim") == ({"tidewater": "member"}, {"operator"})
    user = User.objects.get(username="tim")
    assert (user.display_name, user.has_usable_password()) == ("Tim Plover", False)
    lines = AuditLine.objects.filter(person=user.person)
    assert {line.action for line in lines} == {"member.by_groups", "platform_role.by_groups"}
    assert all(line.request_id == answer.headers["X-Request-ID"] for line in lines)

    knows(company, "1001", preferred_username="tim", groups=["vision"])
    sign_in("1001")
    assert stands("tim") == ({"tidewater": "member"}, set())
    knows(company, "1001", preferred_username="tim")
    sign_in("1001")
    assert stands("tim") == ({}, set())
    assert client.get("/t/tidewater/").status_code == 404, "also for sessions from before"
    assert User.objects.count() == 1


def test_whoever_has_no_mapped_group_comes_in_without_a_role(company: str) -> None:
    knows(company, "1002", preferred_username="new", groups=["canteen"])
    client, _ = sign_in("1002")
    assert "belong to no tenant" in client.get("/").content.decode()


def test_a_local_account_of_the_same_name_and_mail_stays_its_own(company: str) -> None:
    local = make_person("asp")
    PlatformRole.objects.create(user=local, role="admin")
    knows(company, "1003", preferred_username="asp", email="asp@example.com", email_verified=True)
    client, _ = sign_in("1003")
    other = User.objects.exclude(pk=local.pk).get()
    assert other.username != "asp"
    assert client.get("/platform/roles/").status_code == 404
    assert Client().login(username="asp", password=PASSWORD)


def test_nobody_joins_the_companys_account_to_a_local_one(company: str) -> None:
    knows(company, "1004", preferred_username="x")
    client = Client()
    client.force_login(make_person("rosa"))
    away = client.post(f"{LOGIN}?process=connect").headers["Location"]
    back = requests.post(away, data={"sub": "1004"}, allow_redirects=False, timeout=5)
    assert client.get(back.headers["Location"]).status_code == 401
    assert not User.objects.get().socialaccount_set.exists()


def test_saying_no_at_the_provider(company: str) -> None:
    client, answer = sign_in("1005", action="deny")
    # A provider that forgets our state (the one of Python 3.11 does) says anybody's no.
    if answer.status_code == 401:
        said = answer.content.decode()
        assert "You are not signed in" in said
    else:
        said = client.get(answer.headers["Location"]).content.decode()
        assert "You did not sign in" in said
    assert not User.objects.exists()


def test_an_answer_that_nobody_asked_for_signs_nobody_in(company: str) -> None:
    knows(company, "1006", preferred_username="victim")
    away = Client().post(LOGIN).headers["Location"]
    back = requests.post(away, data={"sub": "1006"}, allow_redirects=False, timeout=5)
    elsewhere = Client()
    assert elsewhere.get(back.headers["Location"]).status_code == 401
    assert not User.objects.exists()


def test_a_provider_that_is_away_is_said_to_be_away(settings: Settings) -> None:
    offered(settings, f"http://127.0.0.1:{free_port()}")
    answer = Client().post(LOGIN)
    assert answer.status_code == 503
    assert "did not answer" in answer.content.decode()


def test_the_way_in_offers_what_there_is(company: str) -> None:
    text = Client().get("/account/login/").content.decode()
    assert "Continue with company account" in text and "or a local account" in text


def test_without_a_provider_there_are_local_accounts_only() -> None:
    text = Client().get("/account/login/").content.decode()
    assert "Continue with" not in text and "or a local account" not in text
    assert Client().post(LOGIN).status_code == 404
