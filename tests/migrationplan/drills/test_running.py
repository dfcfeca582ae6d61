"""Drills as rows, pages and API: how far one goes, how it ends, and who may."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.fleet.nodepools import standings
from devices.fleet.ownershipbook import scan
from devices.forecasts.warm import forget, fresh
from devices.models import NodePool, Observed
from migrationplan.drills import running
from migrationplan.drills.running import NotDrillable, begin, give_up, passed_by_pool, turn
from migrationplan.drills.words import Kind
from migrationplan.models import Drill, DrillMark
from portal.alerts.models import Alert
from portal.audit.models import AuditLine
from tenants.access import PlatformAccess
from tests.devices.demofleet import mirror
from tests.devices.pages import client_of, text
from tests.factories import NOON
from tests.migrationplan.drills.scenes import NEW, NO_DRIVER, RESTARTED, Obj
from tests.migrationplan.keeping import (
    a_class,
    a_driver,
    a_move,
    a_node,
    a_pool,
    a_slice,
    a_world,
    on_platform,
)  # fmt: skip


@pytest.fixture
def operator() -> PlatformAccess:
    return on_platform("olga", "operator")


@pytest.fixture
def pool(operator: PlatformAccess) -> NodePool:
    forget()
    see(a_world())
    return a_pool(operator)


def see(objects: list[Obj]) -> None:
    """The mirror has these, and the ownership book too."""
    Observed.objects.all().delete()
    forget()
    mirror(objects, version=str(timezone.now().timestamp()))
    seen = fresh()
    assert seen is not None
    scan(seen.now, timezone.now())


def begun(pool: NodePool, by: PlatformAccess, kind: Kind = Kind.DRIVER_RESTART) -> Drill:
    seen, now = fresh(), timezone.now()
    assert seen is not None
    [node] = standings(pool, seen, now)
    return begin(pool, kind, node, seen, access=by, request_id="request-d", now=now)


def no_cluster() -> Any:
    raise AssertionError("this drill has no business with the cluster")


def turned(drill: Drill, later: timedelta = timedelta(0)) -> Drill:
    turn(drill.public_id, connect=no_cluster, now=timezone.now() + later)
    drill.refresh_from_db()
    return drill


@pytest.mark.django_db
def test_a_drill_goes_as_far_as_what_is_seen(pool: NodePool, operator: PlatformAccess) -> None:
    drill = turned(begun(pool, operator))
    assert (drill.position, drill.result) == (1, "")
    before = DrillMark.objects.count()
    turned(drill)
    assert DrillMark.objects.count() == before, "a doubled turn changes nothing"
    see([*NO_DRIVER, NEW])
    drill = turned(drill)
    assert (drill.result, drill.why) == ("passed", "Every step was proved.")
    slugs = [one.step for one in drill.marks.all()]
    assert slugs == ["begun", "ready", "stopped", "started", "published", "kept", "passed"]
    assert passed_by_pool() == {(pool.pk, Kind.DRIVER_RESTART): drill.ended_at}
    assert AuditLine.objects.filter(action="drill.passed").count() == 1
    assert not Alert.objects.exists()


@pytest.mark.django_db
def test_what_is_refuted_fails_at_once_and_rings_until_it_passes(
    pool: NodePool, operator: PlatformAccess
) -> None:
    drill = turned(begun(pool, operator))
    others = [one for one in NO_DRIVER if one["metadata"]["name"] != "train"]
    see([*others, NEW, RESTARTED])
    drill = turned(drill)
    assert drill.result == "failed" and "started again" in drill.why
    alert = Alert.objects.get(over_at=None)
    assert alert.code == "DRILL_FAILED" and alert.path.endswith(f"/drills/{drill.public_id}/")
    again = turned(begun(pool, operator))
    see([*others, RESTARTED, a_driver("u-third")])
    assert turned(again).result == "passed"
    assert not Alert.objects.filter(over_at=None).exists()


@pytest.mark.django_db
def test_what_nobody_does_fails_when_its_patience_ends(
    pool: NodePool, operator: PlatformAccess
) -> None:
    drill = turned(begun(pool, operator))
    Drill.objects.update(since=timezone.now() - timedelta(hours=2))
    drill = turned(drill)
    assert drill.result == "failed" and "not seen in time" in drill.why


@pytest.mark.django_db
def test_given_up_it_has_no_result_that_counts(pool: NodePool, operator: PlatformAccess) -> None:
    drill = begun(pool, operator)
    give_up(drill, access=operator, request_id="r", now=timezone.now())
    drill.refresh_from_db()
    assert drill.result == "given up" and passed_by_pool() == {}
    with pytest.raises(NotDrillable):
        give_up(drill, access=operator, request_id="r", now=timezone.now())
    assert begun(pool, operator).pk != drill.pk, "the node is free for another"


@pytest.mark.django_db
def test_a_result_is_final(pool: NodePool, operator: PlatformAccess) -> None:
    drill = begun(pool, operator)
    give_up(drill, access=operator, request_id="r", now=timezone.now())
    for act in (
        lambda: Drill.objects.update(result="passed"),
        lambda: Drill.objects.update(ended_at=timezone.now() + timedelta(days=30)),
        lambda: Drill.objects.all().delete(),
        lambda: DrillMark.objects.update(at=NOON),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            act()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(
            lambda pool, by: NodePool.objects.update(driver_sets=[]), "DaemonSet", id="no driver"
        ),
        pytest.param(lambda pool, by: a_move(pool, by), "on its way", id="it moves"),
        pytest.param(lambda pool, by: begun(pool, by), "under way", id="one is under way"),
        pytest.param(
            lambda pool, by: see([a_node(), a_class()]),
            "not given out by DRA",
            id="no driver there",
        ),
    ],
)
def test_where_no_drill_begins(
    pool: NodePool, operator: PlatformAccess, spoil: Callable[..., Any], said: str
) -> None:
    spoil(pool, operator)
    pool.refresh_from_db()
    with pytest.raises(NotDrillable, match=said):
        begun(pool, operator)


@pytest.mark.django_db
def test_nobody_tries_across_where_nobody_has_a_claim(
    pool: NodePool, operator: PlatformAccess
) -> None:
    see([a_node(), a_class(), a_slice(), a_driver()])
    with pytest.raises(NotDrillable, match="nothing to try"):
        begun(pool, operator, Kind.CROSS_NAMESPACE)


@pytest.mark.django_db
def test_the_pages_say_what_to_do_now(pool: NodePool, operator: PlatformAccess) -> None:
    client = client_of(operator.user)
    page = text(client.get("/platform/drills/"))
    assert "never" in page and "n1, by dra" in page
    answer = client.post("/platform/drills/", {"pool": "a", "kind": "driver restart", "node": "n1"})
    drill = Drill.objects.get()
    assert answer["Location"] == f"/platform/drills/{drill.public_id}/"
    turned(drill)
    page = text(client.get(answer["Location"]))
    assert "Delete the driver&#x27;s Pod on n1" in page
    assert f"kubectl delete pod -n gpu driver-{'u-driver'[-3:]}" in page
    client.post(answer["Location"], {"act": "give-up"})
    assert "Given up" in text(client.get(answer["Location"]))


@pytest.mark.django_db
def test_an_auditor_sees_and_begins_nothing(pool: NodePool, operator: PlatformAccess) -> None:
    client = client_of(on_platform("ada", "auditor").user)
    assert "to run drills one must be" in text(client.get("/platform/drills/"))
    asked = {"pool": "a", "kind": "driver restart", "node": "n1"}
    assert client.post("/platform/drills/", asked).status_code == 403
    drill = begun(pool, operator)
    answer = client.post(f"/platform/drills/{drill.public_id}/", {"act": "give-up"})
    assert answer.status_code == 403


@pytest.mark.django_db
def test_pages_need_few_queries_however_many_drills(
    pool: NodePool, operator: PlatformAccess
) -> None:
    client = client_of(operator.user)

    def queries(path: str) -> int:
        with CaptureQueriesContext(connection) as seen:
            assert client.get(path).status_code == 200
        return len(seen)

    queries("/platform/drills/")
    drill = turned(begun(pool, operator))
    before = queries("/platform/drills/"), queries(f"/platform/drills/{drill.public_id}/")
    for _ in range(4):
        give_up(Drill.objects.first(), access=operator, request_id="r", now=timezone.now())  # type: ignore[arg-type]
        drill = turned(begun(pool, operator))
    after = queries("/platform/drills/"), queries(f"/platform/drills/{drill.public_id}/")
    assert after == before


@pytest.mark.django_db
def test_the_api_tells_when_each_kind_last_passed(pool: NodePool, operator: PlatformAccess) -> None:
    client = client_of(operator.user)
    answer = client.post(
        "/api/v1/platform/drills",
        {"pool": "a", "kind": "driver restart", "node": "n1"},
        content_type="application/json",
        headers={"Idempotency-Key": "k"},
    )
    assert answer.status_code == 201
    drill = turned(Drill.objects.get())
    see([*NO_DRIVER, NEW])
    turned(drill)
    found = client.get(f"/api/v1/platform/drills/{drill.public_id}").json()
    assert found["result"] == "passed" and found["marks"][-1]["step"] == "passed"
    passed = client.get("/api/v1/platform/drills/passed").json()
    assert len(passed) == len(Kind)
    assert [one["kind"] for one in passed if one["passed_at"]] == ["driver restart"]
    assert running.passed_by_pool()[pool.pk, "driver restart"] == drill.ended_at
