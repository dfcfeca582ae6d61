"""Isolation: what a scan proposes, and what people and the policy decide."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from devices.dra.snapshot import Snapshot, read
from devices.fleet.isolation import scan
from devices.fleet.isolationroom import room_of
from devices.fleet.isolationwishes import NotNow, let, wish
from devices.models import Isolation, IsolationPolicy, Observed, Preparation
from portal.alerts.models import Alert
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from tenants.access import PlatformAccess
from tenants.models import PlatformRole
from tests.devices.demofleet import mirror
from tests.devices.pages import client_of, text
from tests.factories import NOON, make_person

pytestmark = pytest.mark.django_db(transaction=True)
Obj = dict[str, Any]
DRIVER = "gpu.example"
MINUTE = timedelta(minutes=1)
SAID = (
    "Failed to prepare dynamic resources: prepare dynamic resources: NodePrepareResources failed "
    "for ResourceClaim c: simulated: device is on fire"
)


def a_node(name: str) -> Obj:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "uid": f"u-{name}"}}


def a_slice(node: str, devices: int = 8) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"s-{node}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        },
    }


def a_user(name: str, node: str, device: int, ready: datetime | None = None) -> list[Obj]:
    """A Pod with a claim for one device; its devices are ready since then, or are not."""
    result = {"request": "r", "driver": DRIVER, "pool": node, "device": f"gpu-{device}"}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    conditions = []
    if ready is not None:
        at = ready.strftime("%Y-%m-%dT%H:%M:%SZ")
        kind = "PodReadyToStartContainers"
        conditions = [{"type": kind, "status": "True", "lastTransitionTime": at}]
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": "a", "uid": f"c-{name}"},
            "spec": {"devices": {"requests": [request]}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "a", "uid": f"p-{name}"},
            "spec": {
                "nodeName": node,
                "containers": [{"name": "main"}],
                "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
            },
            "status": {"phase": "Pending", "conditions": conditions},
        },
    ]


def told(name: str, at: datetime) -> None:
    """The mirror has the node's event about a Pod."""
    moment = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    about = {"kind": "Pod", "namespace": "a", "name": name, "uid": f"p-{name}"}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": "a", "uid": f"e-{name}"},
        "involvedObject": about,
        "reason": "FailedPrepareDynamicResources",
        "message": SAID,
        "type": "Warning",
        "firstTimestamp": moment,
        "lastTimestamp": moment,
    }
    mirror([event])


def a_cluster(sick: int = 3, well: int = 8, mended: bool = False) -> Snapshot:
    """Five nodes of eight devices; Pods fail on n1 and are ready on the others."""
    nodes = [f"n{number}" for number in range(1, 6)]
    objects = [one for name in nodes for one in (a_node(name), a_slice(name))]
    for number in range(sick):
        ready = NOON + 9 * MINUTE if mended else None
        objects += a_user(f"sick-{number}", "n1", number, ready)
    for number in range(well):
        objects += a_user(f"well-{number}", nodes[1 + number % 4], number // 4, NOON - MINUTE)
    return read(objects)


@pytest.fixture
def sick() -> Snapshot:
    """Three Pods on one node have failed since five minutes; eight elsewhere are ready."""
    for number in range(3):
        told(f"sick-{number}", NOON - 5 * MINUTE)
    return a_cluster()


@pytest.fixture
def operator() -> PlatformAccess:
    user = make_person("olga")
    PlatformRole.objects.create(user=user, role="operator")
    return PlatformAccess(user, frozenset({"operator"}))


@pytest.fixture
def admin() -> PlatformAccess:
    user = make_person("ada")
    PlatformRole.objects.create(user=user, role="admin")
    return PlatformAccess(user, frozenset({"admin"}))


def tried(**changed: Any) -> Isolation:
    """The proposal of the sick node, its dry run read."""
    row = Isolation.objects.get()
    Isolation.objects.filter(pk=row.pk).update(
        **{"state": "tried", "dry_run": {"text": "said", "pods": 3}, **changed}
    )
    row.refresh_from_db()
    return row


BY: dict[str, Any] = {"request_id": "request-9", "now": NOON}


def test_a_place_that_fails_alone_is_proposed_once_and_rings(sick: Snapshot) -> None:
    assert scan(sick, NOON) == 1
    assert scan(sick, NOON + MINUTE) == 1
    row = Isolation.objects.get()
    assert (row.node, row.pool, row.device, row.state) == ("n1", "n1", "", "proposed")
    assert (row.device_class, row.evidence["failed"], row.evidence["others_tried"]) == ("gpu", 3, 8)
    assert row.evidence["pods"] == ["a/sick-0", "a/sick-1", "a/sick-2"]
    assert row.evidence["words"] == [SAID]
    assert Alert.objects.get(over_at=None).code == "ISOLATION_PROPOSED"
    assert AuditLine.objects.filter(action="isolation.proposed").count() == 1


def test_too_few_are_noted_and_nothing_is_proposed() -> None:
    told("sick-0", NOON - 5 * MINUTE)
    assert scan(a_cluster(sick=1), NOON) == 0
    assert Preparation.objects.filter(failed_at__isnull=False).count() == 1
    assert Preparation.objects.filter(ready_at__isnull=False).count() == 8


def test_what_works_again_before_anybody_decided_is_taken_back(sick: Snapshot) -> None:
    scan(sick, NOON)
    scan(a_cluster(mended=True), NOON + 10 * MINUTE)
    row = Isolation.objects.get()
    assert (row.wish, row.end, row.wished_by) == ("lift", "passed", None)


def test_a_no_counts_for_what_failed_before_it(sick: Snapshot, operator: PlatformAccess) -> None:
    scan(sick, NOON)
    wish(tried(), "lift", access=operator, why="A test of ours", **BY)
    row = Isolation.objects.get()
    assert (row.wish, row.end, row.wished_by) == ("lift", "dismissed", operator.user.person)
    Isolation.objects.update(state="ended", ended_at=NOON + MINUTE, wish="")
    assert scan(sick, NOON + 2 * MINUTE) == 0
    for number in range(3):
        Observed.objects.filter(uid=f"e-sick-{number}").delete()
        told(f"sick-{number}", NOON + 2 * MINUTE)
    assert scan(sick, NOON + 4 * MINUTE) == 1, "these failed after the no"


@pytest.mark.parametrize(
    ("what", "why", "error"),
    [
        pytest.param("apply", " ", Invalid, id="closing needs a reason"),
        pytest.param("erase", "x", Invalid, id="nobody knows that wish"),
        pytest.param("probe", "x", NotNow, id="what is open needs no trial"),
    ],
)
def test_wishes_that_are_refused(
    sick: Snapshot, operator: PlatformAccess, what: str, why: str, error: type[Exception]
) -> None:
    scan(sick, NOON)
    with pytest.raises(error):
        wish(tried(), what, access=operator, why=why, **BY)
    assert Isolation.objects.get().wish == ""


def test_only_operators_decide_and_only_admins_set_the_policy(
    sick: Snapshot, operator: PlatformAccess
) -> None:
    scan(sick, NOON)
    with pytest.raises(NotPermitted):
        auditor = PlatformAccess(operator.user, frozenset({"auditor"}))
        wish(tried(), "apply", access=auditor, why="x", **BY)
    with pytest.raises(NotPermitted):
        let_by(operator)
    with pytest.raises(NotNow, match="being looked at"):
        Isolation.objects.update(state="proposed")
        wish(Isolation.objects.get(), "apply", access=operator, why="x", **BY)


def let_by(access: PlatformAccess, **changed: Any) -> IsolationPolicy:
    asked: dict[str, Any] = {
        "automatic": True, "share": 25, "least_failed": 3, "window": 30 * MINUTE,
        "probe_every": None, **changed,
    }  # fmt: skip
    return let(access=access, **asked, **BY)


def test_the_policy_is_off_until_an_admin_switches_it_on(
    sick: Snapshot, admin: PlatformAccess
) -> None:
    scan(sick, NOON)
    tried()
    scan(sick, NOON + MINUTE)
    assert Isolation.objects.get().wish == ""
    let_by(admin)
    let_by(admin)
    assert AuditLine.objects.get(action="isolation.policy_set").facts["after"]["automatic"]
    scan(sick, NOON + MINUTE)
    row = Isolation.objects.get()
    assert (row.wish, row.wished_by) == ("apply", None)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"share": 0}, "share"),
        ({"least_failed": 1}, "least_failed"),
        ({"window": MINUTE}, "window"),
        ({"probe_every": timedelta(0)}, "probe_every"),
    ],
)
def test_senseless_policies_are_refused(
    admin: PlatformAccess, changed: dict[str, Any], field: str
) -> None:
    with pytest.raises(Invalid) as refused:
        let_by(admin, **changed)
    assert set(refused.value.fields) == {field}


def test_the_policy_closes_no_more_than_its_share(sick: Snapshot, admin: PlatformAccess) -> None:
    scan(sick, NOON)
    tried()
    let_by(admin, share=19)
    scan(sick, NOON + MINUTE)
    assert Isolation.objects.get().wish == ""
    row = Isolation.objects.get()
    assert room_of(row, sick, 0.2).allowed and not room_of(row, sick, 0.19).allowed
    Isolation.objects.create(
        driver=DRIVER, pool="n2", node="n2", state="applied", proposed_at=NOON, since=NOON,
        request_id="r",
    )  # fmt: skip
    found = room_of(row, sick, 0.25)
    assert (found.total, found.closed, found.more, found.allowed) == (40, 8, 8, False)


def test_pods_that_become_ready_there_open_it(sick: Snapshot) -> None:
    scan(sick, NOON)
    tried(state="applied", applied_at=NOON)
    scan(sick, NOON + 5 * MINUTE)
    assert Isolation.objects.get().wish == ""
    scan(a_cluster(mended=True), NOON + 10 * MINUTE)
    row = Isolation.objects.get()
    assert (row.wish, row.end) == ("lift", "recovered")


def test_a_scan_costs_the_same_however_many_pods_there_are(sick: Snapshot) -> None:
    scan(sick, NOON)
    with CaptureQueriesContext(connection) as few:
        scan(sick, NOON)
    with CaptureQueriesContext(connection) as many:
        scan(a_cluster(well=120), NOON)
    assert len(many) == len(few)


def test_pages_show_decide_and_set(
    sick: Snapshot, operator: PlatformAccess, admin: PlatformAccess
) -> None:
    client = client_of(operator.user)
    assert "Nothing is closed, and nothing is proposed" in text(client.get("/platform/isolations/"))
    scan(sick, NOON)
    row = tried(dry_run={"text": "Kubernetes said so", "pods": 3, "published": 8, "allocated": 3})
    assert "3 Pods hold these devices and stay." in text(client.get("/platform/isolations/"))
    page = f"/platform/isolations/{row.public_id}/"
    shown = text(client.get(page))
    assert "Kubernetes said so" in shown and "0 of 8 elsewhere" in shown
    refused = client.post(page, {"what": "apply", "why": ""})
    assert refused.status_code == 422 and "for the audit" in text(refused)
    assert client.post(page, {"what": "apply", "why": "It burns"}).status_code == 302
    assert "a worker is at it" in text(client.get(page))
    form = {"share": "30", "least_failed": "3", "window": "30", "automatic": "on"}
    assert client_of(admin.user).post("/platform/isolations/", form).status_code == 302
    assert IsolationPolicy.current().automatic
    assert client.get("/platform/isolations/?tab=over").status_code == 200
