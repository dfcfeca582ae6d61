"""Inventories and the book of drift: recorded, approved, compared, rung, and told to waves."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from devices.dra.snapshot import Snapshot, read
from devices.fleet.driftbook import Drifts, drift_now, overview, scan
from devices.fleet.inventory import NothingSeen, adopt, bring, record_now
from devices.fleet.nodepools import define
from devices.forecasts.picture import picture
from devices.models import DriftLine, Inventory, NodePool, Sync
from portal.alerts.models import Alert
from portal.approvals.asks import AlreadyAsked
from portal.approvals.models import Approval
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from tenants.access import PlatformAccess
from tenants.models import PlatformRole
from tests.devices.pages import client_of, text
from tests.devices.test_nodepools import WISH, labelled
from tests.devices.test_ownershipbook import a_node, a_slice
from tests.factories import NOON, make_person

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def a_cluster(n1: int | None = 8, n2: int = 8) -> Snapshot:
    """Two DRA nodes of a pool; None: the driver publishes nothing there."""
    objects = [
        labelled(a_node("n1", 0), pool="h100", dra="on"),
        labelled(a_node("n2", 0), pool="h100", dra="on"),
        a_slice("n2", n2),
    ]
    return read([*objects, a_slice("n1", n1)] if n1 is not None else objects)


def somebody(name: str, role: str) -> PlatformAccess:
    user = make_person(name)
    PlatformRole.objects.create(user=user, role=role)
    return PlatformAccess(user, frozenset({role}))


@pytest.fixture
def operator() -> PlatformAccess:
    return somebody("olga", "operator")


@pytest.fixture
def pool(operator: PlatformAccess) -> NodePool:
    wish = replace(WISH, plugin_sets=(), driver_sets=())
    for kind in ("Node", "ResourceSlice"):
        Sync.objects.create(kind=kind, listed_at=NOON, alive_at=NOON)
    return define("h100", wish, access=operator, snapshot=None, request_id="r", now=NOON)


def by(access: PlatformAccess, cluster: Snapshot | None) -> dict[str, Any]:
    return {"access": access, "snapshot": cluster, "request_id": "request-1", "now": NOON}


def in_force(pool: NodePool, operator: PlatformAccess) -> Inventory:
    made = record_now(pool, note="As delivered", **by(operator, a_cluster()))
    Approval.objects.filter(pk=made.approval).update(state="approved")
    assert adopt(made.pk, now=NOON)
    return made


def test_a_record_is_in_force_once_somebody_else_approved_it(
    pool: NodePool, operator: PlatformAccess
) -> None:
    made = record_now(pool, note="As delivered", **by(operator, a_cluster()))
    assert not adopt(made.pk, now=NOON), "nobody approved it"
    with pytest.raises(AlreadyAsked):
        record_now(pool, note="Again", **by(operator, a_cluster()))
    approval = Approval.objects.get(pk=made.approval)
    assert approval.key == str(made.pk)
    assert [(line["label"], line["after"]) for line in approval.lines] == [
        ("n1", "8 × device"),
        ("n2", "8 × device"),
    ]
    Approval.objects.filter(pk=made.approval).update(state="approved")
    assert adopt(made.pk, now=NOON) and not adopt(made.pk, now=NOON)
    assert AuditLine.objects.filter(action="inventory.adopted").count() == 1
    second = bring(pool, "node,count\nn1,4", note="Half", **by(operator, a_cluster()))
    assert (second.number, second.left_out) == (2, ["n2"])
    Approval.objects.filter(pk=second.approval).update(state="denied")
    third = record_now(pool, note="Now", **by(operator, a_cluster(n1=7)))
    states = dict(Inventory.objects.values_list("number", "state"))
    assert states == {1: "approved", 2: "refused", third.number: "in review"}


def test_what_is_refused(pool: NodePool, operator: PlatformAccess) -> None:
    with pytest.raises(NothingSeen):
        record_now(pool, note="x", **by(operator, None))
    with pytest.raises(NothingSeen):
        record_now(pool, note="x", **by(operator, read([])))
    with pytest.raises(Invalid) as refused:
        bring(pool, "node,count\nn9,4", note="x", **by(operator, a_cluster()))
    assert "n9 is no node" in refused.value.fields["file"]
    with pytest.raises(Invalid):
        record_now(pool, note=" ", **by(operator, a_cluster()))
    with pytest.raises(NotPermitted):
        auditor = PlatformAccess(operator.user, frozenset({"auditor"}))
        record_now(pool, note="x", **by(auditor, a_cluster()))
    assert not Inventory.objects.exists()


def test_a_dip_is_no_drift_and_what_lasts_rings_once(
    pool: NodePool, operator: PlatformAccess
) -> None:
    in_force(pool, operator)
    assert scan(a_cluster(), NOON) == 0 and not DriftLine.objects.exists()
    scan(a_cluster(n1=None), NOON)
    scan(a_cluster(), NOON + MINUTE)
    assert DriftLine.objects.get().gone_at == NOON + MINUTE
    assert not Alert.objects.exists(), "a kubelet's restart"
    for minutes in (10, 12, 14, 16):
        counts = scan(a_cluster(n1=None), NOON + minutes * MINUTE)
    assert counts == 1
    line = DriftLine.objects.get(gone_at=None)
    assert (line.code, line.node, line.pool) == ("DRIFT_DRIVER_NOT_RUNNING", "n1", pool)
    assert Alert.objects.get(over_at=None).times == 1
    scan(a_cluster(), NOON + 16 * MINUTE + timedelta(seconds=30))
    assert Alert.objects.filter(over_at=None).exists(), "back for a moment is not over"
    scan(a_cluster(), NOON + 18 * MINUTE)
    assert not Alert.objects.filter(over_at=None).exists()
    assert not DriftLine.objects.filter(gone_at=None).exists()


def test_what_waves_are_told(pool: NodePool, operator: PlatformAccess) -> None:
    seen = picture(a_cluster(), NOON)
    assert drift_now(pool, seen, NOON).verdict is Drifts.UNKNOWN, "nobody recorded anything"
    in_force(pool, operator)
    assert drift_now(pool, seen, NOON).verdict is Drifts.NONE
    assert drift_now(pool, None, NOON).verdict is Drifts.UNKNOWN
    late = drift_now(pool, seen, NOON + timedelta(hours=1))
    assert (late.verdict, "not heard" in late.why) == (Drifts.UNKNOWN, True)
    more = read([labelled(a_node("n3", 0), pool="h100")])
    assert drift_now(pool, picture(more, NOON), NOON).unrecorded == ("n3",)
    scan(a_cluster(n2=7), NOON - 5 * MINUTE)
    assert drift_now(pool, seen, NOON).verdict is Drifts.NONE, "watched, does not count yet"
    scan(a_cluster(n2=7), NOON)
    told = drift_now(pool, seen, NOON)
    assert (told.verdict, told.nodes) == (Drifts.DRIFT, ("n2",))


def test_pages_record_show_and_give_the_file(pool: NodePool, operator: PlatformAccess) -> None:
    client = client_of(operator.user)
    assert "Nothing found" in text(client.get("/platform/drift/"))
    page = "/platform/node-pools/h100/inventory/"
    assert "Nobody has said what its nodes should have" in text(client.get(page))
    in_force(pool, operator)
    scan(a_cluster(n2=7), NOON)
    scan(a_cluster(n2=7), NOON + 5 * MINUTE)
    shown = text(client.get(page))
    assert "8 expected, 7 published" in shown and "n1" in shown
    assert "1 node shows something else" in text(client.get("/platform/drift/"))
    file = client.get(f"{page}1/file/").content.decode()
    assert file == "node,driver,model,count\nn1,gpu.nvidia.com,,8\nn2,gpu.nvidia.com,,8\n"
    refused = client.post(page, {"act": "bring", "text": "rubbish", "file_note": "x"})
    assert refused.status_code == 422
    assert client.get("/platform/drift/?tab=over").status_code == 200
    found = client.get("/api/v1/platform/node-pools/h100/drift").json()
    assert found["nodes"] == ["n2"] and found["inventory"] == 1


def test_an_overview_costs_the_same_for_many_pools(
    pool: NodePool, operator: PlatformAccess
) -> None:
    in_force(pool, operator)
    seen = picture(a_cluster(), NOON)
    with CaptureQueriesContext(connection) as few:
        overview(seen, NOON, [pool])
    others = [
        NodePool.objects.create(
            slug=f"p{number}", name=f"P{number}", selector={"pool": str(number)}, resource="a/b",
            driver="d", device_class="c", plugin_label="a=b", driver_label="c=d",
            made_by=operator.user.person, made_at=NOON,
        )
        for number in range(5)
    ]  # fmt: skip
    with CaptureQueriesContext(connection) as many:
        overview(seen, NOON, [pool, *others])
    assert len(many) == len(few)
