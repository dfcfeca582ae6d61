"""The history of stages: what is counted, what is too little to say, and who sees whose."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.asks import history
from devices.asks.stagehistory import PARTS, By, Question, history_of, question_from
from devices.models import Claim, NodePool, StageTimes
from portal.errors import Invalid
from tenants.access import Access, tenant_for
from tenants.models import PlatformRole
from tests.devices.demofleet import mirror
from tests.devices.pages import client_of, text
from tests.factories import NOON, make_claim, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def access() -> Access:
    return tenant_for(make_person("avocet", make_tenant()), "tidewater")


@pytest.fixture
def claim(access: Access) -> Claim:
    return make_claim(access, make_version())


def of_another() -> Claim:
    """A claim of another tenant."""
    access = tenant_for(make_person("basil", make_tenant("basalt", ("basalt-a",))), "basalt")
    return make_claim(access, make_version("theirs"))


def pods(claim: Claim, number: int, **row: Any) -> None:
    """So many Pods that waited 1, 2, 3, … seconds, prepared in 4 and were Ready 2 later."""
    at: datetime = row.pop("at", NOON)
    before = StageTimes.objects.count()
    for index in range(number):
        allocated = at + timedelta(seconds=index + 1)
        fields: dict[str, Any] = {
            "claim": claim,
            "tenant": claim.tenant,
            "pod_uid": f"uid-{before + index}",
            "pod": "pod",
            "classes": ["gpu"],
            "created_at": at,
            "allocated_at": allocated,
            "bound_at": allocated,
            "prepared_at": allocated + timedelta(seconds=4),
            "running_at": allocated + timedelta(seconds=5),
            "ready_at": allocated + timedelta(seconds=6),
        }
        StageTimes.objects.create(**fields | row)


def day(by: By = By.CLASS, **narrowed: str) -> Question:
    return Question(NOON - timedelta(hours=12), NOON + timedelta(hours=12), by, **narrowed)


def test_half_and_ninety_five_of_a_hundred_of_each_measure(claim: Claim) -> None:
    pods(claim, 5)
    (group,) = history_of(day()).groups
    found = {word: (one.samples, one.p50, one.p95) for word, one in group.figures.items()}
    assert found == {
        "wait": (5, 3.0, 4.8),
        "prepare": (5, 4.0, 4.0),
        "start": (5, 2.0, 2.0),
        "whole": (5, 9.0, 10.8),
    }


def test_too_few_say_nothing(claim: Claim) -> None:
    pods(claim, 4)
    (group,) = history_of(day()).groups
    assert (group.figures["wait"].samples, group.figures["wait"].p50) == (4, None)


def test_who_is_still_on_the_way_is_neither_success_nor_failure(claim: Claim) -> None:
    nothing = {"running_at": None, "ready_at": None, "prepared_at": None}
    pods(claim, 3)
    pods(claim, 1, **nothing, ended="failed")
    pods(claim, 1, **nothing, released_at=NOON + timedelta(minutes=1))
    pods(claim, 2, **nothing, allocated_at=None, bound_at=None)
    whole = history_of(day()).whole
    assert (whole.pods, whole.ran, whole.never_ran, whole.under_way) == (7, 3, 2, 2)
    assert (whole.percent, whole.failed) == (60, 1)


def test_nothing_over_is_no_rate_at_all(claim: Claim) -> None:
    pods(claim, 1, running_at=None, ready_at=None)
    assert history_of(day()).whole.percent is None
    assert history_of(day(device_class="nic")).whole.pods == 0


def test_a_plugin_gives_devices_at_binding(claim: Claim) -> None:
    bound = NOON + timedelta(seconds=7)
    pods(claim, 5, path="plugin", allocated_at=None, bound_at=bound)
    pods(claim, 5, path="claim", allocated_at=None, bound_at=bound)
    found = {group.key: group for group in history_of(day(By.PATH)).groups}
    assert found["plugin"].figures["wait"].p50 == 7.0
    assert found["claim"].figures["wait"].samples == 0, "a claim that nobody timed is not measured"


def test_groups_by_class_path_pool_and_tenant(claim: Claim) -> None:
    other = of_another()
    pods(claim, 2, classes=["gpu", "nic"], node_pool="l40s", retries=3)
    pods(other, 1, path="extended")
    keys = {by: [(group.key, group.pods) for group in history_of(day(by)).groups] for by in By}
    assert keys == {
        By.CLASS: [("gpu", 3), ("nic", 2)],
        By.PATH: [("claim", 2), ("extended", 1)],
        By.POOL: [("l40s", 2), ("", 1)],
        By.TENANT: [("tidewater", 2), ("basalt", 1)],
    }
    assert history_of(day()).whole.pods == 3, "a Pod with two classes is one Pod"
    assert history_of(day()).whole.retries == 6
    assert history_of(day(tenant="basalt")).whole.pods == 1
    assert history_of(day(pool="l40s", path="claim", device_class="nic")).whole.pods == 2


def test_parts_of_the_span_are_equal_and_none_is_lost(claim: Claim) -> None:
    pods(claim, 1, at=NOON - timedelta(hours=12))
    pods(claim, 2, at=NOON + timedelta(hours=12) - timedelta(microseconds=1))
    pods(claim, 1, at=NOON + timedelta(hours=12))
    found = history_of(day())
    assert [one.group.pods for one in found.parts] == [1, *[0] * (PARTS - 2), 2]
    assert found.parts[1].start == NOON - timedelta(hours=11)


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        pytest.param({"days": "8"}, "days", id="a span that is not offered"),
        pytest.param({"from": "soon"}, "from", id="no moment"),
        pytest.param({"from": "2026-11-02", "to": "2026-11-01"}, "to", id="backwards"),
        pytest.param({"from": "2025-11-02"}, "from", id="longer than anything is kept"),
        pytest.param({"by": "node"}, "by", id="no grouping"),
        pytest.param({"by": "tenant"}, "by", id="a tenant by tenants"),
        pytest.param({"path": "mail"}, "path", id="no path"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(asked: dict[str, str], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        question_from(asked, NOON, tenant="tidewater")
    assert list(refused.value.fields) == [field]


def test_a_turn_records_the_path_the_node_pool_and_what_was_tried_again(claim: Claim) -> None:
    NodePool.objects.create(
        slug="l40s", name="L40S", selector={"pool": "l40s"}, resource="a.example/gpu",
        driver="a", device_class="gpu", plugin_label="p=on", driver_label="d=on",
        made_by=claim.asked_by, made_at=NOON,
    )  # fmt: skip
    mirror([{"apiVersion": "v1", "kind": "Node",
             "metadata": {"name": "node-1", "labels": {"pool": "l40s"}}}])  # fmt: skip
    owner = {"kind": "Job", "name": "train", "uid": "job-1", "apiVersion": "batch/v1"}
    pod: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "tidewater-train", "uid": "pod-1",
                     "creationTimestamp": "2026-11-02T12:00:00Z", "ownerReferences": [owner]},
        "spec": {"containers": []}, "status": {"phase": "Pending"},
    }  # fmt: skip
    event = {"reason": "FailedPrepareDynamicResources", "count": 4,
             "involvedObject": {"kind": "Pod", "uid": "pod-1"}}  # fmt: skip
    Claim.objects.update(path="plugin")
    claim.refresh_from_db()
    history.record(claim, claims=(), pods=[pod], now=NOON)
    row = StageTimes.objects.get()
    assert (row.path, row.node, row.node_pool, row.job) == ("plugin", "", "", "job-1")
    pod["spec"]["nodeName"] = "node-1"
    history.record(claim, claims=(), pods=[pod], events=[event], now=NOON)
    pod["status"] = {
        "phase": "Failed",
        "extendedResourceClaimStatus": {"resourceClaimName": "p-extended"},
    }
    history.record(claim, claims=(), pods=[pod], now=NOON)
    row.refresh_from_db()
    assert (row.path, row.node, row.node_pool) == ("extended", "node-1", "l40s")
    assert (row.retries, row.ended) == (4, "failed"), "events are forgotten, counts are not"


def test_a_tenant_sees_its_own_and_the_platform_all(claim: Claim, client: Client) -> None:
    other = of_another()
    now = timezone.now() - timedelta(hours=1)
    pods(claim, 5, at=now)
    pods(other, 7, at=now, classes=["secret"])
    own = client_of(claim.tenant.memberships.get().user)
    page = text(own.get("/t/tidewater/history/?days=1"))
    assert "5 of 5 came to run" in page and "secret" not in page and "basalt" not in page
    assert own.get("/t/basalt/history/").status_code == 404
    assert own.get("/platform/history/").status_code == 404
    olm = make_person("olm")
    PlatformRole.objects.create(user=olm, role="operator")
    page = text(client_of(olm).get("/platform/history/?by=tenant"))
    assert "12 of 12 came to run" in page and "Basalt" in page
    answer = own.get("/api/v1/tenants/tidewater/stage-history?days=1").json()
    assert (answer["whole"]["pods"], answer["groups"][0]["figures"]["wait"]["p50"]) == (5, 3.0)
    assert sum(part["group"]["pods"] for part in answer["parts"]) == 5


def test_an_empty_span_and_a_wrong_one_are_said(access: Access) -> None:
    own = client_of(access.user)
    assert "No Pod with devices began in that time" in text(own.get("/t/tidewater/history/"))
    wrong = own.get("/t/tidewater/history/?from=2026-11-03T00:00&to=2026-11-02T00:00")
    assert wrong.status_code == 422 and "It must be later than the beginning." in text(wrong)
    assert own.get("/api/v1/tenants/tidewater/stage-history?by=node").status_code == 422


def test_the_page_costs_the_same_queries_however_many_pods(claim: Claim) -> None:
    own = client_of(claim.tenant.memberships.get().user)
    costs = []
    own.get("/t/tidewater/history/")  # what a process reads once
    for _ in range(2):
        pods(claim, 6, at=timezone.now() - timedelta(hours=1), classes=["gpu", "nic"])
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert own.get("/t/tidewater/history/").status_code == 200
        costs.append(len(queries))
    assert costs[0] == costs[1] <= 28, costs
