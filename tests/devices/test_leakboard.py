"""The leak board: what a scan finds, what people decide, and what a worker does about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from devices.cluster.gateway import Conflict, Gateway, Ref
from devices.dra.cleanup import Deletion
from devices.dra.snapshot import Snapshot, read
from devices.fleet import leakboard
from devices.models import LeakRow
from portal.alerts.models import Alert
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from portal.outbox.models import OutboxLine
from tenants.access import PlatformAccess
from tenants.models import PlatformRole
from tests.deploy.objects import claim, pod, request
from tests.devices.dra.cases import by_number, snapshot
from tests.devices.pages import client_of, text
from tests.factories import NOON, make_person, make_tenant

pytestmark = pytest.mark.django_db
LATER = NOON + timedelta(minutes=6)


@pytest.fixture
def zoo() -> Snapshot:
    """Claims in every state; four of them leak, in a namespace of the tenant Tidewater."""
    make_tenant("tidewater", ("team-a",))
    return snapshot(by_number("29"))


@pytest.fixture
def operator() -> PlatformAccess:
    return PlatformAccess(make_person("olga"), frozenset({"operator"}))


def test_a_finding_is_watched_before_it_is_believed(zoo: Snapshot) -> None:
    leakboard.scan(zoo, NOON)
    assert LeakRow.objects.count() == 4
    assert not LeakRow.objects.filter(believed_at__isnull=False).exists()
    assert not Alert.objects.exists()
    assert leakboard.scan(zoo, LATER) == 4
    assert Alert.objects.filter(over_at=None).count() == 4
    row = LeakRow.objects.get(code="LEAK_UNRESERVED")
    assert (row.tenant, row.claims, row.first_seen_at) == ("tidewater", ["team-a/c-idle"], NOON)


def test_scanning_again_changes_nothing_and_what_is_gone_goes(zoo: Snapshot) -> None:
    for moment in (NOON, LATER, LATER):
        leakboard.scan(zoo, moment)
    assert LeakRow.objects.count() == 4
    assert leakboard.scan(read([]), LATER + timedelta(minutes=1)) == 0
    assert LeakRow.objects.filter(gone_at=None).count() == 0
    assert not Alert.objects.filter(over_at=None).exists()


def test_what_comes_back_starts_anew(zoo: Snapshot) -> None:
    leakboard.scan(zoo, NOON)
    leakboard.scan(read([]), NOON + timedelta(minutes=3))
    leakboard.scan(zoo, LATER)
    assert LeakRow.objects.count() == 8
    assert not LeakRow.objects.filter(believed_at__isnull=False).exists()


def test_a_scan_costs_the_same_however_much_stands_there(zoo: Snapshot) -> None:
    leakboard.scan(zoo, NOON)
    with CaptureQueriesContext(
        connection,
    ) as few:
        leakboard.scan(zoo, NOON)
    for number in range(200):
        LeakRow.objects.create(
            key=f"k{number}", code="LEAK_UNRESERVED", claims=["x/y"], first_seen_at=NOON,
            seen_at=NOON, believed_at=NOON, gone_at=NOON,
        )  # fmt: skip
    with CaptureQueriesContext(connection) as many:
        leakboard.scan(zoo, NOON)
    assert len(many) == len(few)


def test_keeping_needs_a_reason_and_a_right(zoo: Snapshot, operator: PlatformAccess) -> None:
    leakboard.scan(zoo, NOON)
    leakboard.scan(zoo, LATER)
    row = LeakRow.objects.get(code="LEAK_FINALIZER")
    by: dict[str, Any] = {"request_id": "r", "now": LATER}
    with pytest.raises(Invalid):
        leakboard.keep(row, access=operator, why=" ", **by)
    with pytest.raises(NotPermitted):
        auditor = PlatformAccess(operator.user, frozenset({"auditor"}))
        leakboard.keep(row, access=auditor, why="known", **by)
    leakboard.keep(row, access=operator, why="The driver is being mended.", **by)
    assert not Alert.objects.filter(code="LEAK_FINALIZER", over_at=None).exists()
    leakboard.scan(zoo, LATER + timedelta(minutes=9))
    assert not Alert.objects.filter(code="LEAK_FINALIZER", over_at=None).exists()


def wish(row: LeakRow, operator: PlatformAccess, **changed: Any) -> LeakRow:
    said = {"reason": "Lost with its node", "typed": row.claims[0][-5:], **changed}
    return leakboard.clean(row, access=operator, request_id="request-9", now=LATER, **said)


def test_a_wish_is_one_wish_and_needs_the_claim_s_name(
    zoo: Snapshot, operator: PlatformAccess
) -> None:
    leakboard.scan(zoo, NOON)
    row = LeakRow.objects.get(code="LEAK_UNRESERVED")
    with pytest.raises(Invalid) as refused:
        wish(row, operator, typed="gpu-0", reason="")
    assert set(refused.value.fields) == {"typed", "reason"}
    wish(row, operator)
    wish(row, operator)
    assert OutboxLine.objects.filter(key=row.public_id).count() == 1
    with pytest.raises(leakboard.NotCleanable):
        wish(LeakRow.objects.get(code="LEAK_FINALIZER"), operator)


def test_the_pages_show_board_proof_and_decision(zoo: Snapshot, operator: PlatformAccess) -> None:
    leakboard.scan(zoo, NOON)
    leakboard.scan(zoo, LATER)
    PlatformRole.objects.create(user=operator.user, role="operator")
    client = client_of(operator.user)
    assert "A claim holds devices, and nobody uses it." in text(client.get("/platform/leaks/"))
    row = LeakRow.objects.get(code="LEAK_UNRESERVED")
    page = text(client.get(f"/platform/leaks/{row.public_id}/"))
    assert "reservedFor is empty" in page and "It ends with" in page
    answer = client.post(
        f"/platform/leaks/{row.public_id}/", {"act": "clean", "reason": "lost", "typed": "wrong"}
    )
    assert answer.status_code == 422 and "the end of the claim" in text(answer)
    assert client.get("/platform/leaks/?tab=gone").status_code == 200


# --- on the cluster ---


@pytest.fixture
def leaked(gateway: Gateway, place: str, operator: PlatformAccess) -> LeakRow:
    """A claim that stands in the cluster, on the board, with a wish to be cleaned away."""
    gateway.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}, manager="test"
    )
    made = gateway.create(
        {**claim("idle", request("gpu")), "metadata": {"name": "idle", "namespace": place}}
    )
    row = LeakRow.objects.create(
        key="k",
        code="LEAK_UNRESERVED",
        claims=[f"{place}/idle"],
        uid=made["metadata"]["uid"],
        first_seen_at=NOON,
        seen_at=NOON,
        believed_at=NOON,
    )
    return wish(row, operator)


def there(gateway: Gateway, row: LeakRow) -> bool:
    namespace, _, name = row.claims[0].partition("/")
    return gateway.get(Ref("ResourceClaim", name, namespace)) is not None


@pytest.mark.cluster
def test_a_worker_deletes_it_and_says_so(leaked: LeakRow, gateway: Gateway) -> None:
    for _ in range(2):
        leakboard.turn(leaked.public_id, gateway=gateway, now=LATER)
    leaked.refresh_from_db()
    assert leaked.answer_code == "CLEANUP_DONE" and not there(gateway, leaked)
    assert not OutboxLine.objects.filter(key=leaked.public_id).exists()
    assert AuditLine.objects.filter(action="leak.cleaned", request_id="request-9").count() == 1


@pytest.mark.cluster
def test_a_pod_that_came_meanwhile_spares_it(leaked: LeakRow, gateway: Gateway, place: str) -> None:
    waiting = pod("late", claims={"gpu": "idle"})
    waiting["metadata"]["namespace"] = place
    gateway.create(waiting)
    leakboard.turn(leaked.public_id, gateway=gateway, now=LATER)
    leaked.refresh_from_db()
    assert leaked.answer_code == "CLEANUP_IN_USE" and "late" in leaked.answer
    assert there(gateway, leaked)


@pytest.mark.cluster
def test_a_change_between_look_and_act_spares_it(leaked: LeakRow, gateway: Gateway) -> None:
    judged = leakboard.look(leaked, gateway)
    assert isinstance(judged, Deletion)
    namespace, _, name = leaked.claims[0].partition("/")
    ref = Ref("ResourceClaim", name, namespace)
    gateway.merge(ref, {"metadata": {"annotations": {"example.com/touched": "now"}}})
    with pytest.raises(Conflict):
        gateway.delete(ref, uid=judged.uid, version=judged.version)
    assert there(gateway, leaked)


@pytest.mark.cluster
def test_another_claim_under_its_name_is_not_touched(leaked: LeakRow, gateway: Gateway) -> None:
    LeakRow.objects.filter(pk=leaked.pk).update(uid="00000000-0000-0000-0000-000000000000")
    leakboard.turn(leaked.public_id, gateway=gateway, now=LATER)
    leaked.refresh_from_db()
    assert leaked.answer_code == "CLEANUP_GONE" and there(gateway, leaked)
