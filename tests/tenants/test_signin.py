"""Local accounts: second factor, sessions, and a lock-out that never locks out the owner."""

from __future__ import annotations

import re
from typing import Any

import pytest
from allauth.mfa.totp.internal.auth import (
    format_hotp_value,
    hotp_value,
    yield_hotp_counters_from_time,
)
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client, TestCase

from portal.audit.models import AuditLine
from tests.factories import PASSWORD, make_person

pytestmark = pytest.mark.django_db
LOGIN = "/account/login/"
WRONG = 5  # so many failures are allowed (settings)


@pytest.fixture(autouse=True)
def nobody_failed_yet(servers: None) -> None:
    cache.clear()


def at(address: str) -> Client:
    return Client(REMOTE_ADDR=address)


def tries(client: Client, password: str, username: str = "rosa", **headers: str) -> bool:
    """Whether that lets them in."""
    said = {"login": username, "password": password}
    answer = client.post(LOGIN, said, headers=headers)
    return bool(answer.status_code == 302)


def test_guessing_from_elsewhere_locks_out_the_guesser_only() -> None:
    make_person("rosa")
    at_home, guesser = at("192.0.2.1"), at("203.0.113.66")
    assert tries(at_home, PASSWORD)
    for _ in range(WRONG):
        assert not tries(guesser, "guess")
    assert not tries(guesser, PASSWORD), "even the right one, for now"
    assert "Too many" in guesser.post(LOGIN, {"login": "rosa", "password": "x"}).content.decode()
    assert tries(at("192.0.2.1"), PASSWORD), "the owner signs in at home"
    assert at_home.get("/account/tokens/").status_code == 200, "and stays signed in"


def test_a_session_goes_on_even_when_its_own_address_is_locked_out() -> None:
    make_person("rosa")
    page = at("192.0.2.1")
    assert tries(page, PASSWORD)
    for _ in range(WRONG):
        tries(at("192.0.2.1"), "guess")
    assert not tries(at("192.0.2.1"), PASSWORD)
    assert page.get("/account/tokens/").status_code == 200


def test_nobody_gets_more_tries_by_claiming_to_be_elsewhere() -> None:
    make_person("rosa")
    for number in range(WRONG):
        tries(at("203.0.113.66"), "guess", **{"X-Forwarded-For": f"198.51.100.{number}"})
    claims = {"X-Forwarded-For": "198.51.100.99"}
    assert not tries(at("203.0.113.66"), PASSWORD, **claims)


def test_one_address_cannot_try_many_accounts() -> None:
    for number in range(11):
        make_person(f"person{number}")
    guesser = at("203.0.113.66")
    for number in range(10):
        tries(guesser, "guess", f"person{number}")
    assert not tries(guesser, PASSWORD, "person10")


def code_of(secret: str) -> str:
    return str(format_hotp_value(hotp_value(secret, next(iter(yield_hotp_counters_from_time())))))


def with_second_factor(page: Client) -> tuple[str, list[str]]:
    """Sets up an app in the pages; returns its secret and the recovery codes."""
    page.post("/account/reauthenticate/", {"password": PASSWORD})
    secret = page.get("/account/2fa/totp/activate/").context["form"].secret
    with TestCase.captureOnCommitCallbacks(execute=True):
        answer = page.post("/account/2fa/totp/activate/", {"code": code_of(secret)}, follow=True)
    text = page.get("/account/2fa/recovery-codes/").content.decode()
    codes = re.search(r'<pre id="recovery-codes"[^>]*>(.*?)</pre>', text, re.DOTALL)
    assert answer.status_code == 200 and codes
    return secret, codes[1].split()


def test_the_second_factor_in_the_pages_and_in_the_audit() -> None:
    rosa = make_person("rosa")
    page = at("192.0.2.1")
    tries(page, PASSWORD)
    assert "Not set up" in page.get("/account/2fa/").content.decode()
    _, codes = with_second_factor(page)
    assert len(codes) == 10
    assert "10 of 10 codes are unused" in page.get("/account/2fa/").content.decode()

    elsewhere = at("192.0.2.1")
    tries(elsewhere, PASSWORD)
    assert elsewhere.get("/account/tokens/").status_code == 302, "the password is not enough"
    text = elsewhere.get("/account/2fa/authenticate/").content.decode()
    assert "One more step" in text
    wrong = elsewhere.post("/account/2fa/authenticate/", {"code": "000000"})
    assert wrong.status_code == 200
    elsewhere.post("/account/2fa/authenticate/", {"code": codes[0]})
    assert elsewhere.get("/account/tokens/").status_code == 200
    assert "9 of 10 codes are unused" in elsewhere.get("/account/2fa/").content.decode()

    assert (
        "Make new recovery codes?"
        in page.get("/account/2fa/recovery-codes/generate/").content.decode()
    )
    with TestCase.captureOnCommitCallbacks(execute=True):
        page.post("/account/2fa/recovery-codes/generate/")
    assert "10 of 10" in page.get("/account/2fa/").content.decode()
    assert (
        "Remove the authenticator app?"
        in page.get("/account/2fa/totp/deactivate/").content.decode()
    )
    page.post("/account/2fa/totp/deactivate/")
    assert tries(at("192.0.2.1"), PASSWORD)
    told = [(line.action, line.facts["kind"]) for line in AuditLine.objects.order_by("number")]
    app, codes_ = "totp", "recovery_codes"
    assert told == [
        ("second_factor.set_up", app),
        ("second_factor.set_up", codes_),
        ("second_factor.renewed", codes_),
        ("second_factor.removed", app),
        ("second_factor.removed", codes_),
    ]
    assert {line.subject for line in AuditLine.objects.all()} == {f"person {rosa.person}"}


def test_who_lost_phone_and_codes_is_let_in_by_an_administrator() -> None:
    make_person("rosa")
    page = at("192.0.2.1")
    tries(page, PASSWORD)
    with_second_factor(page)
    call_command("removesecondfactor", "rosa")
    line = AuditLine.objects.order_by("number").last()
    assert line is not None and (line.action, line.person) == ("second_factor.removed", None)
    again = at("192.0.2.1")
    tries(again, PASSWORD)
    assert again.get("/account/tokens/").status_code == 200


def test_sessions_are_listed_and_ended_one_by_one() -> None:
    rosa = make_person("rosa")
    here, there = at("192.0.2.1"), at("198.51.100.7")
    for page in (here, there):
        tries(page, PASSWORD)
        page.get("/account/tokens/")
    text = here.get("/account/sessions/").content.decode()
    assert "198.51.100.7" in text and "2 sessions" in text
    other = rosa.usersession_set.get(ip="198.51.100.7")
    stranger = at("192.0.2.99")
    make_person("stranger")
    tries(stranger, PASSWORD, "stranger")
    assert stranger.post(f"/account/sessions/{other.pk}/end/").status_code == 404
    here.post(f"/account/sessions/{other.pk}/end/")
    assert there.get("/account/tokens/").status_code == 302
    assert here.get("/account/tokens/").status_code == 200


@pytest.mark.parametrize(
    "path", ["/account/password/change/", "/account/2fa/", "/account/2fa/totp/activate/"]
)
def test_the_companys_people_keep_passwords_and_factors_there(path: str) -> None:
    person: Any = make_person("tim")
    person.set_unusable_password()
    person.save()
    page = Client()
    page.force_login(person)
    answer = page.get(path)
    assert (answer.status_code, "COMPANY_ACCOUNT" in answer.content.decode()) == (422, True)
