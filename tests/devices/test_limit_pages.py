"""Pages of limits and grants: figures with their lines, whose right is missing, and 404s alike."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.models import Offer
from portal.approvals.decisions import decide
from portal.approvals.models import Approval
from portal.approvals.rules import Verdict
from tenants import grants
from tenants.access import Access, decider_of, tenant_for
from tenants.limit_setting import carry_out
from tenants.models import Grant, Limit, LimitWish, PlatformRole
from tests.devices.pages import client_of, text
from tests.factories import (
    make_access,
    make_claim,
    make_limit,
    make_person,
    make_tenant,
    make_version,
)

pytestmark = pytest.mark.django_db
LIMITS = "/t/tidewater/limits/"
GPU = f"{LIMITS}one/?measure=devices&class=gpu"


@pytest.fixture
def owner() -> Access:
    make_version()
    return make_access("rosa", "owner", limits={"gpu": 8})


def an_offer(access: Access, **terms: Any) -> Grant:
    given: dict[str, Any] = {
        "namespace": "basalt-pipelines",
        "template": "gpu",
        "device_class": "gpu",
        "count": 2,
        "pays": "giver",
        "words": "",
        **terms,
    }
    now = timezone.now()
    ends_at = now + timedelta(days=9)
    return grants.offer(access=access, ends_at=ends_at, request_id="r-0001", now=now, **given)


def basalt() -> Access:
    tenant = make_tenant("basalt", ("basalt-pipelines",), {})
    return tenant_for(make_person("basil", tenant, "owner"), "basalt")


# --- limits ---------------------------------------------------------------------------------------


def test_home_and_limits_show_what_is_left(owner: Access) -> None:
    make_claim(owner, make_version("other"), values={"count": 3})
    client = client_of(owner.user)
    for path in ("/t/tidewater/", LIMITS):
        assert '<b>5</b> <span class="unit">free of 8</span>' in text(client.get(path))


def test_a_limit_lists_the_lines_behind_its_figures(owner: Access) -> None:
    claim = make_claim(owner, make_version("other"), values={"count": 3})
    page = text(client_of(owner.user).get(GPU))
    assert "3 reserved" in page
    assert f"/t/tidewater/claims/{claim.public_id}/" in page
    assert "reserved, waits for devices" in page


def test_many_lines_come_page_by_page(owner: Access) -> None:
    Limit.objects.update(amount=90)
    version = make_version("other")
    for number in range(51):
        make_claim(owner, version, name=f"train-{number}")
    client = client_of(owner.user)
    first, second = (text(client.get(f"{GPU}&page={number}")) for number in (1, 2))
    assert "1 to 50 of 51 lines" in first and first.count("reserved, waits for devices") == 50
    assert "51 to 51 of 51 lines" in second and second.count("reserved, waits for devices") == 1


def test_an_overdrawn_limit_says_by_how_much(owner: Access) -> None:
    make_claim(owner, make_version("other"), values={"count": 3})
    Limit.objects.update(amount=1)
    assert "over by 2" in text(client_of(owner.user).get(LIMITS))


@pytest.mark.parametrize(
    "query",
    ["", "?measure=devices", "?measure=nothing&class=gpu", "?measure=devices&class=unknown"],
)
def test_a_limit_that_is_not_there_is_not_found(owner: Access, query: str) -> None:
    assert client_of(owner.user).get(f"{LIMITS}one/{query}").status_code == 404


def test_an_approver_sees_what_a_plugin_has(owner: Access) -> None:
    now = timezone.now()
    counts = {"total": 0, "free": 0, "plugin": {"allocatable": 16, "requested": 11}}
    Offer.objects.create(device_class="gpu", counts=counts, counted_at=now, seen_at=now)
    address = GPU.replace("one/", "one/wish/")
    client_of(owner.user).post(address, {"amount": "12", "reason": "a larger model"})
    seen = {effect["label"]: effect["value"] for effect in Approval.objects.get().effects}
    assert (seen["total in the cluster"], seen["free in the cluster"]) == ("16", "5")


def test_an_owner_asks_and_an_approver_decides(owner: Access) -> None:
    now = timezone.now()
    counts = {"total": 16, "free": 5}
    Offer.objects.create(device_class="gpu", counts=counts, counted_at=now, seen_at=now)
    client = client_of(owner.user)
    asked = client.post(
        GPU.replace("one/", "one/wish/"), {"amount": "12", "reason": "a larger model"}
    )
    assert asked.status_code == 302
    wish, approval = LimitWish.objects.get(), Approval.objects.get()
    assert [(line["before"], line["after"]) for line in approval.lines] == [("8", "12")]
    seen = {effect["label"]: effect["value"] for effect in approval.effects}
    assert (seen["free after"], seen["free in the cluster"]) == ("12", "5")
    assert Limit.objects.get().amount == 8, "nothing changes before somebody says yes"
    pike = make_person("pike")
    PlatformRole.objects.create(user=pike, role="approver")
    now = timezone.now()
    decide(
        approval_id=approval.pk,
        decider=decider_of(pike, now),
        verdict=Verdict.APPROVE,
        comment="",
        request_id="request-0002",
        now=now,
    )
    assert carry_out(wish.pk, now=now)
    assert not carry_out(wish.pk, now=now), "a task that runs twice sets it once"
    assert Limit.objects.get().amount == 12


def test_a_denial_shows_its_comment(owner: Access) -> None:
    client = client_of(owner.user)
    client.post(GPU.replace("one/", "one/wish/"), {"amount": "99", "reason": "more"})
    pike, now = make_person("pike"), timezone.now()
    PlatformRole.objects.create(user=pike, role="approver")
    decide(
        approval_id=Approval.objects.get().pk,
        decider=decider_of(pike, now),
        verdict=Verdict.DENY,
        comment="Take 12 until January.",
        request_id="request-0002",
        now=now,
    )
    assert "Take 12 until January." in text(client.get(LIMITS))
    assert not carry_out(LimitWish.objects.get().pk, now=now)
    assert Limit.objects.get().amount == 8


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        pytest.param({"amount": "12", "reason": ""}, "This field is required", id="no reason"),
        pytest.param({"amount": "many", "reason": "x"}, "Give a number", id="no number"),
        pytest.param({"amount": "1.5", "reason": "x"}, "whole number", id="half a device"),
        pytest.param({"amount": "8", "reason": "x"}, "Nothing would change", id="the same"),
    ],
)
def test_a_wish_that_is_not_right_says_why(owner: Access, sent: dict[str, str], said: str) -> None:
    answer = client_of(owner.user).post(GPU.replace("one/", "one/wish/"), sent)
    assert answer.status_code == 422
    assert said in text(answer)
    assert not LimitWish.objects.exists()


def test_an_owner_shares_out_on_the_page(owner: Access) -> None:
    client = client_of(owner.user)
    shares = GPU.replace("one/", "one/shares/")
    assert client.post(shares, {"share-tidewater-train": "9"}).status_code == 422
    assert client.post(shares, {"share-tidewater-train": "6"}).status_code == 302
    assert "6 free of 6" in text(client.get(LIMITS))


def test_members_see_and_are_told_who_may(owner: Access) -> None:
    member = client_of(make_person("plover", owner.tenant, "member"))
    for path in (LIMITS, GPU, "/t/tidewater/grants/", "/t/tidewater/grants/offer/"):
        page = text(member.get(path))
        assert 'aria-disabled="true"' in page
        assert "one must be owner" in page
    answer = member.post(GPU.replace("one/", "one/wish/"), {"amount": "12", "reason": "x"})
    assert answer.status_code == 403


@pytest.mark.parametrize("path", [LIMITS, GPU, "/t/tidewater/grants/", "/platform/limits/"])
def test_strangers_find_nothing(owner: Access, path: str) -> None:
    assert client_of(basalt().user).get(path).status_code == 404


def test_the_platform_sets_limits_and_an_auditor_only_looks(owner: Access) -> None:
    admin, auditor = make_person("asp"), make_person("ide")
    PlatformRole.objects.create(user=admin, role="admin")
    PlatformRole.objects.create(user=auditor, role="auditor")
    path = "/platform/limits/tidewater/"
    sent = {"measure": "devices", "device_class": "*", "amount": ""}
    assert "aria-disabled" in text(client_of(auditor).get(path))
    assert client_of(auditor).post(path, sent).status_code == 403
    assert client_of(admin).post(path, sent).status_code == 302
    assert "may be used too, without a limit" in text(client_of(admin).get(path))
    assert client_of(admin).post(path, {**sent, "amount": "3"}).status_code == 422
    assert client_of(admin).post(path, {**sent, "remove": "on"}).status_code == 302
    assert not Limit.objects.filter(device_class="*").exists()


def test_pages_cost_the_same_queries_for_any_length(owner: Access) -> None:
    client, version = client_of(owner.user), make_version("other")
    Limit.objects.update(amount=500)
    make_claim(owner, version)
    an_offer(owner)
    paths = ("/t/tidewater/", LIMITS, GPU, "/t/tidewater/grants/")

    def costs() -> list[int]:
        found = []
        for path in paths:
            with CaptureQueriesContext(
                connection,
            ) as queries:
                client.get(path)
            found.append(len(queries))
        return found

    costs()  # the first look also writes when the session was seen
    before = costs()
    for number in range(8):
        make_claim(owner, version, name=f"more-{number}")
        make_limit(owner.tenant, f"class-{number}", 4)
        an_offer(owner)
    assert costs() == before


# --- grants ---------------------------------------------------------------------------------------


def test_a_grant_is_offered_accepted_used_and_ended(owner: Access) -> None:
    giver, taker = client_of(owner.user), basalt()
    make_limit(taker.tenant, "other", 1)
    other = client_of(taker.user)
    last = (timezone.now() + timedelta(days=9)).date().isoformat()
    sent = {
        "namespace": "basalt-pipelines",
        "what": "gpu gpu",
        "count": "2",
        "ends_on": last,
        "pays": "giver",
        "words": "for the review",
    }
    made = giver.post("/t/tidewater/grants/offer/", sent)
    assert made.status_code == 302
    grant = Grant.objects.get()
    path = f"/t/basalt/grants/{grant.public_id}/"
    assert "Offered to you" in text(other.get("/t/basalt/grants/"))
    assert other.post(f"{path}answer/", {"act": "accept"}).status_code == 302
    ask = {"name": "train", "namespace": "basalt-pipelines", "p-count": "2", "at_once": "1"}
    asked = other.post("/t/basalt/ask/gpu/", {**ask, "grant": grant.public_id})
    assert asked.status_code == 302
    assert "2 of 2 devices in use" in text(other.get(path))
    assert "train" in text(other.get(path))
    mine = text(giver.get(f"/t/tidewater/grants/{grant.public_id}/"))
    assert "2 of 2 devices in use" in mine and "train" not in mine.split("<main")[1]
    assert "Asks that use it" in mine, "ending it says first what it touches"
    ended = giver.post(f"/t/tidewater/grants/{grant.public_id}/answer/", {"act": "revoke"})
    assert ended.status_code == 302
    again = other.post("/t/basalt/ask/gpu/", {**ask, "grant": grant.public_id})
    assert again.status_code == 422


def test_an_outsider_cannot_tell_a_grant_from_nothing(owner: Access) -> None:
    taker = basalt()
    open_one, taken = an_offer(owner), an_offer(owner)
    grants.accept(access=taker, public_id=taken.public_id, request_id="r-0002", now=timezone.now())
    stranger = make_tenant("chalk", ("chalk-x",))
    client = client_of(make_person("sorrel", stranger, "owner"))

    def seen(public_id: str, api: bool) -> tuple[int, str, dict[str, str], int]:
        start = "/api/v1/tenants/chalk/grants/" if api else "/t/chalk/grants/"
        path = f"{start}{public_id}" if api else f"{start}{public_id}/"
        with CaptureQueriesContext(connection) as queries:
            answer: HttpResponse = client.get(path, headers={"X-Request-ID": "the-same-one"})  # type: ignore[assignment]
        told = ("Set-Cookie", "RateLimit-Remaining", "RateLimit-Reset")  # of any two calls
        headers = {name: value for name, value in answer.items() if name not in told}
        body = re.sub(r'data-now="[^"]*"|value="\w{64}"', "", answer.content.decode())
        return answer.status_code, body, headers, len(queries)

    for api in (False, True):
        seen("nothing2", api)  # the first look also writes when the session was seen
        nothing = seen("nothing2", api)
        assert nothing[0] == 404
        assert seen(open_one.public_id, api) == nothing
        assert seen(taken.public_id, api) == nothing
