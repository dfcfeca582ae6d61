"""The form with its what-if beside it: advice, alternatives that fill it, and what it costs."""

from __future__ import annotations

import html
import re
import statistics
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.catalogue.offers import count as count_offers
from devices.models import Claim, ClusterState, Observed, Sync, TemplateVersion
from portal.management.demo_templates import TEMPLATES
from tenants.access import tenant_for
from tenants.models import Tenant, User
from tests.devices.demofleet import fleet_objects, h100, holding, mirror
from tests.factories import NOON, make_claim, make_limit, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db
FORM = "/t/tidewater/ask/gpu/"
PREVIEW = f"{FORM}preview/"
WHOLE = {"p-memory": "80-nvlink", "p-gpus": "8", "name": "train", "namespace": "tidewater-train"}


@pytest.fixture
def member(client: Client) -> Client:
    """A member, over a fleet in which no H100 machine is wholly free."""
    make_version(content=TEMPLATES["gpu"][3])
    client.force_login(make_person("avocet", make_tenant()))
    mirror(
        [
            *fleet_objects(),
            holding("secret-1", h100(1, *range(8))),
            holding("mine-2", h100(2, *range(8)), namespace="tidewater-train"),
            holding("secret-3", h100(3, *range(4))),
            holding("secret-4", h100(4, *range(4))),
        ]
    )
    return client


def test_what_fits_says_where(member: Client) -> None:
    page = member.post(PREVIEW, {**WHOLE, "p-gpus": "4"}).text
    assert "Fits now, on 2 nodes" in page and "h100-a03" in page
    assert "too few to say" in page, "nobody ever waited here"
    assert "Advice, not a promise, for one Pod that asks 1 CPU and 1Gi" in page


def test_room_is_no_promise_where_limits_stand_against_it(member: Client) -> None:
    make_limit(Tenant.objects.get(), "h100-80gb", 10)  # 8 are held past Berth
    page = member.post(PREVIEW, {**WHOLE, "p-gpus": "4"}).text
    assert "More than you may have" in page
    assert "Room is there; your limits stand against it." in page
    assert "Fits now" not in page
    assert "Fits now" in member.post(PREVIEW, {**WHOLE, "p-gpus": "2"}).text


def test_a_form_begins_with_what_limits_allow(member: Client) -> None:
    tenant = Tenant.objects.get()
    content = {**TEMPLATES["gpu"][3], "parameters": [*TEMPLATES["gpu"][3]["parameters"]]}
    content["parameters"][2] = {**content["parameters"][2], "default": 6}
    make_version("six", content)
    form = FORM.replace("gpu", "six")
    assert 'value="6"' in member.get(form).text, "nothing is limited"
    make_limit(tenant, "h100-80gb", 11)  # 8 are held past Berth
    page = member.get(form).text
    assert 'value="3"' in page and "Usually 6; your limits leave room for 3." in page
    assert "More than you may have" not in page
    asked = member.get(f"{form}?p-gpus=4").text
    assert 'value="4"' in asked and "More than you may have" in asked, "a link is taken at its word"


def test_a_form_begins_with_a_class_that_is_allowed(member: Client) -> None:
    tenant = Tenant.objects.get()
    tenant.limits.all().delete()
    make_limit(tenant, "a100-80gb", 2)
    page = member.get(FORM).text
    assert "Usually 80 GB, NVLink; your limits stand against it now." in page
    assert re.search(r'value="80"[^>]*checked', page), page
    assert "More than you may have" not in page


def test_what_does_not_fit_says_why_whose_job_it_is_and_what_would(member: Client) -> None:
    page = member.post(PREVIEW, WHOLE).text
    assert "8 are free, at most 4 of them on one node; 8 are asked for." in page
    assert "NOT_ENOUGH_ON_ONE_NODE" in page and "Nobody has to act" in page
    assert "You release mine-2" in page
    assert "4 instead of 8 GPUs per Pod" in page
    assert "secret" not in page and "basalt" not in page


def test_an_alternative_is_a_link_that_fills_the_form(member: Client) -> None:
    page = member.post(PREVIEW, WHOLE).text
    link = re.search(r'href="(/t/tidewater/ask/gpu/\?[^"]+)"', page)
    assert link
    filled = member.get(link[1].replace("&amp;", "&"))
    assert filled.status_code == 200
    assert 'name="p-gpus" value="4"' in filled.text and 'value="train"' in filled.text
    assert "Fits now" in filled.text, "the filled form says at once that it fits"


def test_without_script_a_button_shows_it_before_anything_is_asked(member: Client) -> None:
    page = member.post(FORM, {**WHOLE, "check": "1"})
    assert page.status_code == 200 and "NOT_ENOUGH_ON_ONE_NODE" in page.text
    assert "<noscript>" in page.text
    wrong = member.post(FORM, {**WHOLE, "p-gpus": "99", "check": "1"})
    assert wrong.status_code == 422
    assert not Claim.objects.exists()


def test_ask_again_like_an_earlier_one(member: Client) -> None:
    access = tenant_for(User.objects.get(username="avocet"), "tidewater")
    claim = make_claim(
        access,
        TemplateVersion.objects.get(),
        values={"memory": "40", "gpus": 3, "near": True},
        name="earlier",
        at_once=2,
        days=9,
        note="for the review",
    )
    page = member.get(f"{FORM}?like={claim.public_id}").text
    assert 'name="p-gpus" value="3"' in page and 'value="earlier"' in page
    for entry in ('name="at_once" value="2"', 'name="days" value="9"', 'value="for the review"'):
        assert entry in page
    assert re.search(r'value="40"[^>]* checked', page)
    stranger = make_tenant("basalt", namespaces=("basalt-x",))
    member.force_login(make_person("sorrel", stranger))
    other = member.get(f"/t/basalt/ask/gpu/?like={claim.public_id}").text
    assert "earlier" not in other, "another tenant's ask is as if it were not there"


def test_an_alternative_keeps_what_else_was_filled_in(member: Client) -> None:
    page = member.post(PREVIEW, {**WHOLE, "at_once": "2", "days": "9"}).text
    (address, *_) = re.findall(r'href="(/t/tidewater/ask/gpu/[?][^"]*)">Use this', page)
    filled = member.get(html.unescape(address)).text
    assert 'name="at_once" value="2"' in filled and 'name="days" value="9"' in filled
    odd = member.get(f"{FORM}?at_once=many&days=-1&note={'x' * 999}")
    assert odd.status_code == 200 and "many" not in odd.text and "x" * 999 not in odd.text


@pytest.mark.parametrize(
    ("reachable", "said"),
    [
        pytest.param(True, "When the cluster was last heard", id="stale: said, with its age"),
        pytest.param(False, "Whether it fits is not known now", id="unreachable: not known"),
    ],
)
def test_old_advice_never_looks_like_new(member: Client, reachable: bool, said: str) -> None:
    Sync.objects.update(alive_at=timezone.now() - timedelta(minutes=10))
    ClusterState.objects.update(reachable=reachable)
    assert said in member.post(PREVIEW, WHOLE).text


def test_a_cluster_that_was_never_seen_is_not_known(member: Client) -> None:
    Sync.objects.all().delete()
    page = member.post(PREVIEW, WHOLE).text
    assert "Whether it fits is not known now" in page


def test_hostile_answers_in_the_address_are_text(member: Client) -> None:
    page = member.get(f"{FORM}?name=<script>alert(1)</script>&p-memory=%00x&p-gpus='%22")
    assert page.status_code == 200 and "<script>alert" not in page.text
    assert "Memory per GPU: what you had cannot be had any more." in page.text
    assert re.search(r'value="80-nvlink"[^>]* checked', page.text), "what is usual stands there"


def test_the_route_and_the_same_by_extended_resource(member: Client) -> None:
    count_offers(NOON)
    page = member.post(PREVIEW, {**WHOLE, "p-gpus": "2"}).text
    assert "a claim (DRA)" in page
    assert "deviceclass.resource.kubernetes.io/h100-80gb" in page
    near = member.post(PREVIEW, {**WHOLE, "p-gpus": "2", "p-near": "on"}).text
    assert "deviceclass.resource.kubernetes.io" not in near, "a constraint cannot be said so"


def test_the_what_if_costs_a_constant_number_of_queries_and_little_time(member: Client) -> None:
    member.post(PREVIEW, WHOLE)
    with CaptureQueriesContext(connection) as few:
        member.post(PREVIEW, {**WHOLE, "p-gpus": "1"})
    mirror([holding(f"more-{n}", h100(3, 4 + n % 4)) for n in range(3)], version="2")
    assert Observed.objects.filter(kind="ResourceClaim").count() == 7
    member.post(PREVIEW, WHOLE)
    with CaptureQueriesContext(connection) as more:
        member.post(PREVIEW, WHOLE)
    assert len(more) == len(few)
    spent = []
    for gpus in (*range(1, 9), *range(1, 9)):
        began = time.process_time()
        member.post(PREVIEW, {**WHOLE, "p-gpus": str(gpus)})
        spent.append(time.process_time() - began)
    spent.sort()
    print(f"what-if: median {statistics.median(spent):.3f} s, worst {spent[-1]:.3f} s of processor")
