"""Pages of approvals, members, invitations, roles and viewing, as people meet them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from portal.approvals.models import Approval
from portal.audit.models import AuditLine
from tenants.models import Membership, PlatformRole, User
from tests.factories import PASSWORD, make_person, make_tenant
from tests.portal.test_approvals import an_approval

pytestmark = pytest.mark.django_db


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def somebody(username: str, *roles: str) -> User:
    user = make_person(username)
    for role in roles:
        PlatformRole.objects.create(user=user, role=role)
    return user


def open_approval(author: User, **changed: Any) -> Approval:
    return an_approval(author=author.person, now=timezone.now(), **changed)


def test_an_approver_finds_it_reads_it_and_approves() -> None:
    rosa, pike = make_person("rosa"), somebody("pike", "approver")
    row = open_approval(rosa)
    page = signed_in(pike)
    assert "16 H100 for Tidewater" in page.get("/approvals/").content.decode()
    text = page.get(f"/approvals/{row.number}/").content.decode()
    assert "H100 devices: 8" in text and "H100 devices: 16" in text and "0 of 1 approvals" in text
    answer = page.post(f"/approvals/{row.number}/", {"verdict": "approve"}, follow=True)
    assert "Approved" in answer.content.decode()
    row.refresh_from_db()
    assert row.state == "approved"


def test_sending_back_needs_words() -> None:
    row = open_approval(make_person("rosa"))
    page = signed_in(somebody("pike", "approver"))
    answer = page.post(f"/approvals/{row.number}/", {"verdict": "deny"})
    assert answer.status_code == 422
    assert "Say what would have to change" in answer.content.decode()
    page.post(f"/approvals/{row.number}/", {"verdict": "deny", "comment": "Later."})
    row.refresh_from_db()
    assert row.state == "denied"


def test_the_author_sees_why_they_cannot_and_may_withdraw() -> None:
    rosa = make_person("rosa")
    row = open_approval(rosa)
    page = signed_in(rosa)
    text = page.get(f"/approvals/{row.number}/").content.decode()
    assert "You asked for it" in text and "Withdraw" in text
    assert page.post(f"/approvals/{row.number}/", {"verdict": "approve"}).status_code == 403
    page.post(f"/approvals/{row.number}/withdraw/")
    row.refresh_from_db()
    assert row.state == "void"


@pytest.mark.parametrize("number", ["A-1", "A-999999", "A-x", "31"])
def test_strangers_find_no_approval(number: str) -> None:
    open_approval(make_person("rosa"))
    page = signed_in(make_person("stranger"))
    assert page.get(f"/approvals/{number}/").status_code == 404


def test_lending_ones_right_and_taking_it_back() -> None:
    pike, olm = somebody("pike", "approver"), make_person("olm")
    row = open_approval(make_person("rosa"))
    page = signed_in(pike)
    page.post("/approvals/?tab=lent", {"borrower": "nobody", "days": 3})
    answer = page.post("/approvals/?tab=lent", {"borrower": "olm", "days": 3}, follow=True)
    assert "Take back" in answer.content.decode()
    other = signed_in(olm)
    assert "in place of pike" in other.get(f"/approvals/{row.number}/").content.decode()
    other.post(f"/approvals/{row.number}/", {"verdict": "approve"})
    row.refresh_from_db()
    assert row.state == "approved"


def test_invite_accept_change_remove() -> None:
    tenant = make_tenant()
    page = signed_in(make_person("rosa", tenant, "owner"))
    asked = {"note": "Tim", "role": "member", "life": 3}
    answer = page.post("/t/tidewater/members/", asked)
    link = answer.context["link"]
    code = link.partition("#")[2]
    assert link in answer.content.decode().replace("&#x27;", "'")
    assert link not in page.get("/t/tidewater/members/").content.decode()
    make_person("tim")
    new = Client()
    assert "Join a tenant" in new.get("/join/").content.decode()
    answer = new.post("/join/", {"code": code}, follow=True)
    assert "Sign in to join" in answer.content.decode()
    assert new.post("/join/").headers["Location"] == "/account/login/?next=/join/"
    new.post("/account/login/?next=/join/", {"login": "tim", "password": PASSWORD})
    assert "Join as tim" in new.get("/join/").content.decode()
    answer = new.post("/join/", follow=True)
    assert answer.redirect_chain[-1][0] == "/t/tidewater/"
    assert Client().post("/join/", {"code": code}).status_code == 422, "it works once"
    page.post("/t/tidewater/members/tim/role/", {"role": "viewer"})
    assert Membership.objects.get(user__username="tim").role == "viewer"
    page.post("/t/tidewater/members/tim/remove/")
    assert new.get("/t/tidewater/").status_code == 404
    refused = page.post("/t/tidewater/members/rosa/remove/")
    assert (refused.status_code, "LAST_OWNER" in refused.content.decode()) == (422, True)


def test_a_viewer_sees_members_and_why_they_cannot_invite() -> None:
    tenant = make_tenant()
    make_person("rosa", tenant, "owner")
    page = signed_in(make_person("iris", tenant, "viewer"))
    text = page.get("/t/tidewater/members/").content.decode()
    assert "one must be owner" in text and "Take back" not in text
    asked = {"note": "Tim", "role": "member", "life": 3}
    assert page.post("/t/tidewater/members/", asked).status_code == 403


def test_admins_give_roles_and_map_groups() -> None:
    make_person("olm")
    make_tenant()
    page = signed_in(somebody("asp", "admin"))
    page.post("/platform/roles/", {"username": "olm", "role": "operator"})
    assert "olm" in page.get("/platform/roles/").content.decode()
    page.post("/platform/roles/olm/operator/take/")
    assert not PlatformRole.objects.filter(user__username="olm").exists()
    page.post("/platform/groups/", {"group": "sre", "tenant": "", "role": "operator"})
    page.post("/platform/groups/", {"group": "vision", "tenant": "tidewater", "role": "member"})
    wrong = page.post("/platform/groups/", {"group": "x", "tenant": "tidewater", "role": "admin"})
    assert wrong.status_code == 422
    text = page.get("/platform/groups/").content.decode()
    assert "operator of the platform" in text and "member of Tidewater" in text


def test_looking_as_a_tenant_changes_nothing_and_ends_by_itself() -> None:
    tenant = make_tenant()
    rosa = make_person("rosa", tenant, "owner")
    asp = somebody("asp", "admin")
    page = signed_in(asp)
    assert page.get("/t/tidewater/").status_code == 404
    page.post("/platform/viewing/", {"tenant": "tidewater", "reason": "Ticket 4711"})
    text = page.get("/t/tidewater/").content.decode()
    assert "You view the portal as Tidewater" in text and "You are viewer" in text
    refused = page.post("/t/tidewater/members/rosa/remove/")
    assert (refused.status_code, "VIEWING_ONLY" in refused.content.decode()) == (403, True)
    assert page.post("/platform/roles/", {"username": "rosa", "role": "admin"}).status_code == 403
    line = AuditLine.objects.get(action="viewing.started")
    assert (line.tenant, line.facts["reason"]) == ("tidewater", "Ticket 4711")
    page.post("/platform/viewing/stop/")
    assert page.get("/t/tidewater/").status_code == 404
    page.post("/platform/viewing/", {"tenant": "tidewater", "reason": "again"})
    session = page.session
    over = (timezone.now() - timedelta(seconds=1)).isoformat()
    session["viewing"] = {**session["viewing"], "until": over}
    session.save()
    assert page.get("/t/tidewater/").status_code == 404
    assert signed_in(rosa).get("/platform/viewing/").status_code == 404


def test_who_is_admin_no_more_looks_no_more() -> None:
    make_tenant()
    page = signed_in(somebody("asp", "admin"))
    page.post("/platform/viewing/", {"tenant": "tidewater", "reason": "x"})
    PlatformRole.objects.all().delete()
    assert page.get("/t/tidewater/").status_code == 404
