"""The book of who gives out which devices: written once, ended, asked as of a moment, ringing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from devices.dra.atrisk import AtRisk, at_risk
from devices.dra.snapshot import Snapshot, read
from devices.fleet.ownershipbook import BELIEVED_AFTER, as_of, by_type, conflicting, scan
from devices.models import OwnershipLine
from portal.alerts.models import Alert
from tenants.models import PlatformRole
from tests.devices.dra.cases import by_number, snapshot
from tests.devices.pages import client_of, text
from tests.factories import NOON, make_person

pytestmark = pytest.mark.django_db
Obj = dict[str, Any]
GPU = "nvidia.com/gpu"
LATER = NOON + timedelta(minutes=10)


def a_node(name: str, plugin: int, uid: str = "") -> Obj:
    metadata = {"name": name, "uid": uid or f"u-{name}"}
    status = {"allocatable": {GPU: str(plugin)}, "capacity": {GPU: "8"}}
    return {"kind": "Node", "metadata": metadata, "status": status}


def a_slice(node: str, devices: int) -> Obj:
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": f"s-{node}"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(devices)],
        },
    }


def a_pod(name: str, node: str, phase: str = "Running") -> Obj:
    limits = {"resources": {"requests": {GPU: "1"}, "limits": {GPU: "1"}}}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"nodeName": node, "containers": [{"name": "main", **limits}]},
        "status": {"phase": phase},
    }


def a_claim(name: str, node: str) -> Obj:
    result = {"request": "r", "driver": "gpu.nvidia.com", "pool": node, "device": "gpu-0"}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }


PLUGIN = read([a_node("n1", 8), a_node("n2", 8)])
BOTH = read(
    [a_node("n1", 8), a_slice("n1", 8), a_node("n2", 8), a_pod("p", "n1"), a_claim("c", "n1"),
     a_pod("ended", "n1", "Failed"), a_pod("q", "n2")]
)  # fmt: skip
DRA = read([a_node("n1", 0), a_slice("n1", 8), a_node("n2", 8)])


def owners(rows: Any) -> dict[str, str]:
    return {line.node: line.owner for line in rows}


def test_a_line_is_written_once_and_ended_when_it_is_so_no_longer() -> None:
    assert scan(PLUGIN, NOON) == 2
    assert scan(PLUGIN, NOON + timedelta(minutes=1)) == 0
    assert scan(DRA, LATER) == 2
    first, second = OwnershipLine.objects.filter(node="n1").order_by("pk")
    assert (first.owner, first.until) == ("plugin", LATER)
    assert (second.owner, second.before, second.since) == ("dra", "plugin", LATER)
    assert OwnershipLine.objects.filter(node="n2").count() == 1


def test_the_book_answers_as_of_any_moment() -> None:
    scan(PLUGIN, NOON)
    scan(DRA, LATER)
    assert owners(as_of(NOON + timedelta(minutes=5))) == {"n1": "plugin", "n2": "plugin"}
    assert owners(as_of(LATER)) == owners(as_of()) == {"n1": "dra", "n2": "plugin"}
    assert owners(as_of(NOON - timedelta(seconds=1))) == {}
    assert by_type(as_of()) == [(GPU, {"dra": 1, "plugin": 1})]


def test_a_new_node_under_an_old_name_has_a_history_of_its_own() -> None:
    scan(PLUGIN, NOON)
    scan(read([a_node("n1", 8, uid="another"), a_node("n2", 8)]), LATER)
    new = OwnershipLine.objects.get(node="n1", until=None)
    assert (new.node_uid, new.before, new.since) == ("another", "", LATER)


def test_a_conflict_rings_when_believed_names_who_is_at_risk_and_is_over_with_it() -> None:
    scan(PLUGIN, NOON)
    scan(BOTH, LATER)
    assert not Alert.objects.exists()
    scan(BOTH, LATER + BELIEVED_AFTER)
    alert = Alert.objects.get()
    said = {line["label"]: line["value"] for line in alert.evidence}
    assert (alert.severity, alert.code) == ("critical", "OWNER_CONFLICT")
    assert (said["Pods by the plugin"], said["Claims by DRA"]) == ("ns/p", "ns/c")
    scan(BOTH, LATER + timedelta(seconds=10))
    assert Alert.objects.get().times == 1
    scan(DRA, LATER + timedelta(minutes=1))
    assert Alert.objects.get().over_at is not None


def test_two_streams_that_are_apart_for_a_moment_ring_nothing() -> None:
    scan(PLUGIN, NOON)
    scan(BOTH, LATER)
    scan(DRA, LATER + timedelta(seconds=4))
    scan(DRA, LATER + timedelta(minutes=1))
    assert not Alert.objects.exists()
    seen = OwnershipLine.objects.get(node="n1", owner="conflict")
    assert not conflicting(seen, LATER + timedelta(minutes=1))


def test_a_conflict_whose_numbers_change_stays_one_alert() -> None:
    scan(BOTH, NOON)
    scan(read([a_node("n1", 7), a_slice("n1", 8), a_node("n2", 8)]), LATER)
    scan(read([a_node("n1", 6), a_slice("n1", 8), a_node("n2", 8)]), LATER + timedelta(minutes=1))
    assert Alert.objects.filter(over_at=None).count() == 1


def test_who_is_at_risk_are_pods_of_that_node_and_type_that_have_not_ended() -> None:
    assert at_risk(BOTH) == {("n1", GPU): AtRisk(("ns/p",), ("ns/c",))}
    assert at_risk(DRA) == {}


def test_lines_cannot_be_rewritten_or_removed() -> None:
    scan(PLUGIN, NOON)
    for act in (
        lambda: OwnershipLine.objects.update(owner="dra"),
        lambda: OwnershipLine.objects.all().delete(),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            act()


def test_a_scan_costs_the_same_with_few_and_with_many_nodes() -> None:
    def queries(cluster: Snapshot) -> int:
        with CaptureQueriesContext(connection) as seen:
            scan(cluster, NOON)
        return len(seen)

    few = queries(read([a_node("m1", 8)]))
    assert queries(read([a_node(f"m{number}", 4) for number in range(300)])) == few + 1


def test_pages_show_conflicts_first_and_the_history() -> None:
    user = make_person("olga")
    PlatformRole.objects.create(user=user, role="operator")
    client = client_of(user)
    assert "No devices have been seen" in text(client.get("/platform/ownership/"))
    scan(PLUGIN, NOON)
    scan(BOTH, LATER)
    assert "Conflict" in text(client.get("/platform/ownership/"))
    before = text(client.get("/platform/ownership/", {"at": "2000-01-01T00:00"}))
    assert "No devices have been seen" in before
    assert client.get("/platform/ownership/", {"at": "soon"}).status_code == 422
    page = text(client.get("/platform/ownership/n1/"))
    assert "History" in page
    assert client.get("/platform/ownership/n9/").status_code == 404
    found = client.get("/api/v1/platform/ownership", {"owner": "conflict"}).json()
    assert [row["node"] for row in found["results"]] == ["n1"]


def test_the_cases_real_clusters_gave() -> None:
    scan(snapshot(by_number("34")), NOON)
    rows = OwnershipLine.objects.filter(type=GPU)
    assert owners(rows) == {
        "n1": "conflict", "n2": "plugin", "n3": "dra", "n4": "conflict", "n5": "plugin",
    }  # fmt: skip
