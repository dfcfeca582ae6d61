"""Members: invited with a secret that works once, changed and removed, and never without owner."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import Http404

from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted, Refused
from tenants.access import Access, tenant_for
from tenants.members import (
    AlreadyMember,
    LastOwner,
    NewInvitation,
    accept,
    change_role,
    find_invitation,
    invite,
    remove,
    revoke_invitation,
)
from tenants.models import Invitation, Membership, Tenant
from tests.factories import NOON, make_access, make_person

pytestmark = pytest.mark.django_db
NOW: dict[str, Any] = {"now": NOON, "request_id": "request-0001"}
DAY = timedelta(days=1)


def an_invitation(access: Access, **changed: Any) -> NewInvitation:
    asked = {"access": access, "role": "member", "note": "Tim", "lasts": DAY, **NOW}
    return invite(**{**asked, **changed})


def roles(access: Access) -> dict[str, str]:
    rows = Membership.objects.filter(tenant=access.tenant)
    return dict(rows.values_list("user__username", "role"))


def test_an_invitation_makes_whoever_brings_it_a_member_once() -> None:
    access = make_access("rosa", "owner")
    made = an_invitation(access)
    assert made.text.partition(".")[2] not in str(vars(Invitation.objects.get()))
    found = find_invitation(made.text, NOON)
    assert found == made.row
    accept(user=make_person("tim"), invitation_id=found.pk, **NOW)
    assert roles(access) == {"rosa": "owner", "tim": "member"}
    assert find_invitation(made.text, NOON) is None
    with pytest.raises(Refused) as refused:
        accept(user=make_person("iris"), invitation_id=found.pk, **NOW)
    assert refused.value.code == "INVITATION_GONE"
    assert list(AuditLine.objects.values_list("action", flat=True)) == [
        "member.invited",
        "member.joined",
    ]


def revoked(access: Access, made: NewInvitation) -> None:
    for _ in range(2):
        revoke_invitation(access=access, prefix=made.row.prefix, **NOW)


def demoted(access: Access, made: NewInvitation) -> None:
    make_person("second", access.tenant, "owner")
    change_role(access=access, username=access.user.username, role="member", **NOW)


def closing(access: Access, made: NewInvitation) -> None:
    Tenant.objects.update(state="closing")


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(revoked, id="taken back"),
        pytest.param(demoted, id="its maker is no owner any more"),
        pytest.param(closing, id="the tenant is being closed"),
    ],
)
def test_an_invitation_that_is_good_no_longer(happens: Any) -> None:
    access = make_access("rosa", "owner")
    made = an_invitation(access)
    happens(access, made)
    assert find_invitation(made.text, NOON) is None


@pytest.mark.parametrize("text", ["", ".", "nothing", "{prefix}.wrong", "0000000000.{secret}"])
def test_other_texts_invite_nobody(text: str) -> None:
    made = an_invitation(make_access("rosa", "owner"))
    prefix, _, secret = made.text.partition(".")
    assert find_invitation(text.format(prefix=prefix, secret=secret), NOON) is None


def test_it_ends_at_its_time() -> None:
    made = an_invitation(make_access("rosa", "owner"))
    assert find_invitation(made.text, NOON + DAY - timedelta(seconds=1))
    assert find_invitation(made.text, NOON + DAY) is None


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        pytest.param({"role": "king"}, "role", id="no such role"),
        pytest.param({"note": " "}, "note", id="for nobody"),
        pytest.param({"lasts": timedelta(days=40)}, "lasts", id="too long"),
    ],
)
def test_a_senseless_invitation(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        an_invitation(make_access("rosa", "owner"), **changed)
    assert set(refused.value.fields) == {field}


def test_nobody_is_invited_to_a_tenant_that_is_being_closed() -> None:
    access = make_access("rosa", "owner")
    access.tenant.state = Tenant.State.CLOSING
    with pytest.raises(Invalid, match="Nobody was invited") as refused:
        an_invitation(access)
    assert "being closed" in refused.value.fields["role"]


def test_who_is_a_member_needs_no_invitation() -> None:
    access = make_access("rosa", "owner")
    made = an_invitation(access)
    with pytest.raises(AlreadyMember):
        accept(user=access.user, invitation_id=made.row.pk, **NOW)
    assert find_invitation(made.text, NOON), "it is still good for somebody else"


@pytest.mark.parametrize("role", ["member", "viewer"])
def test_only_owners_manage_members(role: str) -> None:
    access = make_access("rosa", role)
    make_person("tim", access.tenant)
    attempts = [
        lambda: an_invitation(access),
        lambda: revoke_invitation(access=access, prefix="x", **NOW),
        lambda: change_role(access=access, username="tim", role="viewer", **NOW),
        lambda: remove(access=access, username="tim", **NOW),
    ]
    for attempt in attempts:
        with pytest.raises(NotPermitted):
            attempt()
    assert roles(access) == {"rosa": role, "tim": "member"}


def test_everybody_may_leave_and_then_reaches_nothing() -> None:
    owner = make_access("rosa", "owner")
    viewer = tenant_for(make_person("iris", owner.tenant, "viewer"), owner.tenant.slug)
    remove(access=viewer, username="iris", **NOW)
    with pytest.raises(Http404):
        tenant_for(viewer.user, owner.tenant.slug)
    assert AuditLine.objects.get().action == "member.left"


def test_the_last_owner_stays_owner() -> None:
    access = make_access("rosa", "owner")
    make_person("tim", access.tenant, "member")
    with pytest.raises(LastOwner):
        remove(access=access, username="rosa", **NOW)
    with pytest.raises(LastOwner):
        change_role(access=access, username="rosa", role="viewer", **NOW)
    change_role(access=access, username="tim", role="owner", **NOW)
    remove(access=access, username="rosa", **NOW)
    assert roles(access) == {"tim": "owner"}


def test_an_owner_who_cannot_sign_in_does_not_count() -> None:
    access = make_access("rosa", "owner")
    gone = make_person("gone", access.tenant, "owner")
    gone.is_active = False
    gone.save()
    with pytest.raises(LastOwner):
        remove(access=access, username="rosa", **NOW)


def test_strangers_are_not_found() -> None:
    access = make_access("rosa", "owner")
    make_person("stranger")
    with pytest.raises(Http404):
        change_role(access=access, username="stranger", role="owner", **NOW)


@pytest.mark.django_db(transaction=True)
def test_of_two_owners_who_leave_at_once_one_stays() -> None:
    first = make_access("rosa", "owner")
    second = tenant_for(make_person("tim", first.tenant, "owner"), first.tenant.slug)
    refused = []

    def leave(access: Access) -> None:
        try:
            remove(access=access, username=access.user.username, **NOW)
        except LastOwner:
            refused.append(access.user.username)
        finally:
            connection.close()

    threads = [threading.Thread(target=leave, args=[access]) for access in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 1
    assert roles(first) == {refused[0]: "owner"}
