"""Verbs, pages and operations of closing a tenant, without a cluster: who may, what is shown."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.asks.claims import TenantClosing
from devices.dra.closing import Phase
from devices.models import Closure
from devices.tenancy import closing, closures
from devices.tenancy.closures import AlreadyClosing, TooFar
from devices.tenancy.receipts import proved
from portal.alerts.models import Alert
from portal.approvals import decisions
from portal.approvals.models import Approval
from portal.approvals.rules import Verdict
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from portal.outbox.models import OutboxLine
from tenants.access import Access, PlatformAccess, decider_of, platform_of, tenant_for
from tenants.models import PlatformRole, Tenant, TenantNamespace, User
from tests.devices.pages import client_of, text
from tests.factories import NOON, make_claim, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db
PAGE = "/platform/tenants/tidewater/"
API = "/api/v1/platform/tenants/tidewater"


@pytest.fixture
def admin() -> User:
    return platform_person("admin")


@pytest.fixture
def access() -> Access:
    tenant = make_tenant("tidewater", ("tide",), {"gpu": 8})
    return tenant_for(make_person("rosa", tenant, "owner"), "tidewater")


def platform_person(role: str) -> User:
    person = make_person(f"the-{role}")
    PlatformRole.objects.create(user=person, role=role)
    return person


def begin(access: Access, admin: User | PlatformAccess, **more: Any) -> Closure:
    given = {"reason": "The project is over", "typed": "tidewater", "deadline": None, "now": NOON}
    by = platform_of(admin) if isinstance(admin, User) else admin
    return closures.begin(
        access=by, tenant=access.tenant, request_id="request-c", **{**given, **more}
    )


def send(client: Client, path: str, data: Any = None, method: str = "post") -> Any:
    return client.generic(method.upper(), path, json.dumps(data or {}), "application/json")


def close(closure: Closure) -> Closure:
    """As its turns do where the cluster has nothing of the tenant any more."""
    TenantNamespace.objects.filter(tenant=closure.tenant).update(left_at=NOON)
    Closure.objects.filter(pk=closure.pk).update(bonds={"at": NOON.isoformat()})
    for phase in (Phase.WAITING, Phase.RECLAIMING, Phase.LETTING_GO, Phase.CLOSED):
        closure.refresh_from_db()
        assert closing.move(closure, phase, NOON)
    return Closure.objects.select_related("tenant").get(pk=closure.pk)


# --- verbs ----------------------------------------------------------------------------------------


def test_beginning_stops_new_asks_at_once_and_promises_a_turn(access: Access, admin: User) -> None:
    version = make_version()
    begin(access, admin)
    with pytest.raises(TenantClosing) as refused:
        make_claim(access, version)
    assert refused.value.code == "TENANT_CLOSING"
    assert OutboxLine.objects.filter(key="tidewater").exists()
    line = AuditLine.objects.get(action="tenant.closing_begun")
    assert line.facts["reason"] == "The project is over"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        pytest.param({"reason": " "}, "reason", id="without a reason"),
        pytest.param({"reason": "x" * 241}, "reason", id="with a reason too long"),
        pytest.param({"typed": "Tidewater"}, "typed", id="with another name typed"),
        pytest.param({"deadline": NOON}, "deadline", id="with a deadline that is over"),
    ],
)
def test_what_is_wrong_is_named(
    access: Access, admin: User, given: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        begin(access, admin, **given)
    assert list(refused.value.fields) == [field]


@pytest.mark.parametrize("role", ["operator", "auditor", "approver"])
def test_only_admins_close(access: Access, role: str) -> None:
    with pytest.raises(NotPermitted):
        begin(access, platform_person(role))


def test_one_closing_at_a_time(access: Access, admin: User) -> None:
    begin(access, admin)
    with pytest.raises(AlreadyClosing):
        begin(access, admin)


def test_it_can_be_cancelled_until_claims_are_reclaimed(access: Access, admin: User) -> None:
    closure = begin(access, admin)
    by = platform_of(admin)

    def cancel() -> Closure:
        return closures.cancel(access=by, tenant=access.tenant, request_id="request-x", now=NOON)

    Closure.objects.filter(pk=closure.pk).update(phase=Phase.WAITING)
    assert cancel().phase == Phase.CANCELLED
    assert Tenant.objects.get(slug="tidewater").state == "active"
    assert cancel().phase == Phase.CANCELLED, "twice is fine"
    again = begin(access, admin)
    for phase in (Phase.WAITING, Phase.RECLAIMING):
        Closure.objects.filter(pk=again.pk).update(phase=phase)
    with pytest.raises(TooFar):
        cancel()


def test_who_cancels_just_before_a_turn_moves_wins(access: Access, admin: User) -> None:
    closure = begin(access, admin)
    seen = Closure.objects.select_related("tenant").get(pk=closure.pk)
    closures.cancel(
        access=platform_of(admin), tenant=access.tenant, request_id="request-x", now=NOON
    )
    assert not closing.move(seen, Phase.WAITING, NOON)
    assert Closure.objects.get().phase == Phase.CANCELLED


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(Phase.STOPPING, Phase.RECLAIMING, id="a phase is left out"),
        pytest.param(Phase.RECLAIMING, Phase.WAITING, id="a way back"),
        pytest.param(Phase.RECLAIMING, Phase.CANCELLED, id="cancelled too late"),
    ],
)
def test_the_database_refuses_moves_that_are_none(
    access: Access, admin: User, before: Phase, after: Phase
) -> None:
    closure = begin(access, admin)
    rows = Closure.objects.filter(pk=closure.pk)
    for phase in list(Phase)[2 : list(Phase).index(before) + 1]:
        rows.update(phase=phase)
    ended = NOON if after is Phase.CANCELLED else None
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.update(phase=after, ended_at=ended)


def test_a_receipt_cannot_be_changed_in_the_database(access: Access, admin: User) -> None:
    closure = close(begin(access, admin))
    rows = Closure.objects.filter(pk=closure.pk)
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.update(receipt={})
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.delete()


def test_a_deadline_alerts_once_and_does_nothing_else(access: Access, admin: User) -> None:
    begin(access, admin, deadline=NOON + timedelta(hours=1))
    assert closures.alert_late(NOON) == 0
    late = NOON + timedelta(hours=2)
    assert [closures.alert_late(late), closures.alert_late(late)] == [1, 0]
    assert Closure.objects.get().phase == Phase.STOPPING
    assert AuditLine.objects.filter(action="tenant.closing_late").count() == 1
    alert = Alert.objects.get(code="CLOSING_LATE", over_at=None)
    assert alert.path == f"{PAGE}closing/"
    assert "Closing, late" in text(client_of(admin).get("/platform/tenants/"))
    assert "It was to be over by" in text(client_of(admin).get(f"{PAGE}closing/"))
    closures.cancel(
        access=platform_of(admin), tenant=access.tenant, request_id="request-x", now=late
    )
    assert not Alert.objects.filter(over_at=None).exists()


def test_an_owner_asks_and_an_admin_decides(access: Access, admin: User) -> None:
    now = timezone.now()
    closure = closures.ask_to_close(
        access=access, reason="Moved", typed="tidewater", request_id="request-a", now=now
    )
    assert closure.phase == Phase.ASKED
    assert Tenant.objects.get().state == "active"
    with pytest.raises(AlreadyClosing):
        closures.ask_to_close(
            access=access, reason="Moved", typed="tidewater", request_id="request-a", now=now
        )
    approval = Approval.objects.get(pk=closure.approval)
    decisions.decide(
        approval_id=approval.pk,
        decider=decider_of(admin, now),
        verdict=Verdict.APPROVE,
        comment="",
        request_id="request-d",
        now=now,
    )
    assert closures.carry_out(closure.pk, now=now)
    assert not closures.carry_out(closure.pk, now=now), "once"
    closure.refresh_from_db()
    assert closure.phase == Phase.STOPPING
    assert Tenant.objects.get().state == "closing"


def test_an_admin_who_acts_overtakes_what_an_owner_asked(access: Access, admin: User) -> None:
    asked = closures.ask_to_close(
        access=access, reason="Moved", typed="tidewater", request_id="request-a", now=NOON
    )
    begin(access, admin)
    asked.refresh_from_db()
    assert asked.phase == Phase.CANCELLED
    assert Approval.objects.get().state == "void"


def test_a_member_may_not_ask(access: Access) -> None:
    member = tenant_for(make_person("tim", access.tenant, "member"), "tidewater")
    with pytest.raises(NotPermitted):
        closures.ask_to_close(
            access=member, reason="Moved", typed="tidewater", request_id="request-a", now=NOON
        )


# --- receipts -------------------------------------------------------------------------------------


def test_a_receipt_proves_by_command_page_and_file(
    access: Access, admin: User, tmp_path: Path
) -> None:
    closure = close(begin(access, admin))
    assert proved(closure) == []
    out = StringIO()
    call_command("verifyreceipt", "tidewater", stdout=out)
    assert closure.digest in out.getvalue()
    client = client_of(admin)
    file = tmp_path / "receipt.json"
    file.write_bytes(client.get(f"{API}/receipt").content)
    call_command("verifyreceipt", "--file", str(file), stdout=out)
    shown = text(client.get(f"{PAGE}receipt/"))
    assert "Proved" in shown and closure.digest in shown
    assert "The project is over" in shown
    changed = json.loads(file.read_text())
    changed["reason"] = "Another"
    file.write_text(json.dumps(changed))
    with pytest.raises(CommandError, match="was changed"):
        call_command("verifyreceipt", "--file", str(file))


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="nothing"),
        pytest.param(["no-such"], id="a tenant without a receipt"),
        pytest.param(["--file", "/nowhere"], id="a file that is not there"),
    ],
)
def test_the_command_says_what_it_needs(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("verifyreceipt", *arguments)


# --- pages and operations -------------------------------------------------------------------------


def test_an_admin_makes_a_tenant_and_closes_it_on_the_pages(admin: User) -> None:
    make_person("rosa")
    client = client_of(admin)
    made = {"name": "Tide", "slug": "tidewater", "owner": "rosa", "priority": "continuity"}
    assert client.post("/platform/tenants/", made).headers["Location"] == PAGE
    assert client.post(f"{PAGE}namespaces/", {"name": "tide"}).status_code == 302
    shown = text(client.get(PAGE))
    assert "Not made yet" in shown and "Rosa" not in shown and "rosa" in shown
    changed = {"name": "Tide Lab", "priority": "utilisation"}
    assert client.post(PAGE, changed).status_code == 302
    assert Tenant.objects.get().name == "Tide Lab"
    wrong = client.post(f"{PAGE}closing/", {"reason": "Over", "typed": "tide"})
    assert wrong.status_code == 422 and "Type tidewater" in text(wrong)
    assert client.post(f"{PAGE}closing/", {"reason": "Over", "typed": "tidewater"}).status_code
    shown = text(client.get(f"{PAGE}closing/"))
    assert "Closing Tide Lab" in shown and "Cancel it" in shown
    assert client.post(f"{PAGE}closing/cancel/").status_code == 302
    assert Tenant.objects.get().state == "active"


def test_blockers_are_named_with_their_end(access: Access, admin: User) -> None:
    closure = begin(access, admin)
    end = "2026-11-02T18:00:00+00:00"
    blocker = {"code": "POD_RUNNING", "subject": "Pod tide/w-0", "why": "It runs.", "ends_at": end}
    Closure.objects.filter(pk=closure.pk).update(blockers=[blocker], looked_at=NOON)
    for page in (
        client_of(admin).get(f"{PAGE}closing/"),
        client_of(access.user).get("/t/tidewater/closing/"),
    ):
        shown = text(page)
        assert "Pod tide/w-0" in shown and "POD_RUNNING" in shown
        assert "2 Nov 2026 18:00 UTC" in shown
        assert "It waits for 1 Pod to end" in shown


def test_a_tenants_pages_say_that_it_is_being_closed(access: Access, admin: User) -> None:
    begin(access, admin)
    shown = text(client_of(access.user).get("/t/tidewater/members/"))
    assert "is being closed" in shown and "TENANT_CLOSING" in shown


def test_the_api_makes_changes_closes_and_cancels(admin: User) -> None:
    make_person("rosa")
    client = client_of(admin)
    given = {"slug": "tidewater", "name": "Tide", "owner": "rosa"}
    made = send(client, "/api/v1/platform/tenants", given)
    assert (made.status_code, made.json()["priority"]) == (201, "continuity")
    changed = send(client, API, {"priority": "throughput"}, "patch")
    assert changed.json()["priority"] == "throughput"
    place = send(client, f"{API}/namespaces", {"name": "tide"})
    assert (place.status_code, place.json()["state"]) == (201, "waiting")
    assert client.get(f"{API}/closing").status_code == 404
    begun = send(client, f"{API}/closing", {"reason": "Over", "typed": "tidewater"})
    assert (begun.status_code, begun.json()["phase"]) == (201, "stopping")
    again = send(client, f"{API}/closing", {"reason": "Over", "typed": "tidewater"})
    assert (again.status_code, again.json()["code"]) == (409, "ALREADY_CLOSING")
    assert client.get(f"{API}/receipt").status_code == 404
    assert send(client, f"{API}/closing/cancel").json()["phase"] == "cancelled"
    assert send(client, f"{API}/namespaces/tide", method="delete").status_code == 202


def test_closed_the_tenant_is_gone_for_its_people_and_there_for_the_platform(
    access: Access, admin: User
) -> None:
    close(begin(access, admin))
    assert client_of(access.user).get("/t/tidewater/").status_code == 404
    shown = text(client_of(admin).get(PAGE))
    assert "Closed" in shown and "Receipt" in shown
    assert client_of(admin).get(f"{API}").json()["state"] == "closed"


def test_who_owned_it_to_the_end_reads_its_receipt_and_nothing_else(
    access: Access, admin: User
) -> None:
    member = make_person("tim", access.tenant, "member")
    former = make_person("fern")
    closure = begin(access, admin)
    owner = client_of(access.user)
    assert owner.get("/t/tidewater/receipt/").status_code == 404, "it is not closed yet"
    close(closure)
    shown = text(owner.get("/t/tidewater/receipt/"))
    assert "Proved" in shown and "The project is over" in shown
    assert "/platform/" not in shown
    assert owner.get("/api/v1/tenants/tidewater/receipt").json()["reason"] == "The project is over"
    assert "is closed." in text(owner.get("/t/tidewater/closing/"))
    assert "/t/tidewater/receipt/" in text(owner.get("/"))
    assert "/t/tidewater/receipt/" in text(owner.get("/find/?q=tidewater"))
    for path in ("members/", "limits/", "claims/", "audit/"):
        assert owner.get(f"/t/tidewater/{path}").status_code == 404
    for other in (member, former):
        for path in ("/t/tidewater/receipt/", "/api/v1/tenants/tidewater/receipt"):
            assert client_of(other).get(path).status_code == 404


def test_an_approvals_address_leads_its_author_to_their_own_page(access: Access) -> None:
    closures.ask_to_close(
        access=access, reason="Moved", typed="tidewater", request_id="request-a", now=NOON
    )
    address = Approval.objects.get().address
    answer = client_of(access.user).get(address)
    assert answer.headers["Location"] == "/t/tidewater/closing/"
    assert client_of(make_person("fern")).get(address).status_code == 404


@pytest.mark.parametrize("path", ["/platform/tenants/", PAGE, f"{PAGE}closing/"])
def test_pages_cost_the_same_however_much_is_there(access: Access, admin: User, path: str) -> None:
    closure = begin(access, admin)
    client = client_of(admin)
    client.get(path)
    with CaptureQueriesContext(connection) as few:
        assert client.get(path).status_code == 200
    for number in range(6):
        other = make_tenant(f"other{number}", (f"other{number}-runs",))
        make_person(f"person{number}", access.tenant, "owner")
        TenantNamespace.objects.create(tenant=access.tenant, name=f"tide-{number}")
        begin(Access(other, "owner", admin), admin, typed=f"other{number}")
    blocker = {"code": "POD_RUNNING", "subject": "Pod a/b", "why": "It runs.", "ends_at": None}
    Closure.objects.filter(pk=closure.pk).update(blockers=[blocker] * 30)
    with CaptureQueriesContext(connection) as many:
        client.get(path)
    assert len(many) == len(few)
