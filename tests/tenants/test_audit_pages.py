"""Who reads the audit: owners their tenant's, auditors all of it, nobody else any."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from portal.audit.models import AuditLine
from portal.audit.record import record
from tenants.models import PlatformRole, Tenant, User
from tests.factories import make_person, make_tenant

pytestmark = pytest.mark.django_db
OWN, ALL = "/t/tidewater/audit/", "/platform/audit/"


@pytest.fixture
def tenant() -> Tenant:
    made = make_tenant()
    other = make_tenant("basalt", namespaces=("basalt-x",))
    rosa = make_person("rosa", made, "owner")
    make_person("basil", other, "owner")
    for slug in ("tidewater", "basalt", ""):
        with transaction.atomic():
            record(
                action="claim.asked",
                subject=f"claim of-{slug or 'nobody'}",
                request_id=f"request-{slug}",
                at=timezone.now(),
                person=rosa.person,
                tenant=slug,
                facts={"name": "train"},
            )
    return made


def signed_in(username: str, *roles: str) -> Client:
    user = User.objects.filter(username=username).first() or make_person(username)
    for role in roles:
        PlatformRole.objects.create(user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


def text(answer: Any) -> str:
    return str(answer.content.decode())


def test_an_owner_sees_their_tenants_lines_only(tenant: Tenant) -> None:
    shown = text(signed_in("rosa").get(OWN))
    assert "claim of-tidewater" in shown and "rosa" in shown and "name: train" in shown
    assert "of-basalt" not in shown and "of-nobody" not in shown
    assert "of-basalt" not in text(signed_in("rosa").get(OWN + "?tenant=basalt"))


@pytest.mark.parametrize("role", ["auditor", "admin"])
def test_an_auditor_sees_everything(tenant: Tenant, role: str) -> None:
    page = signed_in("ide", role)
    shown = text(page.get(ALL))
    assert all(f"of-{slug}" in shown for slug in ("tidewater", "basalt", "nobody"))
    assert "of-tidewater" not in text(page.get(ALL + "?tenant=basalt"))
    assert "No line fits" in text(page.get(ALL + "?actor=nobody"))
    assert page.get(ALL + "?since=yesterday").status_code == 422


def test_others_see_none(tenant: Tenant) -> None:
    make_person("tim", tenant, "member")
    assert signed_in("tim").get(OWN).status_code == 403
    assert signed_in("basil").get(OWN).status_code == 404
    assert signed_in("tim").get(ALL).status_code == 404
    assert signed_in("olm", "operator").get(ALL).status_code == 403
    assert signed_in("olm").get(OWN).status_code == 404


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_an_export_is_a_file_and_an_audit_line(tenant: Tenant, kind: str) -> None:
    page = signed_in("rosa")
    answer = page.get(f"{OWN}export/?format={kind}&action=claim")
    body = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert "audit-tidewater-" in answer["Content-Disposition"]
    assert "of-tidewater" in body and "of-basalt" not in body
    line = AuditLine.objects.latest("number")
    assert (line.action, line.tenant, line.facts["format"]) == ("audit.exported", "tidewater", kind)


def test_the_page_offers_no_other_file_and_says_facts_in_words(tenant: Tenant) -> None:
    facts = {"dry_run_first": False, "waves": [{"name": "Canary", "soak": 60.0, "gates": []}]}
    with transaction.atomic():
        record(
            action="strategy.defined", subject="strategy usual", request_id="r", at=timezone.now(),
            person=None, tenant="tidewater", facts=facts,
        )  # fmt: skip
    shown = signed_in("rosa").get(OWN).text
    assert shown.count("?format=") == 2
    assert "waves: (name Canary, soak 60)" in shown and "dry run first: no" in shown


def test_the_api_of_a_tenant(tenant: Tenant) -> None:
    page = signed_in("rosa")
    rows = page.get("/api/v1/tenants/tidewater/audit?action=claim").json()["results"]
    assert [(row["subject"], row["name"]) for row in rows] == [("claim of-tidewater", "rosa")]
    answer = page.get("/api/v1/tenants/tidewater/audit/export?as=jsonl")
    body = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert json.loads(body.splitlines()[0])["subject"] == "claim of-tidewater"
    assert page.get("/api/v1/tenants/tidewater/audit?since=x").json()["code"] == "INVALID"
    assert page.get("/api/v1/platform/audit").status_code == 404


def test_the_api_of_the_platform(tenant: Tenant) -> None:
    page = signed_in("ide", "auditor")
    rows = page.get("/api/v1/platform/audit?subject=claim&limit=2").json()
    assert [row["subject"] for row in rows["results"]] == ["claim of-nobody", "claim of-basalt"]
    more = page.get(rows["next"]).json()["results"]
    assert [row["subject"] for row in more] == ["claim of-tidewater"]
    assert page.get("/api/v1/platform/audit/export?as=csv").status_code == 200
    assert page.get("/api/v1/platform/audit/export?as=xml").json()["code"] == "INVALID"


def test_a_toast_names_the_request_that_caused_it(tenant: Tenant) -> None:
    make_person("tim", tenant, "member")
    page = signed_in("rosa")
    done = page.post("/t/tidewater/members/tim/role/", {"role": "viewer"})
    request_id = done.headers["X-Request-ID"]
    shown = page.get("/t/tidewater/members/")
    assert shown.headers["X-Request-ID"] != request_id
    assert request_id in text(shown)
    assert request_id in text(page.get(f"{OWN}?request_id={request_id}"))
