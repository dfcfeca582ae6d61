"""The doctor's looks: asked for by people, done by workers, shown with their age."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from devices import cluster
from devices.cluster.gateway import Gateway
from devices.doctor import runs
from devices.doctor.findings import Severity
from devices.models import DoctorRun, Observed, Sync
from devices.tasks import look_with_doctor
from portal.alerts.models import Alert
from portal.audit.models import AuditLine
from portal.errors import NotPermitted
from tenants.access import PlatformAccess
from tenants.models import PlatformRole
from tests.devices.pages import client_of, text
from tests.factories import NOON, make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def away(tmp_path: Path) -> Gateway:
    """A cluster that nobody can reach."""
    return cluster.connect(tmp_path / "none")


@pytest.fixture
def operator() -> PlatformAccess:
    person = make_person("olm")
    PlatformRole.objects.create(user=person, role="operator")
    return PlatformAccess(person, frozenset({"operator"}))


def a_run(gateway: Gateway, public_id: str = "", now=NOON) -> object:
    return runs.run(public_id, gateway=gateway, act_as=lambda user: gateway, now=now)


def test_asking_twice_is_one_look_and_one_line_in_the_audit(operator, away):
    first = runs.ask(access=operator, request_id="r1", now=NOON)
    again = runs.ask(access=operator, request_id="r2", now=NOON + timedelta(seconds=9))
    assert first.pk == again.pk
    assert AuditLine.objects.filter(action="doctor.asked").count() == 1
    assert runs.last(NOON).waiting_since == NOON
    assert a_run(away, first.public_id) is not None
    assert a_run(away, first.public_id) is None, "a task that comes twice looks once"
    assert runs.last(NOON).waiting_since is None
    assert runs.ask(access=operator, request_id="r3", now=NOON).pk != first.pk


def test_an_ask_that_nobody_took_up_is_made_anew(operator):
    row = runs.ask(access=operator, request_id="r1", now=NOON)
    late = NOON + runs.PATIENCE * 2
    assert runs.last(late).waiting_since is None
    assert runs.ask(access=operator, request_id="r2", now=late).pk == row.pk
    assert runs.last(late).waiting_since == late


def test_only_who_may_asks():
    access = PlatformAccess(make_person("ide"), frozenset({"auditor"}))
    with pytest.raises(NotPermitted):
        runs.ask(access=access, request_id="r", now=NOON)
    assert not DoctorRun.objects.exists()


def test_without_a_cluster_it_says_so_and_still_looks_at_the_rest(away):
    report = runs.run("", gateway=away, act_as=lambda user: away, now=timezone.now())
    assert report is not None
    codes = {one.code for one in report.findings}
    assert {"CLUSTER_AWAY", "RIGHTS_NOT_LOOKED_AT", "POLICIES_NOT_LOOKED_AT"} <= codes
    assert {"NOBODY_WATCHES", "GATES_UNKNOWN", "AUDIT_UNKNOWN"} <= codes
    assert not codes & {"MIGRATIONS_PENDING", "BROKER_AWAY", "DATABASE_OLD", "CLOCK_OFF"}
    assert runs.last(timezone.now()).report == report


def test_errors_ring_once_and_are_over_when_a_look_finds_none(away, monkeypatch):
    a_run(away)
    a_run(away, now=NOON + timedelta(minutes=5))
    alert = Alert.objects.get(code=runs.ALERT)
    assert alert.over_at is None and alert.times == 2
    well = runs.report_of([])
    runs._ring(well, NOON + timedelta(minutes=9))
    alert.refresh_from_db()
    assert alert.over_at is not None


def test_old_looks_are_forgotten(away):
    for minute in range(runs.KEPT_RUNS + 3):
        a_run(away, now=NOON + timedelta(minutes=minute))
    assert DoctorRun.objects.count() == runs.KEPT_RUNS


def test_what_an_upgrade_would_touch_is_counted_in_the_mirror():
    from devices.doctor.look import _sights

    assert _sights() == {}, "nobody knows before the mirror was filled"
    Sync.objects.create(kind="DeviceClass", listed_at=NOON, alive_at=NOON)
    for uid, raw in (("a", b'{"spec":{"extendedResourceName":"x/y"}}'), ("b", b'{"spec":{}}')):
        Observed.objects.create(
            uid=uid, kind="DeviceClass", api_version="v1", name=uid, resource_version="1",
            raw=raw, seen_at=NOON,
        )  # fmt: skip
    assert _sights()["classes with an extended resource"] == 1
    assert _sights()["slices"] == 0


# --- the page, the API, the command ---


def test_the_page_before_the_first_look(operator):
    page = text(client_of(operator.user).get("/platform/doctor/"))
    assert "Nobody has looked yet" in page
    assert "Look again" in page


def test_a_person_asks_and_the_page_shows_what_was_found(operator, away):
    client = client_of(operator.user)
    answer = client.post("/platform/doctor/", follow=True)
    assert "A worker was asked" in text(answer)
    row = DoctorRun.objects.get(looked_at=None)
    assert row.asked_by == operator.user.person
    a_run(away, row.public_id, now=timezone.now())
    page = text(client.get("/platform/doctor/"))
    assert "CLUSTER_AWAY" in page and "What was looked at" in page
    assert page.index("CLUSTER_AWAY") < page.index("AUDIT_UNKNOWN"), "the gravest first"


def test_the_page_costs_the_same_whatever_was_found(operator, away):
    client = client_of(operator.user)
    client.get("/platform/doctor/")
    with CaptureQueriesContext(connection) as before:
        client.get("/platform/doctor/")
    a_run(away)
    with CaptureQueriesContext(connection) as after:
        client.get("/platform/doctor/")
    assert len(after) == len(before)


def test_an_auditor_reads_and_learns_why_not_more():
    person = make_person("ide")
    PlatformRole.objects.create(user=person, role="auditor")
    page = text(client_of(person).get("/platform/doctor/"))
    assert 'aria-disabled="true"' in page
    assert "to let the doctor look one must be admin or operator" in page


def test_the_api_says_the_same(operator, away):
    client = client_of(operator.user)
    empty = client.get("/api/v1/platform/doctor").json()
    assert empty == {
        "looked_at": None, "waiting_since": None, "exit_code": None, "sections": []
    }  # fmt: skip
    assert client.post("/api/v1/platform/doctor").status_code == 202
    a_run(away, DoctorRun.objects.get().public_id)
    told = client.get("/api/v1/platform/doctor").json()
    assert told["exit_code"] == 2
    findings = [one for section in told["sections"] for one in section["findings"]]
    assert {"code", "severity", "subject", "sentence", "remedy"} == set(findings[0])


def test_the_clock_s_look_is_a_task(settings: Settings, tmp_path: Path):
    settings.CLUSTER_KUBECONFIG = str(tmp_path / "none")
    look_with_doctor()
    assert runs.last(timezone.now()).report.count(Severity.ERROR)


def test_the_command_tells_each_finding_with_its_remedy(capsys, settings: Settings, tmp_path: Path):
    settings.CLUSTER_KUBECONFIG = str(tmp_path / "none")
    with pytest.raises(SystemExit) as ended:
        call_command("doctor")
    assert ended.value.code == 2
    said = capsys.readouterr().out
    assert "CLUSTER_AWAY  API server: It gave no answer" in said
    assert "→ Look at the API server" in said
