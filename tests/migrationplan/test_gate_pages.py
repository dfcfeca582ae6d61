"""Pages of gates, readings, the survey and the report: what they say, to whom, in few queries."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.models import Claim, NodePool, Observed, StageTimes
from migrationplan.gating.asking import read_pool
from migrationplan.gating.definitions import STANDARD, take_standard
from migrationplan.models import Gate, Move, Reading
from portal.audit.models import AuditLine
from tenants.access import PlatformAccess
from tenants.models import PlatformRole
from tests.devices.demofleet import mirror
from tests.devices.pages import client_of, text
from tests.factories import make_access, make_claim, make_person
from tests.migrationplan.gating.rows import BOOK, lines
from tests.migrationplan.test_survey import (
    DRIVER,
    GPU,
    a_claim,
    a_class,
    a_node,
    a_pod,
    a_slice,
)  # fmt: skip

pytestmark = pytest.mark.django_db
DRA = frozenset({"DeviceClass", "ResourceSlice", "ResourceClaim"})


@pytest.fixture
def people() -> dict[str, Client]:
    """Browsers of an operator, an auditor and somebody without a role."""
    found = {"stranger": client_of(make_person("basil"))}
    for name, role in (("olga", "operator"), ("ida", "auditor")):
        person = make_person(name)
        PlatformRole.objects.create(user=person, role=role)
        found[role] = client_of(person)
    return found


@pytest.fixture
def pool() -> NodePool:
    return NodePool.objects.create(
        slug="rack", name="Rack", selector={"pool": "rack"}, resource=GPU, driver=DRIVER,
        device_class="h100", plugin_label="x.example/plugin=on", driver_label="x.example/dra=on",
        plugin_sets=["gpu/plugin"], driver_sets=["gpu/driver"], devices_per_node=4,
        made_by=make_person("maker").person, made_at=timezone.now(),
    )  # fmt: skip


def a_cluster(*more: Any) -> None:
    quota = {
        "kind": "ResourceQuota",
        "metadata": {"name": "old", "namespace": "team", "uid": "q"},
        "spec": {"hard": {f"requests.{GPU}": "8"}},
    }  # fmt: skip
    objects = [
        a_class(), a_node("m1", 0), a_node("m2", 0), a_node("p1"), a_node("p2"),
        a_slice("m1"), a_slice("m2"), a_claim("mine", "m1"), a_pod("long", "p1"),
        a_pod("again", "p2", retryable=True), quota, *more,
    ]  # fmt: skip
    mirror(map(_versioned, objects))


def _versioned(obj: Any) -> Any:
    group = "resource.k8s.io/v1" if obj["kind"] in DRA else "v1"
    return {"apiVersion": group, **obj}


def history(claim: Claim, number: int = 30) -> None:
    """Pods on both paths over the last hours; those of DRA take longer to prepare."""
    now = timezone.now()
    for path, node, prepare in (("claim", "m1", 30), ("plugin", "p1", 4)):
        for one in range(number):
            created = now - timedelta(minutes=2 + one * 3)
            bound = created + timedelta(seconds=2)
            StageTimes.objects.create(
                claim=claim, tenant=claim.tenant, pod_uid=f"{path}-{one}", pod=f"pod-{one}",
                classes=["h100"], devices={"h100": 1}, path=path, node=node, node_pool="rack",
                created_at=created, bound_at=bound,
                allocated_at=bound if path == "claim" else None,
                prepared_at=bound + timedelta(seconds=prepare),
                running_at=bound + timedelta(seconds=prepare + 2),
                ready_at=bound + timedelta(seconds=prepare + 3),
            )  # fmt: skip


def moved(pool: NodePool) -> None:
    for node in ("m1", "m2"):
        began = timezone.now() - timedelta(hours=4)
        Move.objects.create(
            pool=pool, node=node, node_uid=node, direction="to DRA", step="done", since=began,
            begun_at=began, begun_by=pool.made_by, request_id="r", ended_at=began,
        )  # fmt: skip
    lines(*BOOK, since=timezone.now() - timedelta(hours=4))


def read_all(pool: NodePool) -> None:
    moved(pool)
    by = PlatformAccess(make_person("setter"), frozenset({"operator"}))
    take_standard(access=by, request_id="r", now=timezone.now())
    assert read_pool(pool.slug, timezone.now()) == len(STANDARD)


def queries(client: Client, address: str) -> int:
    client.get(address)
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


PLACES = (
    "/platform/gates/", "/platform/node-pools/rack/survey/",
    "/platform/node-pools/rack/readings/", "/platform/node-pools/rack/payoff/",
)  # fmt: skip


def test_strangers_find_nothing_and_auditors_read(
    people: dict[str, Client], pool: NodePool
) -> None:
    for place in PLACES:
        assert people["stranger"].get(place).status_code == 404, place
        assert people["auditor"].get(place).status_code == 200, place
    page = text(people["auditor"].get("/platform/gates/"))
    assert "You are auditor on the platform" in page
    assert people["auditor"].post("/platform/gates/standard/").status_code == 403


def test_the_survey_says_what_would_break_and_who_goes_first(
    people: dict[str, Client], pool: NodePool
) -> None:
    page = text(people["operator"].get("/platform/node-pools/rack/survey/"))
    assert "The cluster has not been seen yet." in page
    a_cluster()
    page = text(people["operator"].get("/platform/node-pools/rack/survey/"))
    assert "2 things would break once every node has moved." in page
    assert "SURVEY_NO_PATH" in page and "team/old: 8" in page
    assert page.index("1. Canary") < page.index("2. Long-running")
    assert "No end is known of team/long" in page
    few = queries(people["operator"], "/platform/node-pools/rack/survey/")
    a_cluster(*(a_pod(f"more-{number}", "p1") for number in range(9)))
    assert queries(people["operator"], "/platform/node-pools/rack/survey/") == few


def test_the_usual_gates_are_taken_and_one_is_changed(
    people: dict[str, Client], pool: NodePool
) -> None:
    operator = people["operator"]
    assert "No gate yet" in text(operator.get("/platform/gates/"))
    operator.post("/platform/gates/standard/")
    assert Gate.objects.count() == len(STANDARD)
    page = text(operator.get("/platform/gates/"))
    assert "10 points more beyond 1.25 × p95" in page
    asked = {
        "revision": "1", "name": "Prepare time", "margin": "5", "tolerance": "1.5",
        "slack": "3", "least": "30",
    }  # fmt: skip
    operator.post("/platform/gates/prepared/", asked)
    gate = Gate.objects.get(slug="prepared")
    assert (gate.margin, gate.tolerance, gate.least, gate.revision) == (0.05, 1.5, 30, 2)
    again = operator.post("/platform/gates/prepared/", asked | {"margin": "6"})
    assert again.status_code == 422
    assert "Somebody changed this gate meanwhile" in text(again)
    operator.post("/platform/gates/prepared/retire/")
    assert Gate.objects.get(slug="prepared").retired_at is not None
    assert AuditLine.objects.filter(action="gate.retired").count() == 1


def test_a_webhooks_secret_is_shown_once(people: dict[str, Client]) -> None:
    asked = {
        "slug": "budget", "name": "Error budget", "measure": "webhook", "margin": "10",
        "tolerance": "1.25", "slack": "2", "least": "20", "patience": "600", "limit": "0",
        "url": "https://slo.example/gate",
    }  # fmt: skip
    made = people["operator"].post("/platform/gates/", asked)
    secret = Gate.objects.get(slug="budget").secret
    assert made.status_code == 201
    assert secret in text(made)
    assert made["Cache-Control"] == "no-store"
    assert secret not in text(people["operator"].get("/platform/gates/budget/"))
    wrong = people["operator"].post("/platform/gates/", asked | {"url": "", "slug": "b2"})
    assert wrong.status_code == 422
    assert "Give a whole address" in text(wrong)


def test_readings_stand_beside_their_drawings_and_one_shows_its_samples(
    people: dict[str, Client], pool: NodePool
) -> None:
    operator, place = people["operator"], "/platform/node-pools/rack/readings/"
    assert "No gate has been read here" in text(operator.get(place))
    nothing = operator.post(place, follow=True)
    assert "No node of this pool has moved to DRA" in text(nothing)
    a_cluster()
    history(make_claim(make_access()))
    read_all(pool)
    page = text(operator.get(place))
    assert "failed on moved nodes." in page
    assert "30 of 30 Pods took longer than 6 s from bound to prepared" in page
    assert 'class="chart spark"' in page and "would be inconclusive" in page
    part = text(operator.get(place, HTTP_HX_REQUEST="true"))
    assert part.startswith("<div") and "<html" not in part
    few = queries(operator, place)
    read_all_again(pool)
    assert queries(operator, place) == few
    row = Reading.objects.filter(gate="prepared").first()
    assert row is not None
    one = text(operator.get(f"/platform/readings/{row.public_id}/"))
    assert "Fail" in one and "claim-0" in one and "95 of 100 within" in one
    assert AuditLine.objects.filter(action="gates.read").count() == 0
    operator.post(place)
    assert AuditLine.objects.filter(action="gates.read").count() == 1


def read_all_again(pool: NodePool) -> None:
    read_pool(pool.slug, timezone.now())


def test_the_report_compares_similar_work_only(people: dict[str, Client], pool: NodePool) -> None:
    operator, place = people["operator"], "/platform/node-pools/rack/payoff/"
    assert "No Pod of this pool in that time" in text(operator.get(place))
    a_cluster()
    lines(*BOOK)
    claim = make_claim(make_access())
    history(claim)
    page = text(operator.get(place))
    assert "DRA is worse in 1 of 4 figures that compare, and better in none." in page
    assert "Pods that ask for 1 device" in page and "30 Pods" in page
    few = queries(operator, place)
    StageTimes.objects.filter(pod_uid__startswith="claim").update(devices={"h100": 2})
    page = text(operator.get(place + "?days=7"))
    assert "Nothing can be compared yet." in page
    assert "never on both paths at once" in page
    assert queries(operator, place) == few


def test_programs_get_the_same(people: dict[str, Client], pool: NodePool) -> None:
    operator = people["operator"]
    a_cluster()
    history(make_claim(make_access()))
    read_all(pool)
    survey = operator.get("/api/v1/platform/node-pools/rack/survey").json()
    assert [one["code"] for one in survey["breaks"]] == ["SURVEY_NO_PATH", "SURVEY_QUOTA_BY_NAME"]
    assert survey["waves"][0]["nodes"] == ["p2"]
    found = operator.get("/api/v1/platform/node-pools/rack/readings?gate=prepared").json()
    (reading,) = found["results"]
    assert reading["verdict"] == "fail"
    one = operator.get(f"/api/v1/platform/readings/{reading['id']}").json()
    assert len(one["samples"]["moved"]) == 30
    report = operator.get("/api/v1/platform/node-pools/rack/payoff").json()
    rows = {row["aspect"]: row for row in report["similar"][0]["rows"]}
    assert rows["ready"]["against"]["claim"]["finding"] == "worse"
    assert rows["allocation"]["against"]["claim"]["finding"] == "alike"
    assert report["free"] == [
        {"path": "plugin", "free": 6, "apart": 6},
        {"path": "dra", "free": 7, "apart": 3},
    ]
    assert operator.get("/api/v1/platform/node-pools/rack/payoff?days=3").status_code == 422
    assert Observed.objects.filter(kind="ResourceQuota").count() == 1
