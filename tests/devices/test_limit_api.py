"""The API of limits and grants: the same words and codes as the pages."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from devices.models import Claim
from tenants.access import Access, tenant_for
from tenants.models import Grant, Limit, LimitWish, PlatformRole
from tests.devices.test_api import Caller, problem
from tests.factories import make_access, make_claim, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db
TENANT = "/api/v1/tenants/tidewater"
GPU = {"measure": "devices", "device_class": "gpu"}
ASK = {"template": "gpu", "namespace": "tidewater-train", "name": "train", "values": {"count": 2}}


@pytest.fixture
def owner() -> Access:
    make_version()
    return make_access("rosa", "owner", limits={"gpu": 8})


def body(answer: Any) -> Any:
    return json.loads(answer.content)


def send(client: Client, method: str, path: str, data: Any = None, **headers: str) -> Any:
    return client.generic(
        method, path, json.dumps(data), content_type="application/json", headers=headers
    )


def the_limit(caller: Caller) -> Any:
    return next(one for one in body(caller.get(f"{TENANT}/limits"))["limits"] if one["amount"])


def test_a_limit_in_four_parts_with_its_lines(owner: Access) -> None:
    caller = Caller(owner)
    made = body(caller.post(ASK, f"{TENANT}/claims"))
    assert the_limit(caller) == {
        "measure": "devices",
        "device_class": "gpu",
        "capacity": "",
        "amount": "8",
        "used": "0",
        "reserved": "2",
        "granted": "0",
        "free": "6",
        "overdrawn": "0",
        "shares": {},
        "revision": 1,
    }
    lines = body(caller.get(f"{TENANT}/limits/lines?measure=devices&device_class=gpu"))
    line = {"kind": "hold", "amount": "2", "namespace": "tidewater-train", "source": made["id"]}
    assert lines == {"next": None, "previous": None, "results": [line]}


def test_the_lines_of_a_limit_come_page_by_page(owner: Access) -> None:
    Limit.objects.update(amount=90)
    version = make_version("other")
    made = {make_claim(owner, version, name=f"train-{n}").public_id for n in range(5)}
    caller, seen = Caller(owner), []
    address = f"{TENANT}/limits/lines?measure=devices&device_class=gpu&limit=2"
    pages = []
    while address:
        page = body(caller.get(address))
        pages.append([one["source"] for one in page["results"]])
        seen += pages[-1]
        address, before = page["next"], page["previous"]
    assert [len(page) for page in pages] == [2, 2, 1] and set(seen) == made
    back = body(caller.get(before))
    assert [one["source"] for one in back["results"]] == pages[1]
    assert body(caller.get(back["previous"]))["previous"] is None
    wrong = caller.get(f"{TENANT}/limits/lines?measure=devices&device_class=gpu&cursor=W10x")
    assert problem(wrong)[0] == 422


def test_an_ask_for_too_many_says_how_many_too_many(owner: Access) -> None:
    caller = Caller(owner)
    answer = caller.post({**ASK, "at_once": 5}, f"{TENANT}/claims")
    assert problem(answer) == (422, "LIMIT_REACHED")
    (limit,) = body(answer)["facts"]["limits"]
    assert (limit["asked"], limit["left"], limit["limit"], limit["over"]) == ("10", "8", "8", "2")
    assert "rosa" in body(answer)["detail"]
    assert not Claim.objects.exists()
    assert caller.post({**ASK, "at_once": 4}, f"{TENANT}/claims").status_code == 201
    assert Claim.objects.get().at_once == 4


def test_a_class_without_a_limit_is_not_allowed(owner: Access) -> None:
    Limit.objects.all().delete()
    assert problem(Caller(owner).post(ASK, f"{TENANT}/claims")) == (422, "CLASS_NOT_ALLOWED")


def test_an_owner_s_token_asks_for_a_limit_once(owner: Access) -> None:
    caller, key = Caller(owner, "operate"), {"Idempotency-Key": "more-1"}
    wish = {**GPU, "amount": "12", "reason": "a larger model"}
    first = caller.post(wish, f"{TENANT}/limits/wishes", **key)
    again = caller.post(wish, f"{TENANT}/limits/wishes", **key)
    assert (first.status_code, again["Idempotency-Replayed"]) == (201, "true")
    assert LimitWish.objects.count() == 1
    assert body(first)["approval"].startswith("A-")
    other = caller.post({**wish, "amount": "13"}, f"{TENANT}/limits/wishes")
    assert problem(other)[1] == "ALREADY_ASKED"


@pytest.mark.parametrize("scope", ["read", "request"])
def test_other_scopes_do_not(owner: Access, scope: str) -> None:
    caller = Caller(owner, scope)
    wish = {**GPU, "amount": "12", "reason": "x"}
    assert problem(caller.post(wish, f"{TENANT}/limits/wishes")) == (403, "NOT_PERMITTED")


def test_shares_need_the_revision_that_was_looked_at(owner: Access) -> None:
    client = Caller(owner, "operate").client
    path, shares = f"{TENANT}/limits/shares", {**GPU, "shares": {"tidewater-train": "6"}}
    assert problem(send(client, "PUT", path, shares, **{"If-Match": '"7"'})) == (412, "OUTDATED")
    answer = send(client, "PUT", path, shares, **{"If-Match": '"1"'})
    assert (answer.status_code, answer["ETag"]) == (200, '"2"')
    assert body(answer)["shares"] == {"tidewater-train": "6"}
    wrong = {**GPU, "shares": {"tidewater-train": "9"}}
    assert problem(send(client, "PUT", path, wrong)) == (422, "INVALID")


def test_the_platform_sets_and_removes(owner: Access) -> None:
    admin = make_person("asp")
    PlatformRole.objects.create(user=admin, role="admin")
    client, path = Client(), "/api/v1/platform/tenants/tidewater/limits"
    client.force_login(admin)
    memory = {"measure": "capacity", "device_class": "gpu", "capacity": "example.com/memory"}
    answer = send(client, "PUT", path, {**memory, "amount": "80Gi"})
    assert (answer.status_code, body(answer)["amount"]) == (200, "80Gi")
    query = "?measure=capacity&device_class=gpu&capacity=example.com/memory"
    assert client.delete(f"{path}{query}").status_code == 204
    assert Limit.objects.count() == 1
    assert problem(send(client, "PUT", path, {**GPU, "amount": "many"})) == (422, "INVALID")
    stranger = Client()
    stranger.force_login(owner.user)
    assert problem(stranger.get(path)) == (404, "NOT_FOUND")  # type: ignore[arg-type]


def test_a_capacity_limit_needs_an_amount(owner: Access) -> None:
    Limit.objects.create(
        tenant=owner.tenant,
        measure="capacity",
        device_class="gpu",
        capacity="example.com/memory",
        amount=80 * 2**30,
        changed_at=timezone.now(),
    )
    answer = Caller(owner).post(ASK, f"{TENANT}/claims")
    assert problem(answer) == (422, "LIMIT_NEEDS_AMOUNT")


def test_a_grant_from_offer_to_end(owner: Access) -> None:
    tenant = make_tenant("basalt", ("basalt-pipelines",), {})
    basil = tenant_for(make_person("basil", tenant, "owner"), "basalt")
    giver, taker = Caller(owner, "read", "operate"), Caller(basil, "read", "operate", "request")
    terms = {
        "namespace": "basalt-pipelines",
        "template": "gpu",
        "device_class": "gpu",
        "count": 2,
        "ends_at": (timezone.now() + timedelta(days=9)).isoformat(),
    }
    path = f"{TENANT}/grants"
    wrong = giver.post({**terms, "device_class": "nic"}, path)
    assert problem(wrong) == (422, "INVALID")
    made = giver.post(terms, path)
    assert (made.status_code, body(made)["state"]) == (201, "offered")
    theirs = f"/api/v1/tenants/basalt/grants/{body(made)['id']}"
    assert [row["id"] for row in body(taker.get("/api/v1/tenants/basalt/grants"))["results"]] == [
        body(made)["id"]
    ]
    stale = taker.post(None, f"{theirs}/accept", **{"If-Match": '"9"'})
    assert problem(stale) == (412, "OUTDATED")
    accepted = taker.post(None, f"{theirs}/accept", **{"If-Match": made["ETag"]})
    assert (accepted.status_code, body(accepted)["state"]) == (200, "accepted")
    assert problem(taker.post(None, f"{theirs}/accept")) == (422, "GRANT_NOT_OPEN")
    claims = "/api/v1/tenants/basalt/claims"
    ask = {**ASK, "namespace": "basalt-pipelines", "grant": body(made)["id"]}
    used = taker.post(ask, claims)
    assert used.status_code == 201
    assert problem(taker.post(ask, claims)) == (422, "GRANT_USED_UP")
    seen = body(giver.get(made["Location"]))
    assert (seen["used"], seen["touches"]["devices"], seen["touches"]["claims"]) == (2, 2, [])
    assert body(taker.get(theirs))["touches"]["claims"] == [body(used)["id"]]
    assert the_limit(giver)["granted"] == "2"
    ended = giver.post(None, f"{path}/{body(made)['id']}/revoke")
    assert (ended.status_code, body(ended)["state"]) == (200, "revoked")
    assert the_limit(giver)["granted"] == "2", "what runs stays and counts"
    assert Grant.objects.count() == 1


def test_lists_cost_the_same_queries_for_any_length(
    owner: Access, django_assert_max_num_queries: Any
) -> None:
    caller = Caller(owner)
    Limit.objects.update(amount=500)
    for number in range(12):
        caller.post({**ASK, "name": f"train-{number}"}, f"{TENANT}/claims")
    caller.get(f"{TENANT}/limits")
    with django_assert_max_num_queries(14):
        caller.get(f"{TENANT}/limits")
