"""Platform roles: given and taken by admins, and never without an admin."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.http import Http404

from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from tenants.access import PlatformAccess, platform_access, platform_of
from tenants.models import PlatformRole, User
from tenants.roles import LastAdmin, give_role, take_role
from tests.factories import NOON, make_person

pytestmark = pytest.mark.django_db
NOW: dict[str, Any] = {"now": NOON, "request_id": "request-0001"}


def somebody(username: str, *roles: str) -> PlatformAccess:
    user = make_person(username)
    for role in roles:
        PlatformRole.objects.create(user=user, role=role)
    return platform_of(user)


def roles(user: User) -> set[str]:
    return set(platform_of(user).roles)


def test_an_admin_gives_and_takes() -> None:
    admin, olm = somebody("asp", "admin"), make_person("olm")
    for _ in range(2):
        give_role(access=admin, username="olm", role="operator", **NOW)
    assert roles(olm) == {"operator"}
    take_role(access=admin, username="olm", role="operator", **NOW)
    assert roles(olm) == set()
    actions = list(AuditLine.objects.values_list("action", flat=True))
    assert actions == ["platform_role.given", "platform_role.taken"]


@pytest.mark.parametrize("role", ["auditor", "operator", "approver"])
def test_others_do_not(role: str) -> None:
    other = somebody("olm", role)
    with pytest.raises(NotPermitted):
        give_role(access=other, username="olm", role="admin", **NOW)
    with pytest.raises(NotPermitted):
        take_role(access=other, username="olm", role=role, **NOW)


def test_the_last_admin_stays() -> None:
    admin = somebody("asp", "admin")
    with pytest.raises(LastAdmin):
        take_role(access=admin, username="asp", role="admin", **NOW)
    gone = make_person("gone")
    gone.is_active = False
    gone.save()
    PlatformRole.objects.create(user=gone, role="admin")
    with pytest.raises(LastAdmin):
        take_role(access=admin, username="asp", role="admin", **NOW)
    somebody("second", "admin")
    take_role(access=admin, username="asp", role="admin", **NOW)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        pytest.param({"username": "nobody", "role": "admin"}, "username", id="nobody"),
        pytest.param({"username": "asp", "role": "king"}, "role", id="no such role"),
    ],
)
def test_what_is_wrong_is_named(asked: dict[str, str], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        give_role(access=somebody("asp", "admin"), **asked, **NOW)
    assert set(refused.value.fields) == {field}


def test_a_role_that_is_not_held_is_not_found() -> None:
    with pytest.raises(Http404):
        take_role(access=somebody("asp", "admin"), username="asp", role="auditor", **NOW)


def test_the_first_admin_is_made_by_a_command() -> None:
    asp = make_person("asp")
    for _ in range(2):
        call_command("makeadmin", "asp", stdout=StringIO())
    assert roles(asp) == {"admin"}
    assert AuditLine.objects.get().action == "platform_role.given"
    with pytest.raises(CommandError):
        call_command("makeadmin", "nobody")


def test_whoever_has_no_role_sees_no_platform() -> None:
    with pytest.raises(Http404):
        platform_access(make_person("sorrel"))
