"""Who sees a template, and what holders are told when it goes on without them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.authoring.audience import show_to
from devices.authoring.shown import allowed, reach, shown, shown_to
from devices.authoring.succession import Lineage, changed, gone
from devices.dra.templates import read_template
from tenants.grants import accept, offer
from tenants.models import Tenant
from tenants.sums import limits_of
from tests.devices.pages import client_of, text
from tests.devices.templatelife import REQUEST, approved, author, retire
from tests.factories import (
    GPU_CONTENT,
    NOON,
    make_access,
    make_claim,
    make_person,
    make_tenant,
    make_version,
)

pytestmark = pytest.mark.django_db
CHOICE = {
    "requests": [
        {"name": "gpu", "device_class": "h100", "words": "GPU"},
        {"name": "nic", "device_class": "nic", "words": "Port"},
    ],
    "parameters": [
        {
            "kind": "choice",
            "name": "memory",
            "label": "Memory",
            "default": "80",
            "options": [
                {"value": "80", "label": "80 GB"},
                {"value": "40", "label": "40 GB", "device_class": {"gpu": "a100"}},
            ],
        }
    ],
}


def show(audience: str, *tenants: str) -> None:
    show_to(
        access=author(),
        slug="gpu",
        audience=audience,
        tenants=tenants,
        request_id=REQUEST,
        now=NOON,
    )


def seen_by(tenant: Tenant) -> list[str]:
    return [one.template.slug for one in shown_to(tenant, timezone.now())]


@pytest.mark.parametrize(
    ("limits", "sees"),
    [
        pytest.param({"*": None}, True, id="any class"),
        pytest.param({"h100": 8, "nic": 2}, True, id="a class for each device"),
        pytest.param({"a100": None, "nic": 2}, True, id="the class of another answer"),
        pytest.param({"h100": 8}, False, id="nothing for one of the devices"),
        pytest.param({"h100": 0, "a100": 0, "nic": 2}, False, id="limits of zero"),
        pytest.param({}, False, id="no limit"),
    ],
)
def test_limits_allow_a_template_by_every_device_that_it_asks_for(
    limits: dict[str, int | None], sees: bool
) -> None:
    tenant = make_tenant("tide", limits=limits)
    assert allowed(read_template(CHOICE), limits_of(tenant)) is sees


def test_what_answers_can_lead_to() -> None:
    assert reach(read_template(CHOICE)) == {
        "gpu": frozenset({"h100", "a100"}),
        "nic": frozenset({"nic"}),
    }


def test_every_tenant_those_with_limits_or_named_ones() -> None:
    may, may_not = make_tenant("may", (), {"gpu": 8}), make_tenant("may-not", (), {"nic": 1})
    approved()
    assert seen_by(may) == seen_by(may_not) == ["gpu"]
    show("limits")
    assert (seen_by(may), seen_by(may_not)) == (["gpu"], [])
    show("named", "may-not")
    assert (seen_by(may), seen_by(may_not)) == ([], ["gpu"])
    assert shown(may, "gpu", timezone.now()) is None


def test_who_was_lent_something_of_it_sees_it() -> None:
    taker = make_access("basil", "owner", slug="taker", namespaces=("taker-a",), limits={})
    owner = make_access("olga", "owner", slug="lender", namespaces=(), limits={"gpu": 8})
    now = timezone.now()
    approved()
    show("named", "lender")
    assert seen_by(taker.tenant) == []
    grant = offer(
        access=owner,
        namespace="taker-a",
        template="gpu",
        device_class="gpu",
        count=1,
        pays="giver",
        ends_at=now + timedelta(days=1),
        words="for the review",
        request_id=REQUEST,
        now=now,
    )
    accept(access=taker, public_id=grant.public_id, request_id=REQUEST, now=now)
    assert seen_by(taker.tenant) == ["gpu"]


def test_what_is_not_for_a_tenant_does_not_exist_for_it() -> None:
    access = make_access()
    approved()
    show("named", access.tenant.slug)
    make_person("basil", other := make_tenant("other", ("other-a",)), "owner")
    mine, theirs = client_of(access.user), client_of(other.memberships.get().user)
    assert "/ask/gpu/" in text(mine.get("/t/tidewater/"))
    assert mine.get("/t/tidewater/ask/gpu/").status_code == 200
    assert "/ask/gpu/" not in text(theirs.get("/t/other/"))
    assert theirs.get("/t/other/ask/gpu/").status_code == 404
    assert theirs.get("/api/v1/tenants/other/templates").json() == []
    body = {"template": "gpu", "namespace": "other-a", "name": "a"}
    refused = theirs.post("/api/v1/tenants/other/claims", body, content_type="application/json")
    unknown = theirs.post(
        "/api/v1/tenants/other/claims", body | {"template": "nope"}, content_type="application/json"
    )
    assert refused.json()["facts"] == unknown.json()["facts"]


def test_the_list_costs_the_same_however_many_templates_there_are() -> None:
    access = make_access()
    counts = []
    for number in range(2):
        for more in range(3 * number + 1):
            approved(f"t-{number}-{more}")
        show_to(
            access=author(), slug="t-0-0", audience="limits", tenants=[], request_id="r", now=NOON
        )
        with CaptureQueriesContext(
            connection,
        ) as queries:
            shown_to(access.tenant, NOON)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= 6


# --- holders --------------------------------------------------------------------------------------


def more(most: int) -> dict[str, Any]:
    (count,) = GPU_CONTENT["parameters"]
    return {**GPU_CONTENT, "parameters": [{**count, "maximum": most}]}


def test_a_holder_of_an_older_version_reads_what_is_new() -> None:
    access = make_access()
    claim = make_claim(access, approved())
    assert Lineage(access.tenant, NOON).of(claim.version) is None
    newer = approved(content=more(4), note="Four at most.")
    told = Lineage(access.tenant, NOON).of(claim.version)
    assert told is not None
    assert told.sentence == (
        "Made from version 1; version 2 is offered now. It keeps running as it was made."
    )
    assert (told.version, told.retired, told.words) == (newer, False, "Four at most.")


def test_a_holder_of_a_retired_template_is_led_to_what_replaces_it_at_last() -> None:
    access = make_access()
    claim = make_claim(access, approved())
    approved("middle", name="Middle")
    last = approved("last", name="Last")
    retire("gpu", "middle", "The cards are old.")
    retire("middle", "last", "So are these.")
    told = Lineage(access.tenant, NOON).of(claim.version)
    assert told is not None
    assert told.sentence == ("This claim keeps running as it was made; for new ones ask for Last.")
    assert (told.version, told.words) == (last, "The cards are old.")


def test_a_successor_that_a_holder_may_not_see_is_not_named() -> None:
    access = make_access()
    claim = make_claim(access, approved())
    approved("secret", name="Secret")
    retire("gpu", "secret")
    make_tenant("other", ())
    show_to(
        access=author(),
        slug="secret",
        audience="named",
        tenants=["other"],
        request_id="r",
        now=NOON,
    )
    told = Lineage(access.tenant, NOON).of(claim.version)
    assert told is not None and told.version is None
    assert "Secret" not in told.sentence
    assert "ask the platform team" in told.sentence


def test_nothing_may_take_its_place() -> None:
    access = make_access()
    claim = make_claim(access, approved())
    retire()
    told = Lineage(access.tenant, NOON).of(claim.version)
    assert told is not None and told.sentence.endswith("nothing takes its place.")
    found = gone("gpu", access.tenant, NOON)
    assert found is not None and found[1].words == "The cards are old."
    assert gone("unheard-of", access.tenant, NOON) is None


def test_what_changed_for_these_answers() -> None:
    first = approved()
    content = more(8)
    content["requests"] = [{"name": "gpu", "device_class": "h100", "words": "GPU"}]
    second = approved(content=content, note="H100 now.")
    assert changed(first, second, {"count": 2}) == [
        "H100 now.",
        "No more: 2 × GPU of class gpu.",
        "Now: 2 × GPU of class h100.",
    ]


def test_the_claims_page_and_list_say_so_and_lead_there() -> None:
    access = make_access()
    claim = make_claim(access, approved())
    client = client_of(access.user)
    page, rows = f"/t/tidewater/claims/{claim.public_id}/", "/t/tidewater/claims/"
    assert "newer version" not in text(client.get(page))
    approved(content=more(4), note="Four at most.")
    shown_page = text(client.get(page))
    assert "There is a newer version." in shown_page and "Four at most." in shown_page
    assert "version 2 is offered now" in text(client.get(rows))
    approved("next", name="Next GPU")
    retire("gpu", "next")
    shown_page = text(client.get(page))
    assert "Its template is retired." in shown_page and "The cards are old." in shown_page
    assert "/ask/next/" in shown_page and "/ask/gpu/" not in shown_page
    assert "retired, now Next GPU" in text(client.get(rows))
    told = client.get(f"/api/v1/tenants/tidewater/claims/{claim.public_id}").json()["succession"]
    assert (told["retired"], told["template"], told["words"]) == (
        True, "next", "The cards are old.",
    )  # fmt: skip
    assert "/ask/gpu/" not in text(client.get("/t/tidewater/"))
    refused = client.post(
        "/api/v1/tenants/tidewater/claims",
        {"template": "gpu", "namespace": "tidewater-train", "name": "a"},
        content_type="application/json",
    )
    assert refused.json()["facts"]["fields"]["template"] == (
        "This template is retired: The cards are old. Ask for next."
    )


def test_a_list_of_claims_reads_the_lineage_once() -> None:
    access = make_access()
    version = approved()
    make_claim(access, version, name="a")
    client, rows = client_of(access.user), "/t/tidewater/claims/"
    client.get(rows)
    with CaptureQueriesContext(connection) as one:
        client.get(rows)
    for number in range(5):
        make_claim(access, version, name=f"b-{number}")
    with CaptureQueriesContext(connection) as many:
        client.get(rows)
    assert len(one) == len(many)


def test_home_begins_with_what_the_limits_allow_and_says_which_are_not(client: Client) -> None:
    """A newcomer's first click must not lead to a form that can only be refused."""
    access = make_access(limits={"nic": 2})
    make_version("a-first-by-name", content=GPU_CONTENT)
    make_version(
        "port", content={"requests": [{"name": "nic", "device_class": "nic", "words": "Port"}]}
    )
    client.force_login(access.user)
    page = client.get("/t/tidewater/").content.decode()
    starts = page[page.index("Ways to start") :]
    assert starts.index("/ask/port/") < starts.index("/ask/a-first-by-name/")
    assert starts.index("Not in your limits") > starts.index("/ask/a-first-by-name/")
    assert starts.count("Not in your limits") == 1
