"""Pages and operations about freezes: who sees which, whose right is missing, and the banner."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.asks.holds import FROZEN, sentence
from devices.dra.lifecycle import State
from devices.models import Freeze, Offer
from devices.tenancy.freezes import freeze
from tenants.access import platform_of
from tenants.models import PlatformRole, User
from tests.devices.pages import client_of, text
from tests.factories import make_access, make_claim, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db
PAGE = "/platform/freezes/"
API = "/api/v1/platform/freezes"
SOON = timezone.now() + timedelta(days=1)
GIVEN = {"what": "class:gpu", "reason": "A recall", "until": "", "strict": ""}


@pytest.fixture(autouse=True)
def counted() -> None:
    now = timezone.now()
    Offer.objects.create(device_class="gpu", counts={}, counted_at=now, seen_at=now)


def platform_person(role: str) -> User:
    person = make_person(f"the-{role}")
    PlatformRole.objects.create(user=person, role=role)
    return person


def frozen(**asked: Any) -> Freeze:
    person = User.objects.filter(username="the-operator").first() or platform_person("operator")
    given: dict[str, Any] = {"scope": "class", "target": "gpu", "strict": False, "until": None}
    given |= {"reason": "A recall", "request_id": "request-f", "now": timezone.now()}
    return freeze(access=platform_of(person), **given | asked)


def send(client: Client, path: str, data: Any = None, **headers: str) -> Any:
    return client.post(path, json.dumps(data), content_type="application/json", headers=headers)


def test_an_operator_freezes_and_lifts_on_the_page() -> None:
    make_tenant("tide")
    client = client_of(platform_person("operator"))
    assert "Nobody has frozen anything yet" in text(client.get(PAGE))
    assert client.post(PAGE, GIVEN).status_code == 302
    made = Freeze.objects.get()
    shown = text(client.get(PAGE))
    assert "Class gpu" in shown and "A recall" in shown and "the-operator" in shown
    assert client.post(f"{PAGE}{made.public_id}/lift/").status_code == 302
    assert "takes new work again" in text(client.get(PAGE))
    assert "Nothing is frozen." in text(client.get(PAGE))
    assert client.post(f"{PAGE}unknown/lift/").status_code == 404


def test_a_held_ask_says_whose_freeze_it_waits_for() -> None:
    access = make_access("avocet")
    claim = make_claim(access, make_version())
    claim.state, claim.code, claim.why = State.HELD, FROZEN, sentence(frozen())
    claim.save()
    page = text(client_of(access.user).get(f"/t/tidewater/claims/{claim.public_id}/"))
    assert "Class gpu is frozen until it is lifted: A recall." in page


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"reason": " "}, "This field is required", id="no reason"),
        pytest.param({"until": "2020-01-01T00:00"}, "Choose a time to come", id="an end before"),
        pytest.param({"what": "class:nope"}, "Select a valid choice", id="an unknown class"),
    ],
)
def test_what_is_wrong_stands_at_its_field(given: dict[str, str], says: str) -> None:
    answer = client_of(platform_person("operator")).post(PAGE, GIVEN | given)
    assert answer.status_code == 422
    assert says in text(answer)
    assert not Freeze.objects.exists()


def test_a_second_freeze_of_the_same_is_said_at_its_field() -> None:
    frozen()
    answer = client_of(User.objects.get(username="the-operator")).post(PAGE, GIVEN)
    assert answer.status_code == 422
    assert "Class gpu is frozen already" in text(answer)


def test_auditors_see_why_they_may_not_and_strangers_nothing() -> None:
    made = frozen()
    auditor, member = platform_person("auditor"), make_person("tim", make_tenant("tide"))
    shown = text(client_of(auditor).get(PAGE))
    assert 'aria-disabled="true"' in shown and "one must be admin or operator" in shown
    assert client_of(auditor).post(PAGE, GIVEN).status_code == 403
    assert client_of(member).get(PAGE).status_code == 404
    assert client_of(member).post(f"{PAGE}{made.public_id}/lift/").status_code == 404
    assert Freeze.objects.get().ended_at is None


def test_the_banner_says_what_still_works_to_whom_it_concerns() -> None:
    tide, reef = make_tenant("tide"), make_tenant("reef", namespaces=("reef-train",))
    tim, coral = make_person("tim", tide), make_person("coral", reef)
    frozen(
        scope="tenant", target="tide", reason="Moving house", until=timezone.now() + timedelta(1)
    )
    shown = text(client_of(tim).get("/t/tide/"))
    assert "New work of Tide is frozen until" in shown and "Moving house" in shown
    assert "so do its replacements" in shown
    assert "Moving house" in text(client_of(tim).get("/t/tide/freezes/"))
    assert "Moving house" not in text(client_of(coral).get("/t/reef/"))
    assert "Moving house" not in text(client_of(coral).get("/t/reef/freezes/"))
    assert client_of(coral).get("/t/tide/freezes/").status_code == 404
    frozen(scope="all", target="", strict=True, reason="Power")
    assert "a Pod that ends is not started again" in text(client_of(coral).get("/t/reef/"))


def test_somebody_in_two_tenants_reads_each_ones_freeze_on_its_own_pages() -> None:
    tide, reef = make_tenant("tide"), make_tenant("reef", namespaces=("reef-train",))
    tim = make_person("tim", tide)
    reef.memberships.create(user=tim, role="member")
    frozen(scope="tenant", target="tide", reason="Moving house")
    client = client_of(tim)
    assert "Moving house" in text(client.get("/t/tide/"))
    assert "Moving house" not in text(client.get("/t/reef/"))


def test_the_page_costs_the_same_with_many_freezes() -> None:
    client = client_of(platform_person("operator"))
    frozen()
    client.get(PAGE)
    with CaptureQueriesContext(
        connection,
    ) as few:
        client.get(PAGE)
    for number in range(30):
        make_tenant(f"tenant-{number}", namespaces=(f"tenant-{number}",))
        frozen(scope="tenant", target=f"tenant-{number}")
    with CaptureQueriesContext(connection) as many:
        assert "tenant-7" in text(client.get(PAGE))
    assert len(many) == len(few)


def test_the_api_freezes_lists_and_lifts_with_the_same_codes() -> None:
    make_tenant("tide")
    client = client_of(platform_person("operator"))
    asked = {"scope": "class", "target": "gpu", "reason": "A recall"}
    key = {"Idempotency-Key": "freeze-once"}
    made = send(client, API, asked, **key)
    assert made.status_code == 201
    assert send(client, API, asked, **key).json() == made.json()
    refused = send(client, API, asked)
    assert (refused.status_code, refused.json()["code"]) == (409, "ALREADY_FROZEN")
    name = made.json()["id"]
    assert client.get(f"{API}/{name}").json()["end"] == ""
    assert [one["id"] for one in client.get(f"{API}?standing=true").json()["results"]] == [name]
    assert send(client, f"{API}/{name}/lift").json()["end"] == "lifted"
    assert client.get(f"{API}?standing=true").json()["results"] == []
    assert len(client.get(API).json()["results"]) == 1
    assert client.get(f"{API}/unknown").status_code == 404
    assert send(client, f"{API}/unknown/lift").status_code == 404


def test_the_api_names_what_is_wrong_and_who_may() -> None:
    operator, auditor = platform_person("operator"), platform_person("auditor")
    wrong = send(client_of(operator), API, {"scope": "tenant", "target": "no", "reason": "r"})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "INVALID")
    may_not = send(client_of(auditor), API, {"scope": "all", "reason": "r"})
    assert (may_not.status_code, may_not.json()["code"]) == (403, "NOT_PERMITTED")
    member = make_person("tim", make_tenant("tide"))
    assert client_of(member).get(API).status_code == 404
    frozen()
    concerns = client_of(member).get("/api/v1/tenants/tide/freezes")
    assert [one["target"] for one in concerns.json()] == ["gpu"]
    assert client_of(member).get("/api/v1/tenants/reef/freezes").status_code == 404
