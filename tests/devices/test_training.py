"""Signals of training platforms: stored once, however often they come, and what they add up to."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.asks.training import claim_account, job_retries, useful_time
from devices.dra.training import Sums, Why
from devices.models import Claim, StageTimes, TrainingSignal
from tenants.access import Access, tenant_for
from tenants.models import PlatformRole, Tenant
from tenants.tokens import make_token
from tests.devices.demofleet import mirror
from tests.devices.pages import client_of, text
from tests.factories import GPU_CONTENT, make_claim, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def access() -> Access:
    return tenant_for(make_person("avocet", make_tenant()), "tidewater")


@pytest.fixture
def claim(access: Access) -> Claim:
    return make_claim(access, make_version(), values={"count": 2})


@pytest.fixture
def start() -> datetime:
    return (timezone.now() - 2 * HOUR).replace(microsecond=0)


def pod(claim: Claim, start: datetime, name: str = "train-0", **row: Any) -> StageTimes:
    """A Pod that held two devices for an hour."""
    fields: dict[str, Any] = {
        "pod_uid": f"uid-{name}-{StageTimes.objects.count()}",
        "classes": ["gpu"],
        "devices": {"gpu": 2},
        "created_at": start,
        "allocated_at": start,
        "bound_at": start,
        "released_at": start + HOUR,
    }
    return StageTimes.objects.create(claim=claim, tenant=claim.tenant, pod=name, **fields | row)


def said(start: datetime, minutes: float, kind: str, **more: Any) -> dict[str, Any]:
    at = start + timedelta(minutes=minutes)
    return {"id": f"{kind}-{minutes}", "kind": kind, "at": at.isoformat(), **more}


def token_of(access: Access, *scopes: str) -> Client:
    made = make_token(
        access=access,
        name="trainer",
        scopes=scopes,
        expires_at=timezone.now() + HOUR,
        now=timezone.now(),
        request_id="r",
    )
    return Client(headers={"Authorization": f"Bearer {made.text}"})


def send(client: Client, *signals: dict[str, Any], to: str = "tenants/tidewater") -> Any:
    return client.post(
        f"/api/v1/{to}/training-signals",
        {"signals": list(signals)},
        content_type="application/json",
    )


def results(answer: Any) -> list[tuple[str, str]]:
    assert answer.status_code == 200, answer.content
    return [(one["result"], one["code"]) for one in answer.json()["results"]]


def test_a_run_that_tells_everything_has_no_unknown_second(
    claim: Claim, access: Access, start: datetime
) -> None:
    pod(claim, start)
    client, about = token_of(access, "signal"), {"claim": claim.public_id, "run": "run-7"}
    story = [
        said(start, 5, "started", **about),
        said(start, 35, "checkpoint", **about, step=1000),
        said(start, 45, "retry", **about),
        said(start, 50, "restored", **about),
        said(start, 60, "finished", **about),
    ]
    assert results(send(client, *reversed(story))) == [("stored", "")] * 5
    found = claim_account(claim, timezone.now())
    assert (found.sums.useful, found.sums.lost, found.sums.unknown) == (2400, 1200, 0)
    assert found.sums.lost_by == {Why.SETUP: 300, Why.REWORK: 600, Why.DOWN: 300}
    (row,) = useful_time(since=start - HOUR, until=timezone.now(), now=timezone.now())
    assert (row.device_class, row.path, row.pods, row.told, row.retries) == (
        "gpu",
        "claim",
        1,
        1,
        1,
    )
    assert (row.sums.useful, row.sums.lost, row.sums.share) == (4800, 2400, 2 / 3), "two devices"
    shorter = useful_time(since=start, until=start + 0.5 * HOUR, now=timezone.now())
    assert (shorter[0].sums.useful, shorter[0].sums.lost) == (2 * 25 * 60, 2 * 5 * 60)


def test_the_same_signal_counts_once_and_an_id_means_one_thing(
    claim: Claim, access: Access, start: datetime
) -> None:
    client, one = token_of(access, "signal"), said(start, 5, "started", claim=claim.public_id)
    assert results(send(client, one)) == [("stored", "")]
    assert results(send(client, one, {**one, "id": "b"})) == [("known", ""), ("stored", "")]
    assert results(send(client, {**one, "kind": "retry"})) == [("refused", "EVENT_ID_REUSED")]
    assert TrainingSignal.objects.count() == 2
    assert send(client, one, one).status_code == 422, "twice in one call is a mistake"


def test_what_nobody_knows_is_refused_and_the_rest_is_stored(
    claim: Claim, access: Access, start: datetime
) -> None:
    theirs = tenant_for(make_person("basil", make_tenant("basalt", ("basalt-a",))), "basalt")
    other = make_claim(theirs, make_version("theirs"))
    pod(claim, start, "train-0")
    mirror([{
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "fresh", "namespace": "tidewater-train", "uid": "u-1",
                     "labels": {"berth.dev/claim": claim.public_id}},
        "spec": {"resourceClaims": [{"name": "d", "resourceClaimTemplateName": "t"}]},
        "status": {"phase": "Pending"},
    }])  # fmt: skip
    place = {"namespace": "tidewater-train"}
    answer = send(
        token_of(access, "signal"),
        said(start, 1, "started", claim=other.public_id),
        said(start, 2, "started", **place, pod="train-0"),
        said(start, 3, "started", **place, pod="fresh"),
        said(start, 4, "started", **place, pod="nobody"),
        said(start, 5, "started", namespace="basalt-a", pod="train-0"),
        said(start, 60 * 24 * 30, "started", claim=claim.public_id),
    )
    assert results(answer) == [
        ("refused", "UNKNOWN_CLAIM"),
        ("stored", ""),
        ("stored", ""),
        ("refused", "UNKNOWN_POD"),
        ("refused", "UNKNOWN_POD"),
        ("refused", "TIME_OUT_OF_RANGE"),
    ]
    assert set(TrainingSignal.objects.values_list("pod", flat=True)) == {"train-0", "fresh"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        pytest.param({"kind": "useful"}, "seconds", id="useful, but how much"),
        pytest.param({"kind": "useful", "seconds": -1}, "seconds", id="less than nothing"),
        pytest.param({"kind": "bored"}, "kind", id="no such kind"),
        pytest.param({"kind": "started", "claim": ""}, "claim", id="of what"),
    ],
)
def test_what_makes_no_sense_is_refused_as_a_whole(
    claim: Claim, access: Access, start: datetime, body: dict[str, Any], field: str
) -> None:
    answer = send(token_of(access, "signal"), said(start, 5, "x", claim=claim.public_id) | body)
    assert answer.status_code == 422 and field in answer.content.decode()
    assert not TrainingSignal.objects.exists()


@pytest.mark.parametrize("scopes", [("read",), ("request",), ("operate",)])
def test_only_the_scope_of_its_own_may_tell(
    claim: Claim, access: Access, start: datetime, scopes: tuple[str, ...]
) -> None:
    one = said(start, 5, "started", claim=claim.public_id)
    assert send(token_of(access, *scopes), one).status_code == 403
    alone = token_of(access, "signal")
    assert alone.get("/api/v1/tenants/tidewater/claims").status_code == 403, "and may nothing else"


def test_a_platform_tells_of_all_tenants(claim: Claim, start: datetime) -> None:
    olm = make_person("olm")
    PlatformRole.objects.create(user=olm, role="operator")
    one = said(start, 5, "started", claim=claim.public_id)
    assert results(send(client_of(olm), one, to="platform")) == [("stored", "")]
    assert send(client_of(make_person("x")), one, to="platform").status_code == 404


def test_pods_of_which_nobody_told_are_unknown_and_counted_by_device(
    claim: Claim, start: datetime
) -> None:
    pod(claim, start)
    pod(claim, start, "late", released_at=None, created_at=start + HOUR, allocated_at=start + HOUR)
    pod(claim, start, "open", devices={})
    pod(claim, start, "plugin", path="plugin", allocated_at=None)
    pod(claim, start, "never", allocated_at=None, bound_at=None)
    found = {
        row.path: row
        for row in useful_time(since=start, until=start + 2 * HOUR, now=start + 3 * HOUR)
    }
    assert found["claim"].sums == Sums(unknown=14400, unknown_by={Why.NO_SIGNALS: 14400})
    assert (found["claim"].pods, found["claim"].untimed, found["claim"].told) == (3, 1, 0)
    assert found["plugin"].sums.unknown == 7200, "a plugin gives its devices at binding"
    assert found["claim"].sums.share is None


def test_pods_of_a_shared_claim_hold_its_devices_once(access: Access, start: datetime) -> None:
    shared = make_claim(access, make_version("shared", {**GPU_CONTENT, "shared": True}))
    for name in ("a", "b"):
        pod(shared, start, name)
    until = start + 2 * HOUR
    (row,) = useful_time(since=start, until=until, now=until)
    assert (row.sums.unknown, row.pods) == (7200, 2)
    one = said(start, 0, "started", claim=shared.public_id)
    last = said(start, 60, "finished", claim=shared.public_id)
    send(token_of(access, "signal"), one, last)
    (row,) = useful_time(since=start, until=until, now=until)
    assert (row.sums.useful, row.sums.unknown, row.pods, row.told) == (7200, 0, 2, 2)


def test_retries_of_a_job_are_seen_without_a_word(claim: Claim, start: datetime) -> None:
    for index, ended in enumerate(("failed", "failed", "succeeded")):
        at = start + timedelta(minutes=index)
        pod(claim, start, f"p{index}", job="job-1", ended=ended, created_at=at)
    pod(claim, start, "other", job="job-2", ended="failed")
    assert job_retries(StageTimes.objects.all()) == 2, "the last failure of job-2 was its last"
    (row,) = useful_time(since=start, until=timezone.now(), now=timezone.now())
    assert row.job_retries == 2


def test_the_pages_say_useful_lost_and_unknown(
    claim: Claim, access: Access, start: datetime
) -> None:
    browser = client_of(access.user)
    where = f"/t/tidewater/claims/{claim.public_id}/useful/"
    assert "No Pod has held its devices yet" in text(browser.get(where))
    assert "No Pod held devices in that time" in text(browser.get("/t/tidewater/history/useful/"))
    pod(claim, start, unhealthy_at=start, ended="failed")
    page = text(browser.get(where))
    assert "Nobody told what the time was good for" in page and "Unhealthy" in page
    about = {"claim": claim.public_id}
    send(
        token_of(access, "signal"),
        said(start, 15, "started", **about),
        said(start, 45, "checkpoint", **about),
    )
    page = text(browser.get(where))
    assert "50 of 100 known seconds were useful" in page
    assert "15 min work done again" in page and "Checkpoint" in page
    assert "50 of 100 known seconds were useful" in text(
        browser.get("/t/tidewater/history/useful/")
    )
    answer = browser.get(f"/api/v1/tenants/tidewater/claims/{claim.public_id}/training").json()
    assert answer["seconds"]["lost_by"] == {"set-up": 900.0, "work done again": 900.0}
    assert answer["pods"][0]["unhealthy_at"]
    answer = browser.get("/api/v1/tenants/tidewater/useful-time?days=1").json()
    assert answer[0]["device_seconds"]["share"] == 0.5


def test_costs_the_same_queries_however_many_pods_and_tenants(
    claim: Claim, access: Access, start: datetime
) -> None:
    client, costs = token_of(access, "signal"), []
    for index in range(3):
        pod(claim, start, f"p{index}")
        send(client, {**said(start, index, "started", claim=claim.public_id), "id": f"i{index}"})
        with CaptureQueriesContext(connection) as queries:
            useful_time(since=start, until=timezone.now(), now=timezone.now())
            claim_account(claim, timezone.now())
        costs.append(len(queries))
    assert costs == [5, 5, 5]
    assert Tenant.objects.count() == 1
