"""Local accounts: made with a link instead of a password, closed, opened, let in again."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.http import Http404
from django.test import Client
from django.utils import timezone

from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted, Refused
from tenants import localaccounts as local
from tenants.access import PlatformAccess, platform_of
from tenants.models import AccountLink, PlatformRole, User
from tenants.roles import LastAdmin
from tests.factories import NOON, PASSWORD, make_person, make_tenant
from tests.tenants.test_people_api import JSON, by_token, code, in_person

pytestmark = pytest.mark.django_db
NOW: dict[str, Any] = {"now": NOON, "request_id": "request-0001"}
CHOSEN = "a lantern on the quay 9"


@pytest.fixture
def admin() -> PlatformAccess:
    user = make_person("asp")
    PlatformRole.objects.create(user=user, role="admin")
    return platform_of(user)


def tim(access: PlatformAccess, **changed: Any) -> local.NewLink:
    asked = {"username": "tim", "display_name": "Tim Tern", "email": "tim@example.com", **NOW}
    return local.make_person(access=access, **{**asked, **changed})


def actions() -> list[str]:
    return list(AuditLine.objects.order_by("number").values_list("action", flat=True))


def test_a_person_chooses_the_password_by_a_link_that_works_once(admin: PlatformAccess) -> None:
    made = tim(admin)
    assert not made.row.user.has_usable_password()
    assert made.text.partition(".")[2] not in str(vars(AccountLink.objects.get()))
    row = local.find_link(made.text, NOON)
    assert row == made.row
    with pytest.raises(Invalid) as weak:
        local.set_password(link_id=row.pk, password="tim", **NOW)
    assert "too short" in weak.value.fields["password"]
    user = local.set_password(link_id=row.pk, password=CHOSEN, **NOW)
    assert user.check_password(CHOSEN)
    assert local.find_link(made.text, NOON) is None
    with pytest.raises(Refused) as used:
        local.set_password(link_id=row.pk, password=CHOSEN, **NOW)
    assert used.value.code == "LINK_GONE"
    assert actions() == ["account.made", "account.password_set"]


@pytest.mark.parametrize(
    "changed, field",
    [
        pytest.param({"username": ""}, "username", id="no name"),
        pytest.param({"username": "t im"}, "username", id="a name with a space"),
        pytest.param({"username": "ASP"}, "username", id="somebody's name in capitals"),
        pytest.param({"display_name": "x" * 121}, "display_name", id="too long a name"),
        pytest.param({"email": "tim@"}, "email", id="half an address"),
        pytest.param({"email": "Asp@example.com"}, "email", id="somebody's address"),
    ],
)
def test_what_is_no_account(admin: PlatformAccess, changed: dict[str, str], field: str) -> None:
    with pytest.raises(Invalid) as wrong:
        tim(admin, **changed)
    assert list(wrong.value.fields) == [field]
    assert not User.objects.filter(display_name="Tim Tern").exists()


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(
            lambda admin, made: local.make_link(access=admin, username="tim", **NOW),
            id="a newer one is made",
        ),
        pytest.param(
            lambda admin, made: local.close_account(access=admin, username="tim", **NOW),
            id="the account is closed",
        ),
        pytest.param(
            lambda admin, made: AccountLink.objects.update(expires_at=NOON), id="time is over"
        ),
    ],
)
def test_a_link_ends_when(admin: PlatformAccess, happens: Any) -> None:
    made = tim(admin)
    happens(admin, made)
    assert local.find_link(made.text, NOON) is None
    assert local.find_link(f"{made.row.prefix}.guess", NOON) is None
    assert local.find_link("", NOON) is None


def test_a_closed_account_is_signed_out_and_comes_back_as_it_was(admin: PlatformAccess) -> None:
    rosa = make_person("rosa", make_tenant(), "owner")
    page = Client()
    page.post("/account/login/", {"login": "rosa", "password": PASSWORD})
    assert page.get("/t/tidewater/").status_code == 200
    for _ in range(2):
        left = local.close_account(access=admin, username="rosa", **NOW)
        assert left == ["tidewater"], "nobody is left who owns it"
    assert page.get("/t/tidewater/").status_code == 302
    assert rosa.usersession_set.count() == 0
    again = Client()
    again.post("/account/login/", {"login": "rosa", "password": PASSWORD})
    assert again.get("/t/tidewater/").status_code == 302
    with pytest.raises(Refused) as closed:
        local.make_link(access=admin, username="rosa", **NOW)
    assert closed.value.code == "ACCOUNT_CLOSED"
    for _ in range(2):
        local.open_account(access=admin, username="rosa", **NOW)
    again.post("/account/login/", {"login": "rosa", "password": PASSWORD})
    assert again.get("/t/tidewater/").status_code == 200
    assert actions() == ["account.closed", "account.opened"]
    assert AuditLine.objects.first().facts == {"without_owner": ["tidewater"]}  # type: ignore[union-attr]


def test_a_second_factor_is_removed_by_somebody_else(admin: PlatformAccess) -> None:
    rosa = make_person("rosa")
    Authenticator.objects.create(user=rosa, type=Authenticator.Type.TOTP, data={})
    for _ in range(2):
        local.reset_second_factor(access=admin, username="rosa", **NOW)
    assert not Authenticator.objects.exists()
    [line] = AuditLine.objects.all()
    assert (line.action, line.person) == ("second_factor.removed", admin.user.person)


ACTS = {
    "link": lambda access, name: local.make_link(access=access, username=name, **NOW),
    "close": lambda access, name: local.close_account(access=access, username=name, **NOW),
    "second factor": lambda access, name: local.reset_second_factor(
        access=access, username=name, **NOW
    ),
}


@pytest.mark.parametrize("act", ACTS)
def test_nobody_does_it_to_themselves_nor_without_the_role(admin: PlatformAccess, act: str) -> None:
    with pytest.raises(local.OwnAccount):
        ACTS[act](admin, "asp")
    with pytest.raises(Http404):
        ACTS[act](admin, "nobody")
    operator = make_person("olm")
    PlatformRole.objects.create(user=operator, role="operator")
    with pytest.raises(NotPermitted):
        ACTS[act](platform_of(operator), "asp")
    assert actions() == []


def test_the_last_admin_is_not_closed(admin: PlatformAccess) -> None:
    second = make_person("adder")
    PlatformRole.objects.create(user=second, role="admin")
    local.close_account(access=platform_of(second), username="asp", **NOW)
    admin.user.refresh_from_db()
    with pytest.raises(LastAdmin):
        local.close_account(access=admin, username="adder", **NOW)


# Pages


def test_an_admin_makes_a_person_in_the_pages_who_then_signs_in(admin: PlatformAccess) -> None:
    page = in_person(admin.user)
    answer = page.post("/platform/people/", {"username": "tim", "display_name": "Tim Tern"})
    text = answer.content.decode()
    assert "it is shown only this once" in text and "no-store" in answer.headers["Cache-Control"]
    found = re.search(r"/account/password/#(\S+?)<", text)
    assert found
    assert found[1] not in page.get("/platform/people/tim/").content.decode()

    person = Client()
    assert person.post("/account/password/", {"code": "wrong.text"}).status_code == 422
    assert person.post("/account/password/", {"code": found[1]}).status_code == 302
    assert "For <b>tim</b>" in person.get("/account/password/").content.decode()
    differ = person.post("/account/password/", {"password": CHOSEN, "again": "x"})
    assert differ.status_code == 422 and "The two differ" in differ.content.decode()
    weak = person.post("/account/password/", {"password": "12345678", "again": "12345678"})
    assert weak.status_code == 422
    done = person.post("/account/password/", {"password": CHOSEN, "again": CHOSEN}, follow=True)
    assert "Sign in as tim" in done.content.decode()
    person.post("/account/login/", {"login": "tim", "password": CHOSEN})
    assert person.get("/account/tokens/").status_code == 200


def test_the_list_says_how_people_sign_in(admin: PlatformAccess) -> None:
    tim(admin, now=timezone.now())
    Authenticator.objects.create(user=make_person("rosa"), type="totp", data={})
    text = in_person(admin.user).get("/platform/people/").content.decode()
    assert "3 accounts" in text
    assert "Waits for a password" in text and "with a second factor" in text
    text = in_person(admin.user).get("/platform/people/?q=tern").content.decode()
    assert "1 account like" in text and "rosa" not in text


def test_an_auditor_sees_and_is_told_who_may(admin: PlatformAccess) -> None:
    auditor = make_person("ada")
    PlatformRole.objects.create(user=auditor, role="auditor")
    page = in_person(auditor)
    text = page.get("/platform/people/asp/").content.decode()
    assert "one must be admin" in text and "Make a link" not in text
    assert page.post("/platform/people/", {"username": "tim"}).status_code == 403
    assert page.post("/platform/people/asp/close/").status_code == 403
    assert in_person(make_person("basil")).get("/platform/people/").status_code == 404


# API


def test_the_same_by_api(admin: PlatformAccess) -> None:
    program = by_token(admin.user, "read", "admin")
    people = "/api/v1/platform/people"
    made = program.post(people, {"username": "tim", "name": "Tim Tern"}, JSON)
    assert made.status_code == 201
    text = made.json()["link"].partition("#")[2]
    assert local.find_link(text, timezone.now())
    seen = program.get(f"{people}/tim").json()
    assert (seen["name"], seen["active"], seen["second_factor"]) == ("Tim Tern", True, False)
    again = program.post(f"{people}/tim/link")
    assert again.status_code == 201
    assert local.find_link(text, timezone.now()) is None
    assert program.patch(f"{people}/tim", {"active": False}, JSON).json()["active"] is False
    assert code(program.post(f"{people}/tim/link")) == (422, "ACCOUNT_CLOSED")
    assert program.patch(f"{people}/tim", {"active": True}, JSON).json()["active"] is True
    assert program.delete(f"{people}/tim/second-factor").status_code == 204
    assert code(program.post(f"{people}/asp/link")) == (422, "OWN_ACCOUNT")
    assert code(program.post(people, {"username": "tim"}, JSON)) == (422, "INVALID")
    assert program.get(f"{people}/nobody").status_code == 404
    reader = by_token(admin.user, "read")
    assert code(reader.post(people, {"username": "x"}, JSON)) == (403, "NOT_PERMITTED")
    assert len(reader.get(people).json()["results"]) == 2


def test_links_last_three_days(admin: PlatformAccess) -> None:
    made = tim(admin)
    assert made.row.expires_at == NOON + timedelta(days=3)
    assert local.find_link(made.text, NOON + timedelta(days=2, hours=23))
