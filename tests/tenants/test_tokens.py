"""API tokens: shown once, kept as a digest, dead when ended, revoked, or without their person."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from tenants.access import Access
from tenants.models import ApiToken
from tenants.tokens import NewToken, find_token, make_token, revoke_token
from tests.factories import NOON, make_access

pytestmark = pytest.mark.django_db


def a_token(access: Access, **changed: Any) -> NewToken:
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
        revoke_token(access=access, prefix=made.row.prefix, now=NOON, request_id="request-0002")
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
