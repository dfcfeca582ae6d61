"""The ledger's pages and operations: what they show, to whom, at a constant number of queries."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from devices.dra.ledgerfile import replay
from devices.ledger.book import scan
from tenants.models import PlatformRole, User
from tests.devices.ledger.clusters import Cluster
from tests.devices.ledger.test_book import looked, made, minute
from tests.devices.pages import client_of, text
from tests.factories import NOON, make_person, make_tenant

__all__ = ["made"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator() -> User:
    person = make_person("olm")
    PlatformRole.objects.create(user=person, role="operator")
    return person


def test_an_unopened_ledger_says_so(operator) -> None:
    assert "has not been opened" in text(client_of(operator).get("/platform/ledger/"))


def test_the_cluster_page_has_every_node_with_what_is_left(operator, made) -> None:
    looked(made, 0)
    said = text(client_of(operator).get("/platform/ledger/"))
    assert "n1: 31 % charged" in said
    assert '<span title="11">11</span>' in said
    assert "agree" in said


def test_a_node_page_shows_streams_zones_and_lines(operator, made) -> None:
    looked(made, 0)
    said = text(client_of(operator).get("/platform/ledger/nodes/n1/"))
    for words in ("mapping, once", "overhead, container m1", "NUMA 0", "ResourceClaim-c1", "Safe"):
        assert words in said
    assert client_of(operator).get("/platform/ledger/nodes/other/").status_code == 404


def test_an_overcommitted_node_is_red_and_never_clamped(operator, made) -> None:
    made.pod("p9", "n1", cpu="20")
    looked(made, 0)
    said = text(client_of(operator).get("/platform/ledger/nodes/n1/"))
    assert '<strong class="st st-fail"><span title="-9">-9</span>' in said.replace("−", "-")


def test_a_divergence_names_the_three_sides_and_the_lines(operator, made) -> None:
    pod = made._found["Pod", "p1"]
    pod["status"]["nodeAllocatableResourceClaimStatuses"][0]["mapping"][0]["quantity"] = "1"
    looked(made, 0)
    looked(made, 1)
    said = text(client_of(operator).get("/platform/ledger/nodes/n1/"))
    assert "do not agree on cpu" in said and "LEDGER_POD_STATUS_DIFFERS" in said
    assert "Unsafe" in said and "/platform/ledger/lines/?pod=ns/p1&amp;resource=cpu" in said


def test_as_of_shows_the_past(operator, made) -> None:
    looked(made, 0)
    made.remove("Pod", "p1")
    looked(made, 5)
    client = client_of(operator)
    now = text(client.get("/platform/ledger/nodes/n1/"))
    then = text(client.get("/platform/ledger/nodes/n1/?at=2026-11-02T12:02"))
    assert '<b><span title="16">16</span></b>' in now
    assert '<b><span title="11">11</span></b>' in then
    assert client.get("/platform/ledger/?at=soon").status_code == 422


def test_lines_of_a_claim_or_a_pod_come_with_their_sums(operator, made) -> None:
    looked(made, 0)
    said = text(client_of(operator).get("/platform/ledger/lines/?claim=ns/c1"))
    assert "What it comes to" in said and "mapping, once" in said
    assert "No key was doubled" in text(
        client_of(operator).get("/platform/ledger/lines/?which=refused")
    )


def test_the_file_of_the_page_replays(operator, made) -> None:
    looked(made, 0)
    answer = client_of(operator).get("/platform/ledger/file/")
    done = replay(b"".join(answer.streaming_content).splitlines())
    assert (done.fault, done.lines) == (None, 7)


@pytest.mark.parametrize(
    "path", ["/platform/ledger/", "/platform/ledger/nodes/n1/", "/platform/ledger/lines/"]
)
def test_pages_cost_a_constant_number_of_queries(path, operator, made) -> None:
    looked(made, 0)
    client = client_of(operator)
    client.get(path)

    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            client.get(path)
        return len(caught)

    few = queries()
    for number in range(2, 20):
        made.node(f"n{number}", cpu="8")
        made.pod(f"p{number}", f"n{number}", cpu="1")
        made.pod(f"q{number}", "n1", cpu="100m")
    looked(made, 1)
    assert queries() == few


@pytest.mark.parametrize(
    "path",
    [
        "/platform/ledger/",
        "/platform/ledger/nodes/n1/",
        "/platform/ledger/lines/",
        "/platform/ledger/file/",
        "/api/v1/platform/ledger/lines",
    ],
)
def test_a_stranger_learns_nothing(path, made) -> None:
    looked(made, 0)
    owner = make_person("avocet", make_tenant(), "owner")
    assert client_of(owner).get(path).status_code == 404


def test_operations_answer_as_the_pages_do(operator, made) -> None:
    looked(made, 0)
    client = client_of(operator)
    [node] = client.get("/api/v1/platform/ledger/nodes").json()["results"]
    [cpu] = [one for one in node["resources"] if one["resource"] == "cpu"]
    assert (node["state"], cpu["left"], cpu["mapping"], cpu["overhead"]) == ("safe", "11", "2", "1")
    one = client.get("/api/v1/platform/ledger/nodes/n1").json()
    assert [zone["numa"] for zone in one["zones"]] == [0, None]
    lines = client.get("/api/v1/platform/ledger/lines?claim=ns/c1&rule=mapping").json()["results"]
    assert [(line["amount"], line["device"]) for line in lines] == [("2", "d0")]
    assert client.get("/api/v1/platform/ledger/differences").json()["results"] == []


def test_a_file_is_replayed_and_kept_nowhere(operator, made) -> None:
    looked(made, 0)
    client = client_of(operator)
    answer = client.get("/api/v1/platform/ledger/file")
    file = b"".join(answer.streaming_content)
    send = {"path": "/api/v1/platform/ledger/replay", "content_type": "application/x-ndjson"}
    done = client.post(data=file, **send)
    assert done.status_code == 200, done.content
    assert done.json()["charged"] == [{"node": "n1", "resource": "cpu", "amount": "5"}]
    broken = client.post(data=file.replace(b'"500m"', b'"501m"'), **send).json()
    assert broken["whole"] is False and "not the line" in broken["fault"]
    assert json.dumps(broken)


def test_a_look_of_another_worker_is_news_only_where_something_changed(made) -> None:
    assert scan(made.read(), NOON, NOON).lines == 7
    assert scan(made.read(), minute(1), minute(1)).lines == 0
    assert isinstance(made, Cluster)
