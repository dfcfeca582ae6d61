"""The palette: everything one may see is found by its name, and nothing else, in few queries."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.catalogue.finding import KINDS, asked_for, find
from devices.catalogue.findingpages import PAGES
from devices.models import ClaimTemplate, ClassWords, Offer
from devices.views.find import finder_for
from tenants.access import platform_of, tenant_for
from tenants.grants import offer
from tenants.models import Membership, PlatformRole, Tenant, User
from tenants.tokens import make_token
from tests.factories import make_claim, make_person, make_tenant, make_version
from tests.portal.test_approvals import an_approval

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def world() -> dict[str, User]:
    """Two tenants with one of everything each; each name tells whose it is."""
    people: dict[str, User] = {}
    version = make_version()
    for name in ("tide", "basalt"):
        tenant = make_tenant(name, (f"{name}-place",))
        owner = make_person(f"{name}-owner", tenant, "owner")
        people |= {name: owner, f"{name}-viewer": make_person(f"{name}-viewer", tenant, "viewer")}
        access = tenant_for(owner, name)
        make_claim(access, version, name=f"{name}-claim", now=NOW, note=f"{name}-note")
        own = make_version(f"{name}-template")
        ClaimTemplate.objects.filter(pk=own.template_id).update(
            name=f"{name}-template", audience=ClaimTemplate.Audience.NAMED
        )
        own.template.tenants.set([tenant])
        an_approval(
            subject=f"{name}-thing",
            author=owner.person,
            title=f"{name}-approval",
            tenant=name,
            now=NOW,
        )
        offer(
            access=access,
            namespace="elsewhere",
            template=f"{name}-template",
            device_class="gpu",
            count=1,
            pays="giver",
            ends_at=NOW + timedelta(days=1),
            words="",
            request_id="request-0001",
            now=NOW,
        )
    for role in ("operator", "auditor", "approver", "admin"):
        people[role] = make_person(role)
        PlatformRole.objects.create(user=people[role], role=role)
    people["nobody"] = make_person("nobody")
    ClassWords.objects.create(device_class="gpu", display_name="Tide-free GPU")
    counts = dict.fromkeys(("free", "total", "allocated", "shared", "fragmented", "unknown"), 0)
    Offer.objects.create(
        device_class="gpu", counts={**counts, "unavailable": {}, "groups": []}, counted_at=NOW
    )
    return people


def titles(user: User, text: str, slug: str = "") -> set[str]:
    groups = find(finder_for(user, slug), asked_for(text))
    return {hit.title for group in groups for hit in group.hits}


@pytest.mark.parametrize(
    ("who", "finds"),
    [
        pytest.param(
            "tide",
            "tide-claim tide-template tide-place tide-owner tide-viewer tide-approval Tide"
            "|tide-template for elsewhere|Tide-free GPU",
            id="an owner: all of their tenant",
        ),
        pytest.param(
            "tide-viewer",
            "tide-claim tide-template tide-place tide-owner tide-viewer Tide"
            "|tide-template for elsewhere|Tide-free GPU",
            id="a viewer: what the pages show them, no approval",
        ),
        pytest.param("basalt", "|Tide-free GPU", id="a stranger: the class, which is everybody's"),
        pytest.param("nobody", "", id="somebody without a tenant: nothing"),
        pytest.param(
            "operator",
            "tide-claim tide-template tide-place tide-owner tide-viewer Tide|Tide-free GPU",
            id="an operator: all tenants' claims, templates, people",
        ),
    ],
)
def test_who_finds_what_of_a_tenant(world: dict[str, User], who: str, finds: str) -> None:
    first, *rest = finds.split("|")
    found = titles(world[who], "tide")
    assert found == {*first.split(), *rest}


def test_a_note_is_found_by_nobody_by_the_palette(world: dict[str, User]) -> None:
    assert titles(world["operator"], "tide-note") == set()


@pytest.mark.parametrize("who", ["tide", "tide-viewer", "operator", "auditor", "admin", "nobody"])
def test_every_address_found_opens_for_who_found_it(
    world: dict[str, User], who: str, client: Client
) -> None:
    client.force_login(world[who])
    finder = finder_for(world[who], "")
    texts = ["in:page", *(f"in:{kind} tide" for kind in KINDS), *(f"in:{kind}" for kind in KINDS)]
    found = {
        hit.address: hit.kind
        for text in texts
        for group in find(finder, asked_for(text))
        for hit in group.hits[:3]
    }
    for address, kind in found.items():
        status = client.get(address).status_code
        assert status in {200, 302}, f"{kind} {address} gives {status}"


def test_pages_lead_into_the_tenant_where_one_stands(world: dict[str, User]) -> None:
    tide = Tenant.objects.get(slug="tide")
    Membership.objects.create(tenant=tide, user=world["basalt"], role="viewer")
    groups = find(finder_for(world["basalt"], "tide"), asked_for("in:page claims"))
    assert [hit.address for hit in groups[0].hits] == ["/t/tide/claims/"]
    assert "Audit" not in titles(world["basalt"], "in:page audit", "tide")
    assert titles(world["basalt"], "in:page audit", "basalt") == {"Audit"}
    assert titles(world["basalt"], "in:page claims") == set(), "two tenants: which one is not said"


def test_the_words_of_a_search() -> None:
    assert asked_for("in:claim  Pre Train").words == ("pre", "train")
    assert asked_for("pre in:node").kind == "node"
    assert asked_for("in:ship x").strange == "ship"
    assert asked_for("a\x00b").words == ("ab",)
    assert len(asked_for("x" * 999).text) == 200


def test_an_unknown_kind_names_those_there_are(world: dict[str, User], client: Client) -> None:
    client.force_login(world["tide"])
    page = client.get("/find/?q=in:ship").text
    assert "There is no" in page and "in:claim" in page
    answer = client.get("/api/v1/find?q=in:ship")
    assert answer.status_code == 422 and set(answer.json()["facts"]["fields"]) == {"q"}


def test_words_that_are_code_are_shown_as_text(world: dict[str, User], client: Client) -> None:
    client.force_login(world["tide"])
    evil = "</style><script>alert(1)</script>"
    for headers in ({}, {"HX-Request": "true"}):
        page = client.get("/find/", {"q": evil}, headers=headers)
        assert page.status_code == 200 and "<script>alert" not in page.text


def test_the_palettes_list_is_a_listbox_and_the_page_needs_no_script(
    world: dict[str, User], client: Client
) -> None:
    client.force_login(world["tide"])
    fragment = client.get("/find/?q=tide&t=tide", headers={"HX-Request": "true"}).text
    assert 'role="listbox"' in fragment and 'role="option" id="found-claim-1"' in fragment
    assert "<html" not in fragment and "1 claims" in fragment
    page = client.get("/find/?q=tide&t=tide").text
    assert 'role="option"' not in page.partition('id="palette"')[0]
    assert 'class="hits"' in page and "in%3Aclaim" in page


def test_a_tenant_that_is_not_ones_own_is_no_place_to_look_from(
    world: dict[str, User], client: Client
) -> None:
    client.force_login(world["basalt"])
    assert client.get("/find/?q=x&t=tide").status_code == 404
    assert client.get("/api/v1/find?q=x&tenant=tide").status_code == 404
    assert client.get("/api/v1/find?q=x&tenant=none").status_code == 404


def test_a_token_finds_as_far_as_it_goes(world: dict[str, User], client: Client) -> None:
    PlatformRole.objects.create(user=world["tide"], role="operator")
    access = tenant_for(world["tide"], "tide")

    def found_by(within: object, *scopes: str) -> tuple[int, set[str]]:
        made = make_token(
            access=within,
            name="t",
            scopes=scopes,
            expires_at=NOW + timedelta(days=1),
            now=NOW,
            request_id="request-0001",
        )
        headers = {"Authorization": f"Bearer {made.text}"}
        answer = Client(headers=headers).get("/api/v1/find?q=in:claim a")
        body = answer.json()
        titles = {hit["title"] for hit in body} if answer.status_code == 200 else set()
        return answer.status_code, titles

    assert found_by(access, "read") == (200, {"tide-claim"})
    assert found_by(access, "request") == (403, set())
    assert found_by(platform_of(world["tide"]), "read") == (200, {"tide-claim", "basalt-claim"})


def test_an_admin_who_views_as_a_tenant_finds_it(world: dict[str, User]) -> None:
    admin = world["admin"]
    admin.viewing = "tide"
    assert "tide-template" in titles(admin, "in:template tide", "tide")


@pytest.mark.parametrize("text", ["", "a", "in:claim a", "in:person a"])
@pytest.mark.parametrize("who", ["tide", "operator"])
def test_finding_costs_the_same_whatever_there_is(
    world: dict[str, User], who: str, text: str
) -> None:
    version = make_version("other")

    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            find(finder_for(world[who], ""), asked_for(text))
        return len(asked)

    before = queries()
    for number in more():
        tenant = make_tenant(f"area-{number}", (f"area-{number}",))
        owner = make_person(f"anna-{number}", tenant, "owner")
        make_claim(tenant_for(owner, tenant.slug), version, name=f"a-{number}", now=NOW)
        an_approval(
            subject=f"thing-{number}", author=owner.person, title=f"approval {number}", now=NOW
        )
    for number in more():
        make_claim(tenant_for(world["tide"], "tide"), version, name=f"aa-{number}", now=NOW)
        make_person(f"alan-{number}", Tenant.objects.get(slug="tide"))
    assert queries() == before


def more() -> Iterator[int]:
    return iter(range(8))


def test_of_each_kind_a_few_are_shown_and_the_others_one_step_away(
    world: dict[str, User],
) -> None:
    version = make_version("other")
    for number in range(8):
        make_claim(tenant_for(world["tide"], "tide"), version, name=f"many-{number}", now=NOW)
    (group,) = find(finder_for(world["tide"], ""), asked_for("many"))
    assert (len(group.hits), group.more) == (5, "in:claim many")
    (group,) = find(finder_for(world["tide"], ""), asked_for(group.more))
    assert (len(group.hits), group.more) == (8, "")


def test_every_page_has_its_place_and_right() -> None:
    assert len({page.view for page in PAGES}) == len(PAGES)
    assert not [page.word for page in PAGES if page.act is not None and page.platform is not None]
