"""The API of approvals, members and platform roles: who gets in, and that the verbs are called."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tenants.access import platform_of, tenant_for
from tenants.models import Invitation, PlatformRole, User
from tenants.tokens import make_token
from tests.factories import make_person, make_tenant
from tests.portal.test_approvals import an_approval

pytestmark = pytest.mark.django_db
JSON = "application/json"


def in_person(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def by_token(user: User, *scopes: str, slug: str = "") -> Client:
    now = timezone.now()
    made = make_token(
        access=tenant_for(user, slug) if slug else platform_of(user),
        name="test",
        scopes=list(scopes),
        expires_at=now + timedelta(hours=1),
        now=now,
        request_id="request-0001",
    )
    return Client(headers={"Authorization": f"Bearer {made.text}"})


def somebody(username: str, *roles: str) -> User:
    user = make_person(username)
    for role in roles:
        PlatformRole.objects.create(user=user, role=role)
    return user


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json().get("code", "")


def test_deciding_is_for_people() -> None:
    pike = somebody("pike", "approver")
    row = an_approval(author=make_person("rosa").person, now=timezone.now())
    body = {"verdict": "approve"}
    path = f"/api/v1/approvals/{row.number}"
    program = by_token(pike, "read", "operate", "admin")
    assert program.get(path).json()["lines"][0]["after"] == "16"
    assert code(program.post(f"{path}/decision", body, JSON)) == (403, "NOT_PERMITTED")
    answer = in_person(pike).post(f"{path}/decision", body, JSON)
    assert (answer.status_code, answer.json()["state"]) == (200, "approved")
    again = in_person(pike).post(f"{path}/decision", body, JSON)
    assert code(again) == (422, "APPROVAL_NOT_OPEN")


def test_a_denial_without_words_names_the_field() -> None:
    row = an_approval(author=make_person("rosa").person, now=timezone.now())
    answer = in_person(somebody("pike", "approver")).post(
        f"/api/v1/approvals/{row.number}/decision", {"verdict": "deny"}, JSON
    )
    assert code(answer) == (422, "INVALID")
    assert set(answer.json()["facts"]["fields"]) == {"comment"}


def test_lists_are_narrowed_to_the_token() -> None:
    tenant = make_tenant()
    rosa = make_person("rosa", tenant, "owner")
    an_approval(now=timezone.now())
    other = an_approval(subject="x", tenant="", author=rosa.person, now=timezone.now())
    titles = [row["id"] for row in in_person(rosa).get("/api/v1/approvals").json()["results"]]
    assert len(titles) == 2
    program = by_token(rosa, "read", slug=tenant.slug)
    seen = program.get("/api/v1/approvals").json()["results"]
    assert [row["tenant"] for row in seen] == ["tidewater"]
    assert program.get(f"/api/v1/approvals/{other.number}").status_code == 404
    waiting = in_person(somebody("pike", "approver")).get("/api/v1/approvals?waiting=true")
    assert len(waiting.json()["results"]) == 2


def test_members_by_a_program_with_the_scope() -> None:
    tenant = make_tenant()
    rosa = make_person("rosa", tenant, "owner")
    make_person("tim", tenant)
    path = "/api/v1/tenants/tidewater/members"
    reads, admin = (
        by_token(rosa, "read", slug="tidewater"),
        by_token(rosa, "admin", slug="tidewater"),
    )
    assert {row["username"] for row in reads.get(path).json()["results"]} == {"rosa", "tim"}
    assert code(reads.patch(f"{path}/tim", {"role": "viewer"}, JSON)) == (403, "NOT_PERMITTED")
    assert admin.patch(f"{path}/tim", {"role": "viewer"}, JSON).json()["role"] == "viewer"
    assert code(admin.delete(f"{path}/rosa")) == (422, "LAST_OWNER")
    assert admin.delete(f"{path}/tim").status_code == 204
    assert reads.get(f"{path}/tim").status_code == 404
    made = admin.post(
        "/api/v1/tenants/tidewater/invitations", {"role": "member", "note": "x"}, JSON
    )
    assert made.status_code == 201 and "/join/#" in made.json()["link"]
    listed = admin.get("/api/v1/tenants/tidewater/invitations").json()["results"]
    assert [row["id"] for row in listed] == [made.json()["id"]] and "link" not in listed[0]
    gone = admin.delete(f"/api/v1/tenants/tidewater/invitations/{made.json()['id']}")
    assert gone.status_code == 204 and Invitation.objects.get().revoked_at


def test_roles_and_groups_by_a_program_of_the_platform() -> None:
    make_tenant()
    asp = somebody("asp", "admin")
    make_person("olm")
    admin, reads = by_token(asp, "read", "admin"), by_token(asp, "read")
    path = "/api/v1/platform/roles"
    assert code(reads.put(f"{path}/olm/operator")) == (403, "NOT_PERMITTED")
    assert admin.put(f"{path}/olm/operator").status_code == 204
    listed = {(row["username"], row["role"]) for row in admin.get(path).json()["results"]}
    assert listed == {("asp", "admin"), ("olm", "operator")}
    assert code(admin.delete(f"{path}/asp/admin")) == (422, "LAST_ADMIN")
    assert admin.delete(f"{path}/olm/operator").status_code == 204
    body = {"group": "vision", "tenant": "tidewater", "role": "member"}
    made = admin.post("/api/v1/platform/groups", body, JSON)
    assert made.status_code == 201
    assert reads.get("/api/v1/platform/groups").json()["results"][0]["tenant"] == "tidewater"
    assert admin.delete(f"/api/v1/platform/groups/{made.json()['id']}").status_code == 204


@pytest.mark.parametrize("path", ["roles", "groups"])
def test_the_platform_is_nothing_to_others(path: str) -> None:
    tenant = make_tenant()
    rosa = make_person("rosa", tenant, "owner")
    PlatformRole.objects.create(user=rosa, role="admin")
    assert (
        by_token(rosa, "read", "admin", slug="tidewater")
        .get(f"/api/v1/platform/{path}")
        .status_code
        == 404
    ), "a token of a tenant"
    stranger = make_person("stranger", tenant, "owner")
    assert in_person(stranger).get(f"/api/v1/platform/{path}").status_code == 404
    assert by_token(rosa, "read").get("/api/v1/tenants/tidewater/members").status_code == 404


def test_lending_through_the_api() -> None:
    pike, olm = somebody("pike", "approver"), make_person("olm")
    until = (timezone.now() + timedelta(days=2)).isoformat()
    page = in_person(pike)
    made = page.post("/api/v1/approvals/delegations", {"borrower": "olm", "ends_at": until}, JSON)
    assert made.status_code == 201
    assert len(in_person(olm).get("/api/v1/approvals/delegations").json()) == 1
    pk = made.json()["id"]
    assert in_person(olm).delete(f"/api/v1/approvals/delegations/{pk}").status_code == 204
    assert page.get("/api/v1/approvals/delegations").json()[0]["ended_at"] is None
    page.delete(f"/api/v1/approvals/delegations/{pk}")
    assert page.get("/api/v1/approvals/delegations").json()[0]["ended_at"]
