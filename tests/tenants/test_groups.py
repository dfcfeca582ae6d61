"""Groups of the company's sign-in: what they give, what they take, what they leave alone."""

from __future__ import annotations

from typing import Any

import pytest

from portal.audit.models import AuditLine
from tenants.groups import Change, highest, turn
from tenants.models import GroupHeld, GroupRole, Membership, PlatformRole, Tenant, User
from tenants.signin import follow_groups, groups_in
from tests.factories import NOON, make_person, make_tenant

Map = dict[str, str]


@pytest.mark.parametrize(
    ("wanted", "held", "has", "changes", "after"),
    [
        pytest.param({}, {}, {}, [], {}, id="nothing, nothing"),
        pytest.param(
            {"t": "member"}, {}, {}, [Change("t", None, "member")], {"t": "member"}, id="given"
        ),
        pytest.param(
            {"t": "member"}, {"t": "member"}, {"t": "member"}, [], {"t": "member"}, id="still there"
        ),
        pytest.param(
            {"t": "owner"},
            {"t": "member"},
            {"t": "member"},
            [Change("t", "member", "owner")],
            {"t": "owner"},
            id="another group, another role",
        ),
        pytest.param(
            {}, {"t": "member"}, {"t": "member"}, [Change("t", "member", None)], {}, id="taken"
        ),
        pytest.param({}, {}, {"t": "member"}, [], {}, id="given by a person: stays"),
        pytest.param(
            {"t": "owner"}, {}, {"t": "viewer"}, [], {}, id="given by a person: never made greater"
        ),
        pytest.param(
            {}, {"t": "member"}, {"t": "owner"}, [], {}, id="changed by a person since: stays"
        ),
        pytest.param({}, {"t": "member"}, {}, [], {}, id="removed by a person, and by the group"),
        pytest.param(
            {"t": "member"},
            {},
            {},
            [Change("t", None, "member")],
            {"t": "member"},
            id="removed by a person while the group stays: given again",
        ),
    ],
)
def test_turns(wanted: Map, held: Map, has: Map, changes: list[Change], after: Map) -> None:
    found = turn(wanted=wanted, held=held, has=has)
    assert (list(found.changes), dict(found.held)) == (changes, after)


def test_the_greatest_role_of_several_groups_counts() -> None:
    assert highest([("t", "viewer"), ("t", "owner"), ("u", "member"), ("t", "member")]) == {
        "t": "owner",
        "u": "member",
    }


@pytest.mark.parametrize(
    ("claims", "found"),
    [
        pytest.param({"groups": ["b", "a", "a"]}, ["a", "b"], id="a list"),
        pytest.param({"groups": "a"}, ["a"], id="one name"),
        pytest.param({}, [], id="no claim at all"),
        pytest.param({"groups": [1, None, {"x": 1}, "a"]}, ["a"], id="only names are names"),
        pytest.param({"groups": {"a": True}}, [], id="a shape that nobody knows gives nothing"),
    ],
)
def test_reading_the_claim(claims: dict[str, Any], found: list[str]) -> None:
    assert groups_in(claims, "groups") == found


def signs_in(user: User, *groups: str) -> None:
    follow_groups(user=user, groups=groups, now=NOON, request_id="request-0001")


def stands(user: User) -> tuple[Map, set[str]]:
    memberships = Membership.objects.filter(user=user).values_list("tenant__slug", "role")
    roles = PlatformRole.objects.filter(user=user).values_list("role", flat=True)
    return dict(memberships), set(roles)


@pytest.fixture
def tenant() -> Tenant:
    made = make_tenant()
    GroupRole.objects.create(group="vision", tenant=made, role="member")
    GroupRole.objects.create(group="vision-leads", tenant=made, role="owner")
    GroupRole.objects.create(group="sre", role="operator")
    GroupRole.objects.create(group="sre", role="auditor")
    GroupRole.objects.create(group="root", role="admin")
    return made


@pytest.mark.django_db
def test_roles_come_and_go_with_the_groups(tenant: Tenant) -> None:
    user = make_person("tim")
    signs_in(user, "vision", "sre", "unknown")
    assert stands(user) == ({"tidewater": "member"}, {"operator", "auditor"})
    signs_in(user, "vision", "vision-leads", "sre")
    assert stands(user) == ({"tidewater": "owner"}, {"operator", "auditor"})
    signs_in(user)
    assert stands(user) == ({}, set())
    assert not GroupHeld.objects.exists()
    told = [(line.action, line.facts["from"], line.facts["to"]) for line in AuditLine.objects.all()]
    assert told == [
        ("member.by_groups", None, "member"),
        ("platform_role.by_groups", None, "auditor"),
        ("platform_role.by_groups", None, "operator"),
        ("member.by_groups", "member", "owner"),
        ("member.by_groups", "owner", None),
        ("platform_role.by_groups", "auditor", None),
        ("platform_role.by_groups", "operator", None),
    ]


@pytest.mark.django_db
def test_signing_in_again_with_the_same_groups_changes_nothing(tenant: Tenant) -> None:
    user = make_person("tim")
    for _ in range(3):
        signs_in(user, "vision", "sre")
    assert AuditLine.objects.count() == 3


@pytest.mark.django_db
def test_what_a_person_gave_stays(tenant: Tenant) -> None:
    user = make_person("tim", tenant, "viewer")
    PlatformRole.objects.create(user=user, role="approver")
    signs_in(user, "vision-leads")
    signs_in(user)
    assert stands(user) == ({"tidewater": "viewer"}, {"approver"})


@pytest.mark.django_db
def test_the_last_admin_stays_and_that_is_told(tenant: Tenant) -> None:
    user = make_person("asp")
    signs_in(user, "root")
    signs_in(user)
    assert stands(user)[1] == {"admin"}
    assert AuditLine.objects.latest("number").action == "platform_role.kept"
    PlatformRole.objects.create(user=make_person("second"), role="admin")
    signs_in(user)
    assert stands(user)[1] == set()


@pytest.mark.django_db
def test_a_tenant_that_is_being_closed_gets_nobody_new(tenant: Tenant) -> None:
    Tenant.objects.update(state="closing")
    user = make_person("tim")
    signs_in(user, "vision")
    assert stands(user) == ({}, set())
