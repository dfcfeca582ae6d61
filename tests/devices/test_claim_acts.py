"""What one can do with claims, by page and by API: extend, describe, release several, read on."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from devices.models import Claim, ClaimEvent
from portal.audit.models import AuditLine
from tenants.access import Access
from tenants.models import PlatformRole, Tenant
from tests.devices.demofleet import mirror
from tests.devices.pages import client_of, text
from tests.factories import make_access, make_claim, make_person, make_version

pytestmark = pytest.mark.django_db
NOW = timezone.now()
SHARED: dict[str, Any] = {
    "requests": [{"name": "gpu", "device_class": "gpu", "words": "GPU"}],
    "shared": True,
}


@pytest.fixture
def access() -> Access:
    return make_access()


@pytest.fixture
def claim(access: Access, client: Client) -> Claim:
    client.force_login(access.user)
    return make_claim(access, days=5, now=NOW)


def page_of(client: Client, claim: Claim, path: str = "") -> str:
    answer = client.get(f"/t/tidewater/claims/{claim.public_id}/{path}")
    assert answer.status_code == 200
    return text(answer)


def api(client: Client, method: str, path: str, body: Any = None, **headers: str) -> Any:
    return client.generic(
        method,
        f"/api/v1/tenants/tidewater/{path}",
        json.dumps(body) if body is not None else "",
        content_type="application/json",
        headers=headers,
    )


def test_the_page_says_when_it_ends_and_extends_it(client: Client, claim: Claim) -> None:
    shown = page_of(client, claim)
    assert "Its time is over" in shown and "Ends soon" not in shown, "five days: a banner"
    assert f"Ends {claim.expires_at:%-d %b %Y %H:%M} UTC" in shown
    client.post(f"/t/tidewater/claims/{claim.public_id}/extend/", {"days": "30"})
    claim.refresh_from_db()
    assert claim.expires_at is not None and claim.expires_at > NOW + timedelta(days=29)
    assert "Its time is over" not in page_of(client, claim)
    client.post(f"/t/tidewater/claims/{claim.public_id}/extend/", {"days": ""})
    assert "Ends when you release it" in page_of(client, claim)


@pytest.mark.parametrize("days", ["0", "-1", "soon", "731", "9" * 40, "1.5"])
def test_days_that_make_no_sense_change_nothing_and_say_what_would(
    client: Client, claim: Claim, days: str
) -> None:
    address = f"/t/tidewater/claims/{claim.public_id}/extend/"
    answer = client.post(address, {"days": days}, follow=True)
    assert "Give a whole number of days from 1 to 730." in text(answer)
    assert Claim.objects.get().expires_at == claim.expires_at
    if days.lstrip("-").isdigit() and len(days) < 9:
        refused = api(client, "POST", f"claims/{claim.public_id}/extend", {"days": int(days)})
        assert refused.status_code == 422
        assert "days" in refused.json()["facts"]["fields"]


def test_by_api_an_end_is_set_once_and_only_on_what_one_looked_at(
    client: Client, claim: Claim
) -> None:
    where, key = f"claims/{claim.public_id}/extend", {"Idempotency-Key": "e-1"}
    tag = api(client, "GET", f"claims/{claim.public_id}")["ETag"]
    first = api(client, "POST", where, {"days": 30}, **key, **{"If-Match": tag})
    assert first.status_code == 200 and first.json()["revision"] == 2
    again = api(client, "POST", where, {"days": 30}, **key, **{"If-Match": tag})
    assert again.json() == first.json()
    stale = api(client, "POST", where, {"days": 60}, **{"If-Match": tag})
    assert stale.status_code == 412
    assert AuditLine.objects.filter(action="claim.extended").count() == 1


def test_a_note_is_written_read_and_escaped(client: Client, claim: Claim) -> None:
    address = f"/t/tidewater/claims/{claim.public_id}/note/"
    client.post(address, {"note": "for <b>May</b>"})
    assert "for &lt;b&gt;May&lt;/b&gt;" in page_of(client, claim)
    body = api(client, "PUT", f"claims/{claim.public_id}/note", {"note": "by API"}).json()
    assert body["note"] == "by API"
    assert "At most 240" in text(client.post(address, {"note": "x" * 241}, follow=True))


def test_asking_by_api_takes_days_and_a_note(client: Client, access: Access) -> None:
    client.force_login(access.user)
    make_version()
    Tenant.objects.update(longest_days=10)
    body = {"template": "gpu", "namespace": "tidewater-train", "name": "a", "note": "n"}
    made = api(client, "POST", "claims", {**body, "days": 3}).json()
    assert made["note"] == "n" and made["expires_at"] < (NOW + timedelta(days=4)).isoformat()
    assert api(client, "POST", "claims", body).json()["expires_at"], "the tenant's maximum"
    refused = api(client, "POST", "claims", {**body, "days": 11})
    assert refused.status_code == 422 and "from 1 to 10" in refused.text


@pytest.fixture
def several(access: Access, client: Client) -> list[Claim]:
    client.force_login(access.user)
    version = make_version()
    made = [make_claim(access, version, name=f"job-{n}", now=NOW) for n in range(3)]
    device = {"driver": "d", "pool": "p", "device": "x", "claim": "c", "request": "r", "node": ""}
    Claim.objects.filter(name="job-0").update(
        state="in use", placed=[device, device], pods=[{"name": "pod-1", "phase": "Running"}]
    )
    return made


def test_releasing_several_says_first_what_it_touches(client: Client, several: list[Claim]) -> None:
    asked = {"id": [one.public_id for one in several]}
    shown = text(client.get("/t/tidewater/claims/release/", asked))
    assert "Release 3 claims?" in shown and "pod-1" in shown
    assert re.search(r"Stays</span><span>Pods with their devices.*?<b>1</b>", shown)
    assert re.search(r"Frees</span><span>Devices.*?<b>2</b>", shown)
    assert Claim.objects.filter(released_at=None).count() == 3, "looking changes nothing"
    answer = client.post("/t/tidewater/claims/release/", asked, follow=True)
    assert "3 claims released" in text(answer)
    assert Claim.objects.filter(state="releasing").count() == 3


def test_what_cannot_be_released_is_named_and_keeps_none_back(
    client: Client, several: list[Claim]
) -> None:
    Claim.objects.filter(name="job-1").update(state="released", released_at=NOW)
    other = make_access("basil", slug="basalt", namespaces=("basalt-a",))
    theirs = make_claim(other, several[0].version, now=NOW)
    ids = [*(one.public_id for one in several), theirs.public_id, "nonesuch"]
    shown = text(client.post("/t/tidewater/claims/release/", {"id": ids}))
    assert "Not all of them were released" in shown and "ALREADY_RELEASED" in shown
    assert shown.count("NOT_FOUND") == 2
    assert Claim.objects.filter(state="releasing").count() == 2
    theirs.refresh_from_db()
    assert theirs.wanted
    outcomes = api(client, "POST", "claims/release", {"ids": ids})
    assert outcomes.status_code == 202
    assert [one["code"] for one in outcomes.json()] == [
        "", "ALREADY_RELEASED", "", "NOT_FOUND", "NOT_FOUND",
    ]  # fmt: skip


@pytest.mark.parametrize("ids", [[], ["x"] * 1 + [f"id-{n}" for n in range(100)]])
def test_none_and_too_many_release_nothing(
    client: Client, several: list[Claim], ids: list[str]
) -> None:
    assert api(client, "POST", "claims/release", {"ids": ids}).status_code == 422
    page = client.post("/t/tidewater/claims/release/", {"id": ids})
    assert page.status_code == 422
    assert client.get("/t/tidewater/claims/release/", {"id": ids}).status_code == 200
    assert Claim.objects.filter(released_at=None).count() == 3


def test_a_viewer_is_told_who_may_and_is_offered_nothing(
    access: Access, several: list[Claim]
) -> None:
    viewer = client_of(make_person("iris", access.tenant, "viewer"))
    ids = {"id": [several[0].public_id]}
    assert 'aria-disabled="true"' in viewer.get("/t/tidewater/claims/release/", ids).text
    assert viewer.post("/t/tidewater/claims/release/", ids).status_code == 403
    assert "Release chosen" not in viewer.get("/t/tidewater/claims/").text
    for path, form in (("extend/", {"days": "3"}), ("note/", {"note": "x"})):
        address = f"/t/tidewater/claims/{several[0].public_id}/{path}"
        assert viewer.post(address, form).status_code == 403
    assert "one must be member or owner" in page_of(viewer, several[0])


def test_five_hundred_events_are_read_page_by_page_and_change_no_stage(
    client: Client, claim: Claim
) -> None:
    Claim.objects.update(state="in use")
    begun = NOW + timedelta(seconds=2)
    states = [("applied", begun), ("in use", begun + timedelta(seconds=3))]
    states += [("in use", begun + timedelta(minutes=n + 1)) for n in range(500)]
    ClaimEvent.objects.bulk_create(
        ClaimEvent(claim=claim, at=at, state=state, text=f"event {n}")
        for n, (state, at) in enumerate(states)
    )
    shown = page_of(client, claim)
    assert shown.count("event ") == 10 and "All of the history" in shown
    assert "+3.0 s" in shown, "the first time that it ran, 500 events ago"
    body = api(client, "GET", f"claims/{claim.public_id}").json()
    assert len(body["events"]) == 50
    seen, address = [], f"/api/v1/tenants/tidewater/claims/{claim.public_id}/events?limit=100"
    while address:
        body = client.get(address).json()
        seen += [event["text"] for event in body["results"]]
        address = body["next"]
    assert len(seen) == 503 and seen[0] == "event 501" and seen[-1] == "Asked for."
    history = page_of(client, claim, "history/")
    assert "503 entries" in history and history.count("event ") == 50
    older = re.search(r'href="(\?of=berth[^"]*)" rel="next"', history)
    assert older is not None
    second = page_of(client, claim, f"history/{older[1].replace('&amp;', '&')}")
    assert "event 451" in second and "event 452" not in second and 'rel="prev"' in second


def test_what_the_cluster_said_is_read_page_by_page(client: Client, claim: Claim) -> None:
    Claim.objects.update(object_uid="uid-1")
    mirror(
        [
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"e-{n}", "namespace": "tidewater-train", "uid": f"ev-{n}"},
                "involvedObject": {"kind": "ResourceClaim", "name": "c", "uid": "uid-1"},
                "reason": "Said",
                "message": f"message {n};",
                "type": "Normal",
                "lastTimestamp": "2026-11-02T12:30:00Z",
            }
            for n in range(120)
        ]
    )
    assert "All that it said" in page_of(client, claim)
    shown = page_of(client, claim, "history/?of=cluster")
    assert "120 entries" in shown and shown.count("message ") == 50
    seen = set()
    address = f"/api/v1/tenants/tidewater/claims/{claim.public_id}/cluster-events?limit=50"
    while address:
        body = client.get(address).json()
        seen |= {one["message"] for one in body["results"]}
        address = body["next"]
    assert len(seen) == 120


def test_a_shared_claim_says_who_uses_it_and_what_a_further_pod_says(
    client: Client, access: Access
) -> None:
    client.force_login(access.user)
    claim = make_claim(access, make_version(content=SHARED), now=NOW)
    assert "No Pod uses it now." in page_of(client, claim)
    Claim.objects.update(pods=[{"name": "pod-1", "phase": "Running", "node": "", "ready": True}])
    shown = page_of(client, claim)
    assert "Now 1 Pod uses it" in shown and "resourceClaimName" in shown
    assert "Kubernetes has no claim across namespaces" in shown
    mine = make_claim(access, make_version("own"), now=NOW)
    assert "each Pod gets devices of its own" in page_of(client, mine)


def test_home_says_what_ends_soon_after_what_is_stuck(
    client: Client, access: Access, claim: Claim
) -> None:
    stuck = make_claim(access, claim.version, name="stuck", now=NOW)
    make_claim(access, claim.version, name="later", days=60, now=NOW)
    Claim.objects.filter(pk=stuck.pk).update(state="failed", code="REFUSED_BY_CLUSTER")
    home = text(client.get("/t/tidewater/"))
    attend = home.partition('id="attend"')[2].partition("</section>")[0]
    assert "2 claims need you" in attend and "ENDS_SOON" in attend and "later" not in attend
    assert attend.index("REFUSED_BY_CLUSTER") < attend.index("ENDS_SOON")


def test_the_platform_sets_how_long_a_tenants_claims_may_last(access: Access) -> None:
    admin = make_person("ada")
    PlatformRole.objects.create(user=admin, role="admin")
    client = client_of(admin)
    address = "/platform/limits/tidewater/longest/"
    for days, after in (("30", 30), ("0", 30), ("soon", 30), ("731", 30), ("", None)):
        client.post(address, {"days": days})
        assert Tenant.objects.get().longest_days == after, days
    operation = "/api/v1/platform/tenants/tidewater/longest-days"
    answer = client.put(operation, {"days": 14}, content_type="application/json")
    assert answer.json() == {"days": 14}
    assert client.put(operation, {"days": 0}, content_type="application/json").status_code == 422
    assert AuditLine.objects.filter(action="tenant.longest_days_set").count() == 3
    assert 'value="14"' in client.get("/platform/limits/tidewater/").text
