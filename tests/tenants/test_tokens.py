"""API tokens: shown once, kept as a digest, dead when ended, revoked, or without their person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from tenants.access import Access, PlatformAccess, platform_of
from tenants.models import ApiToken, PlatformRole
from tenants.tokens import NewToken, find_token, make_token, revoke_token
from tests.factories import NOON, make_access, make_person

pytestmark = pytest.mark.django_db


def a_token(access: Access | PlatformAccess, **changed: Any) -> NewToken:
    asked: dict[str, Any] = {
        "access": access,
        "name": "nightly",
        "scopes": ["read"],
        "expires_at": NOON + timedelta(days=30),
        "now": NOON,
        "request_id": "request-0001",
    }
    return make_token(**{**asked, **changed})


def test_a_token_is_found_by_its_text_and_not_kept_in_clear() -> None:
    made = a_token(make_access())
    assert find_token(made.text, NOON) == made.row
    secret = made.text.rsplit("_", 1)[1]
    assert secret not in str(vars(ApiToken.objects.get()))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "berth",
        "berth__",
        "berth_0123456789_wrong",
        "other_{prefix}_{secret}",
        "berth_{prefix}_x",
    ],
)
def test_other_texts_find_nothing(text: str) -> None:
    made = a_token(make_access())
    _, prefix, secret = made.text.split("_", 2)
    assert find_token(text.format(prefix=prefix, secret=secret), NOON) is None


def test_it_ends_at_its_time() -> None:
    made = a_token(make_access())
    assert find_token(made.text, made.row.expires_at - timedelta(seconds=1))
    assert find_token(made.text, made.row.expires_at) is None


def test_revoking_twice_is_one_audit_line() -> None:
    access = make_access()
    made = a_token(access)
    for _ in range(2):
        revoke_token(user=access.user, prefix=made.row.prefix, now=NOON, request_id="request-0002")
    assert find_token(made.text, NOON) is None
    assert AuditLine.objects.filter(action="token.revoked").count() == 1


def test_a_disabled_person_has_no_tokens() -> None:
    access = make_access()
    made = a_token(access)
    access.user.is_active = False
    access.user.save()
    assert find_token(made.text, NOON) is None


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        pytest.param({"name": " "}, "name", id="no name"),
        pytest.param({"scopes": []}, "scopes", id="no scope"),
        pytest.param({"scopes": ["everything"]}, "scopes", id="a scope that does not exist"),
        pytest.param({"expires_at": NOON}, "expires_at", id="ended already"),
        pytest.param({"networks": ["10.0.0.0/40"]}, "networks", id="no address range"),
        pytest.param({"networks": [f"10.0.{n}.0/24" for n in range(21)]}, "networks", id="many"),
        pytest.param({"expires_at": NOON + timedelta(days=400)}, "expires_at", id="too long"),
    ],
)
def test_what_is_wrong_is_named(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        a_token(make_access(), **changed)
    assert set(refused.value.fields) == {field}
    assert not ApiToken.objects.exists()


def test_a_viewer_makes_none() -> None:
    with pytest.raises(NotPermitted):
        a_token(make_access(role="viewer"))


def test_a_person_of_the_platform_makes_tokens_for_it_and_nobody_else() -> None:
    admin = make_person("asp")
    PlatformRole.objects.create(user=admin, role="admin")
    made = a_token(platform_of(admin), scopes=["read", "operate"])
    assert (made.row.tenant, made.row.where) == (None, "the platform")
    with pytest.raises(Invalid):
        a_token(platform_of(admin), scopes=["request"])
    with pytest.raises(NotPermitted):
        a_token(platform_of(make_person("sorrel")))


RANGES = ["10.20.0.0/16", "2001:db8::/32"]


@pytest.mark.parametrize(
    ("address", "found"),
    [
        pytest.param("10.20.3.4", True, id="inside"),
        pytest.param("::ffff:10.20.3.4", True, id="inside, as a dual-stack socket writes it"),
        pytest.param("2001:db8:1::2", True, id="inside, version 6"),
        pytest.param("10.21.0.1", False, id="outside"),
        pytest.param("", False, id="unknown is outside"),
    ],
)
def test_a_token_of_ranges_works_from_there_only(address: str, found: bool) -> None:
    made = a_token(make_access(), networks=RANGES)
    assert (find_token(made.text, NOON, address=address) is not None) is found
    assert AuditLine.objects.filter(action="token.refused").exists() is not found


def test_being_refused_again_and_again_is_one_line_a_minute() -> None:
    made = a_token(make_access(), networks=RANGES)
    for seconds in (0, 1, 59, 70):
        assert find_token(made.text, NOON + timedelta(seconds=seconds), address="192.0.2.1") is None
    lines = AuditLine.objects.filter(action="token.refused")
    assert [line.facts["address"] for line in lines] == ["192.0.2.1"] * 2


def test_the_last_use_is_remembered_with_its_address() -> None:
    made = a_token(make_access())
    find_token(made.text, NOON, address="192.0.2.7")
    made.row.refresh_from_db()
    assert (made.row.last_used_at, made.row.last_used_from) == (NOON, "192.0.2.7")
    find_token(made.text, NOON + timedelta(seconds=5), address="192.0.2.8")
    made.row.refresh_from_db()
    assert made.row.last_used_from == "192.0.2.8", "another address is told at once"
