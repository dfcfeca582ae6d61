"""Rollouts in the tables, by pages and by the API; upgrades, objectives, rights of drivers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from devices.dra.ledgerfile import replay
from devices.dra.ledgerrollout import Phase
from devices.ledger import rightslook, rollouts
from devices.ledger.driverrights import Finding, Word
from devices.ledger.exports import export
from devices.models import (
    ClusterState,
    LedgerNode,
    LedgerObjectives,
    LedgerRollout,
    LedgerUpgrade,
)
from portal.alerts.models import Alert
from portal.audit.models import AuditLine
from portal.errors import Invalid
from tenants.access import PlatformAccess, platform_access
from tenants.models import PlatformRole, User
from tests.devices.ledger.clusters import Cluster
from tests.devices.ledger.test_book import looked, made, minute
from tests.devices.pages import client_of, text
from tests.factories import make_person

__all__ = ["made"]

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def operator() -> User:
    person = make_person("olm")
    PlatformRole.objects.create(user=person, role="operator")
    return person


@pytest.fixture
def access(operator: User) -> PlatformAccess:
    return platform_access(operator)


def declare(cluster: Cluster, node: str = "n1") -> None:
    status = cluster._found["Node", node]["status"]
    status["declaredFeatures"] = ["DRANodeAllocatableResources"]


def turned(cluster: Cluster, number: float) -> LedgerRollout:
    """A look and a turn at that minute."""
    looked(cluster, number)
    row = rollouts.turn(cluster.read(), minute(number))
    assert row is not None
    return row


def begin(access: PlatformAccess, soak: timedelta = HOUR) -> LedgerRollout:
    return rollouts.start(access=access, canaries=["n1"], soak=soak, request_id="r", now=minute(0))


def stop(row: LedgerRollout, access: PlatformAccess, to: Phase, number: float) -> LedgerRollout:
    return rollouts.act(row, to, access=access, why="because", request_id="r", now=minute(number))


def test_it_waits_for_its_canary_soaks_and_goes_on_to_the_others(made, access) -> None:
    made.node("n2", cpu="8")
    made.slices("n2", mapping="1")
    looked(made, 0)
    begin(access)
    assert turned(made, 1).phase == "canary"
    declare(made)
    assert turned(made, 2).phase == "soaking"
    assert turned(made, 30).phase == "soaking"
    assert turned(made, 63).phase == "wide"
    row = turned(made, 64)
    assert (row.phase, row.waits) == ("wide", ["n2 is not known to have the feature"])
    declare(made, "n2")
    assert turned(made, 65).phase == "done"
    assert [move.to for move in row.moves.all()] == ["done", "wide", "soaking"]
    assert turned(made, 66).moves.count() == 3  # a turn that is repeated moves nothing


def test_an_unsafe_canary_stops_it_and_newer_mappings_and_a_person_let_it_go_on(
    made, access
) -> None:
    declare(made)
    looked(made, 0)
    begin(access)
    turned(made, 1)
    charged = made._found["Pod", "p1"]["status"]["nodeAllocatableResourceClaimStatuses"]
    mapped = charged[0]["mapping"][0]
    mapped["quantity"] = "1"
    looked(made, 2)
    row = turned(made, 3)
    assert (row.phase, "LEDGER_POD_STATUS_DIFFERS" in row.why) == ("stopped", True)
    row = turned(made, 4)
    done = replay(export(None, row.stopped_at))
    assert (done.fault, done.lines, len(row.digest) > 0) == (None, row.lines, True)
    assert ["LEDGER_STOPPED", "the rollout is stopped"] in LedgerNode.objects.get().reasons
    mapped["quantity"] = "2"
    looked(made, 5)
    row = turned(made, 6)
    assert row.waits[0].startswith("d.example.com/n1 still publishes 1.1/")
    node = LedgerNode.objects.get()
    assert (node.state, node.code) == ("rebuilding", "LEDGER_STOPPED")  # new requests wait
    with pytest.raises(rollouts.RolloutNotNow):
        stop(row, access, Phase.CANARY, 6)
    made.slices("n1", generation=2, mapping="2", overhead=("500m", "250m"))
    looked(made, 7)
    assert turned(made, 8).phase == "repaired"
    before = looked(made, 9)
    assert (before, LedgerNode.objects.get().code) == (0, "LEDGER_STOPPED")
    stop(row, access, Phase.CANARY, 9)
    looked(made, 10)
    assert LedgerNode.objects.get().state == "safe"
    assert turned(made, 11).phase == "soaking"


def test_stopping_by_hand_holds_without_an_alert_and_the_same_twice_is_once(made, access) -> None:
    declare(made)
    looked(made, 0)
    row = stop(begin(access), access, Phase.STOPPED, 1)
    stop(row, access, Phase.STOPPED, 1)
    turned(made, 2)
    turned(made, 30)
    assert LedgerNode.objects.get().state == "rebuilding"
    assert not Alert.objects.exists()
    assert AuditLine.objects.filter(action="ledger.rollout stopped").count() == 1
    row.refresh_from_db()
    stop(row, access, Phase.ENDED, 31)
    looked(made, 32)
    assert LedgerNode.objects.get().state == "safe"


def test_one_rollout_is_open_and_nodes_are_known_ones(made, access) -> None:
    looked(made, 0)
    row = begin(access)
    with pytest.raises(rollouts.RolloutNotNow):
        begin(access)
    with pytest.raises(IntegrityError), transaction.atomic():
        LedgerRollout.objects.create(
            canaries=["n1"], soak=HOUR, since=minute(0), started_at=minute(0), why="",
            started_by=row.started_by,
        )  # fmt: skip
    with pytest.raises(Invalid) as refused:
        rollouts.start(
            access=access, canaries=["other"], soak=HOUR * 999, request_id="r", now=minute(0)
        )
    assert set(refused.value.fields) == {"canaries", "soak"}


def test_an_upgrade_that_forgets_is_named_with_what_it_lost(made) -> None:
    state = ClusterState.objects.create(release="v1.36.3")
    looked(made, 0)
    state.release = "v1.37.2"
    state.save()
    pod = made._found["Pod", "p1"]
    del pod["status"]["nodeAllocatableResourceClaimStatuses"]
    for device in made._found["ResourceSlice", "n1"]["spec"]["devices"]:
        del device["nodeAllocatableResources"]
    for kind, name in (("Pod", "p1"), ("ResourceSlice", "n1")):
        made._found[kind, name]["metadata"]["resourceVersion"] = "99"
    pod["status"]["nodeAllocatableResourceClaimStatuses"] = []
    looked(made, 1)
    looked(made, 2)
    node = LedgerNode.objects.get()
    assert (node.state, node.code) == ("unsafe", "LEDGER_SHAPE_LOST")
    assert looked(made, 7) == 0  # what is bound keeps its lines
    row = LedgerUpgrade.objects.get()
    assert (row.frm, row.to, row.before, row.after, row.told) == ("v1.36.3", "v1.37.2", 4, 4, 0)
    assert ["ns/p1", "ns/c1", "n1", "cpu", "2"] in row.lost


def test_the_page_begins_stops_and_ends_a_rollout(made, operator) -> None:
    looked(made, 0)
    client = client_of(operator)
    path = "/platform/ledger/rollout/"
    assert "No rollout is open" in text(client.get(path))
    assert client.post(path, {"canaries": "nowhere", "soak": 1}).status_code == 422
    assert client.post(path, {"canaries": "n1\n", "soak": 1}).status_code == 302
    row = LedgerRollout.objects.get()
    said = text(client.get(path))
    assert "Canaries" in said and "It was started." in said
    assert client.post(f"{path}{row.public_id}/stop/", {"why": ""}).status_code == 422
    assert client.post(f"{path}{row.public_id}/stop/", {"why": "too early"}).status_code == 302
    assert "too early" in text(client.get(path))
    assert client.post(f"{path}{row.public_id}/end/", {"why": "over"}).status_code == 302
    assert "None ended yet" not in text(client.get(path))


def test_operations_do_as_the_page_does(made, operator) -> None:
    looked(made, 0)
    client = client_of(operator)
    path = "/api/v1/platform/ledger/rollouts"

    def post(to: str, body: dict[str, Any]) -> Any:
        return client.post(to, body, content_type="application/json")

    started = post(path, {"canaries": ["n1"], "soak": "3600"})
    assert started.status_code == 201, started.content
    one = f"{path}/{started.json()['id']}"
    assert post(path, {"canaries": ["n1"], "soak": "3600"}).json()["code"] == (
        "LEDGER_ROLLOUT_NOT_NOW"
    )
    assert post(f"{one}/stop", {"why": "x"}).json()["phase"] == "stopped"
    assert post(f"{one}/resume", {"why": "x"}).json()["facts"] == {"phase": "stopped"}
    assert [move["to"] for move in client.get(one).json()["moves"]] == ["stopped"]
    assert [found["phase"] for found in client.get(path).json()["results"]] == ["stopped"]


def test_objectives_are_an_admins_and_stand_in_the_report(made, operator) -> None:
    looked(made, 0)
    body = {"most_charged": 25, "most_pending": 10}
    path = "/api/v1/platform/ledger/promotion"
    assert client_of(operator).put(path, body, "application/json").status_code == 403
    admin = make_person("asp")
    PlatformRole.objects.create(user=admin, role="admin")
    client = client_of(admin)
    assert client.put(path, body, "application/json").status_code == 204
    found = {one["name"]: one for one in client.get(path).json()["criteria"]}
    capacity = found["The objective for capacity holds"]
    assert capacity["met"] == "not met" and "cpu of n1 with 31.2 %" in capacity["evidence"]
    assert found["The objective for pending Pods holds"]["met"] == "met"
    body["most_charged"] = 80
    answer = client.post("/platform/ledger/objectives/", body)
    assert answer.status_code == 302 and LedgerObjectives.objects.get().most_charged == 80
    said = text(client.get("/platform/ledger/promotion/"))
    assert "fullest is cpu of n1" in said and 'value="80"' in said


def test_findings_of_rights_are_kept_for_the_page(operator) -> None:
    client = client_of(operator)
    assert "Nobody has looked yet" in text(client.get("/platform/ledger/rights/"))
    assert client.get("/api/v1/platform/ledger/rights").status_code == 404
    rightslook.keep(["gpu.example.com"], [], minute(0))
    assert "no more" in text(client.get("/platform/ledger/rights/"))
    one = Finding("gpu.example.com", "ns/a", Word.LACKS, "get x", "It cannot.", "Allow get.")
    rightslook.keep(["gpu.example.com"], [one], minute(1))
    assert "It cannot." in text(client.get("/platform/ledger/rights/"))
    assert client.get("/api/v1/platform/ledger/rights").json()["findings"][0]["word"] == "lacks"
