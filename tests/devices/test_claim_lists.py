"""Lists of claims: the same words in page, saved view, file and API; pages by key; few queries."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.asks.claimlist import ORDERS, found, search_from
from devices.models import Claim, SavedView, TemplateVersion
from portal.errors import Invalid
from portal.keyset import Order, counted, cut
from tenants.access import Access, tenant_for
from tenants.models import PlatformRole
from tests.devices.pages import client_of, text
from tests.factories import make_access, make_claim, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db
NOW = timezone.now().replace(microsecond=0)
DAY = timedelta(days=1)
NIC = {"requests": [{"name": "nic", "device_class": "nic", "words": "NIC"}]}


@pytest.fixture
def access() -> Access:
    return make_access(namespaces=("tidewater-train", "tidewater-eval"))


@pytest.fixture
def story(access: Access) -> dict[str, Claim]:
    """Six asks, each different in what a filter looks at."""
    gpu, nic = make_version(), make_version("nic", NIC)
    tim = make_person("tim", access.tenant)
    made = {}

    def ask(name: str, version: TemplateVersion = gpu, ago: int = 0, **asked: Any) -> None:
        who = asked.pop("who", access)
        asked.setdefault("namespace", "tidewater-train")
        made[name] = make_claim(who, version, name=name, now=NOW - ago * DAY, **asked)

    ask("pretrain", ago=40, note="For Ölaf's review")
    ask("pretrain-2", ago=10, days=12)
    ask("serve", nic, ago=3, namespace="tidewater-eval")
    ask("by-tim", who=tenant_for(tim, "tidewater"), days=30)
    ask("stuck", ago=1)
    ask("gone", nic, ago=90)
    Claim.objects.filter(name="stuck").update(state="pending", code="NO_MATCHING_DEVICE_FREE")
    Claim.objects.filter(name="gone").update(state="released", released_at=NOW)
    return made


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        pytest.param({}, "by-tim gone pretrain pretrain-2 serve stuck", id="nothing: everything"),
        pytest.param({"state": "open"}, "by-tim pretrain pretrain-2 serve stuck", id="open"),
        pytest.param({"state": "released"}, "gone", id="one state"),
        pytest.param({"q": "PRETRAIN"}, "pretrain pretrain-2", id="part of a name, any case"),
        pytest.param({"q": "ölaf"}, "pretrain", id="part of a note"),
        pytest.param({"q": "100%"}, "", id="a wildcard is a letter"),
        pytest.param({"class": "nic"}, "gone serve", id="a class"),
        pytest.param({"class": "ni"}, "", id="not a part of a class"),
        pytest.param({"namespace": "tidewater-eval"}, "serve", id="a namespace"),
        pytest.param({"template": "nic", "state": "open"}, "serve", id="a template, and a state"),
        pytest.param({"by": "tim"}, "by-tim", id="somebody by user name"),
        pytest.param({"by": "me", "class": "gpu"}, "pretrain pretrain-2 stuck", id="mine"),
        pytest.param({"by": "nobody-of-that-name"}, "", id="nobody"),
        pytest.param({"age": "under-2d"}, "by-tim stuck", id="young"),
        pytest.param({"age": "over-30d"}, "gone pretrain", id="old"),
        pytest.param({"ends": "7d"}, "pretrain-2", id="ends soon"),
        pytest.param({"ends": "7d", "state": "pending"}, "", id="ends soon, and another state"),
        pytest.param({"ends": "never", "state": "open"}, "pretrain serve stuck", id="never ends"),
        pytest.param({"attention": "yes"}, "pretrain-2 stuck", id="needs attention"),
        pytest.param({"attention": "no", "by": "tim"}, "by-tim", id="attention left aside"),
    ],
)
def test_what_each_filter_finds(
    access: Access, story: dict[str, Claim], asked: dict[str, str], names: str
) -> None:
    rows = found(
        search_from(asked), Claim.objects.of(access.tenant), me=access.user.person, now=NOW
    )
    assert sorted(rows.values_list("name", flat=True)) == names.split()


def test_an_id_is_found_whole(access: Access, story: dict[str, Claim]) -> None:
    asked = {"q": story["serve"].public_id}
    rows = found(search_from(asked), Claim.objects.all(), me=access.user.person, now=NOW)
    assert [row.name for row in rows] == ["serve"]


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        pytest.param({"state": "broken"}, {"state"}, id="no such state"),
        pytest.param({"age": "7d"}, {"age"}, id="an age without a direction"),
        pytest.param({"ends": "soon", "age": "7d"}, {"ends", "age"}, id="two at once"),
        pytest.param({"class": "a\x00b"}, {"class"}, id="a NUL character"),
        pytest.param({"class": "x" * 300}, {"class"}, id="longer than any name"),
        pytest.param({"attention": "maybe"}, {"attention"}, id="neither yes nor no"),
        pytest.param({"view": "no-such"}, {"view"}, id="no such view"),
        pytest.param({"cursor": "bm90"}, {"cursor"}, id="a cursor of nowhere"),
    ],
)
def test_what_makes_no_sense_is_said_by_parameter_in_page_and_api(
    access: Access, client: Client, asked: dict[str, str], fields: set[str]
) -> None:
    client.force_login(access.user)
    if not {"view", "cursor"} & set(asked):
        with pytest.raises(Invalid) as refused:
            search_from(asked)
        assert set(refused.value.fields) == fields
    page = client.get("/t/tidewater/claims/", asked)
    assert page.status_code == 422 and "cannot be searched like that" in page.text
    answer = client.get("/api/v1/tenants/tidewater/claims", asked)
    assert answer.status_code == 422
    assert set(answer.json()["facts"]["fields"]) == fields
    file = client.get("/t/tidewater/claims/file/", asked)
    assert file.status_code == 422 or "cursor" in asked


def walk(rows: Any, order: Order, size: int) -> Iterator[tuple[Claim, ...]]:
    cursor = ""
    while True:
        page = cut(rows, order, size, cursor)
        yield page.rows
        if not (cursor := page.after):
            return


@pytest.mark.parametrize("sort", ORDERS)
@pytest.mark.parametrize("size", [1, 3])
def test_pages_by_key_show_each_row_once_and_lead_back_the_same_way(
    access: Access, story: dict[str, Claim], sort: str, size: int
) -> None:
    Claim.objects.filter(name__in=["serve", "by-tim"]).update(since=NOW)  # equal on purpose
    order, rows = ORDERS[sort], Claim.objects.all()
    pages = list(walk(rows, order, size))
    names = [row.pk for page in pages for row in page]
    assert sorted(names) == sorted(rows.values_list("pk", flat=True))
    values = [getattr(row, order.field) for page in pages for row in page]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=order.descending)
    assert values[len(known) :] == [None] * (len(values) - len(known)), "unknown comes last"
    page, seen = cut(rows, order, size), []
    while page.after:
        page = cut(rows, order, size, page.after)
    while True:
        seen = [row.pk for row in page.rows] + seen
        if not page.before:
            break
        page = cut(rows, order, size, page.before)
    assert seen == names


def test_rows_that_come_and_go_move_no_page(access: Access, story: dict[str, Claim]) -> None:
    rows, order = Claim.objects.all(), ORDERS["newest"]
    first = cut(rows, order, 2)
    make_claim(access, story["serve"].version, name="newcomer")
    second = cut(rows, order, 2, first.after)
    assert not {row.pk for row in first.rows} & {row.pk for row in second.rows}
    assert [row.name for row in second.rows] == ["by-tim", "serve"]


def test_counting_stops_where_nobody_reads_on(access: Access, story: dict[str, Claim]) -> None:
    rows = Claim.objects.all()
    assert [counted(rows, most) for most in (2, 6, 10)] == [3, 6, 6]


def names_in(page: str) -> list[str]:
    return re.findall(r'aria-label="Choose ([^"]+)"', page)


def test_the_page_shows_what_the_address_asks_and_offers_to_take_each_filter_off(
    access: Access, story: dict[str, Claim], client: Client
) -> None:
    client.force_login(access.user)
    page = client.get("/t/tidewater/claims/", {"class": "nic", "state": "all", "sort": "name"})
    assert names_in(page.text) == ["gone", "serve"]
    assert 'href="/t/tidewater/claims/?state=all&amp;sort=name"' in page.text
    assert "Remove filter Class: nic" in page.text
    assert 'aria-sort="ascending"' in page.text
    assert "2 claims" in text(page)
    assert names_in(client.get("/t/tidewater/claims/").text) == [
        "stuck",
        "by-tim",
        "serve",
        "pretrain-2",
        "pretrain",
    ]


def test_a_search_without_reload_moves_the_address_and_news_do_not(
    access: Access, story: dict[str, Claim], client: Client
) -> None:
    client.force_login(access.user)
    fetched = {"HX-Request": "true"}
    asked = {"q": "serve", "state": "open", "class": "", "sort": "newest"}
    searched = client.get(
        "/t/tidewater/claims/", asked, headers={**fetched, "HX-Trigger": "claims-filters"}
    )
    assert searched["HX-Push-Url"] == "/t/tidewater/claims/?q=serve&state=open&sort=newest"
    assert "<html" not in searched.text and names_in(searched.text) == ["serve"]
    assert 'id="claims-asked" hidden hx-swap-oob="true"' in searched.text
    news = client.get(
        "/t/tidewater/claims/", asked, headers={**fetched, "HX-Trigger": "claims-list"}
    )
    assert "HX-Push-Url" not in news


def test_hostile_words_are_text(access: Access, client: Client) -> None:
    client.force_login(access.user)
    make_claim(access, note="=HYPERLINK(1)", now=NOW)
    evil = '"><script>alert(1)</script>'
    page = client.get("/t/tidewater/claims/", {"q": evil, "class": evil})
    assert page.status_code == 200 and "<script>alert" not in page.text
    rows = list(csv.reader(io.StringIO(file_of(client, "/t/tidewater/claims/file/"))))
    assert rows[1][rows[0].index("note")] == "'=HYPERLINK(1)"


def file_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200 and answer["Content-Type"].startswith("text/csv")
    return b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]


def test_the_file_is_the_whole_list_in_its_order(
    access: Access, story: dict[str, Claim], client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(access.user)
    monkeypatch.setattr("devices.asks.claimlist.CHUNK", 2)
    text = file_of(client, "/t/tidewater/claims/file/?state=all&sort=-name&class=gpu")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["name"] for row in rows] == ["stuck", "pretrain-2", "pretrain", "by-tim"]
    assert rows[3]["asked_by"] == "tim" and rows[3]["classes"] == "gpu"
    assert datetime.fromisoformat(rows[1]["expires_at"]) == NOW + 2 * DAY
    stranger = client_of(make_person("basil", make_tenant("basalt", ("basalt-a",))))
    assert stranger.get("/t/tidewater/claims/file/").status_code == 404


def save(client: Client, name: str, **form: str) -> Any:
    return client.post("/t/tidewater/claims/views/", {"name": name, **form})


def test_a_view_is_kept_under_a_name_shared_and_opened_first(
    access: Access, story: dict[str, Claim], client: Client
) -> None:
    client.force_login(access.user)
    tim = client_of(access.tenant.memberships.get(user__username="tim").user)
    save(client, "Nightly GPUs", **{"class": "gpu", "state": "open", "sort": "name"})
    view = SavedView.objects.get()
    assert (view.slug, view.query) == (
        "nightly-gpus",
        {"class": "gpu", "state": "open", "sort": "name"},
    )
    opened = client.get("/t/tidewater/claims/?view=nightly-gpus").text
    assert names_in(opened) == ["by-tim", "pretrain", "pretrain-2", "stuck"]
    narrowed = client.get("/t/tidewater/claims/?view=nightly-gpus&state=pending").text
    assert names_in(narrowed) == ["stuck"], "what the address says goes before the view"
    assert tim.get("/t/tidewater/claims/?view=nightly-gpus").status_code == 422, "it is mine"

    save(client, "Nightly GPUs", state="pending", shared="on", opens_first="on")
    assert names_in(tim.get("/t/tidewater/claims/").text) == ["stuck"], "shared, opens first"
    save(tim, "Mine first", by="me", opens_first="on")
    assert names_in(tim.get("/t/tidewater/claims/").text) == ["by-tim"], "one's own goes first"
    assert len(names_in(tim.get("/t/tidewater/claims/?state=open").text)) == 5

    api = client.get("/api/v1/tenants/tidewater/claims", {"view": "nightly-gpus"}).json()
    assert {row["name"] for row in api["results"]} == {"by-tim", "pretrain", "pretrain-2", "stuck"}
    client.post("/t/tidewater/claims/views/nightly-gpus/remove/")
    api = client.get("/api/v1/tenants/tidewater/claims", {"view": "nightly-gpus"}).json()
    assert [row["name"] for row in api["results"]] == ["stuck"], "now the shared one is meant"
    tim.post("/t/tidewater/claims/views/nightly-gpus/remove/", {"shared": "yes"})
    assert list(SavedView.objects.values_list("slug", flat=True)) == ["mine-first"]


@pytest.mark.parametrize(
    ("name", "form", "said"),
    [
        pytest.param("  ", {}, "1 to 60 characters", id="no name"),
        pytest.param("…", {}, "some of them letters", id="a name of which nothing is left"),
        pytest.param("x" * 61, {}, "1 to 60 characters", id="too long"),
        pytest.param("odd", {"state": "broken"}, "One of open", id="a list that cannot be"),
    ],
)
def test_a_view_that_cannot_be_saved_says_why(
    access: Access, client: Client, name: str, form: dict[str, str], said: str
) -> None:
    client.force_login(access.user)
    answer = client.post("/t/tidewater/claims/views/", {"name": name, **form}, follow=True)
    assert said in answer.text and not SavedView.objects.exists()


def test_a_viewer_keeps_views_and_shares_none(access: Access, client: Client) -> None:
    client.force_login(make_person("iris", access.tenant, "viewer"))
    assert save(client, "Mine").status_code == 302
    assert save(client, "Ours", shared="on").status_code == 403
    assert "one must be member or owner" in client.get("/t/tidewater/claims/").text
    assert SavedView.objects.get().slug == "mine"


def test_the_platforms_list_has_all_tenants_and_nobody_elses_business(
    access: Access, story: dict[str, Claim], client: Client
) -> None:
    other = make_access("basil", slug="basalt", namespaces=("basalt-a",))
    theirs = make_claim(other, story["serve"].version, name="theirs", now=NOW, note="secret plan")
    operator = make_person("olm")
    PlatformRole.objects.create(user=operator, role="operator")
    client.force_login(operator)
    page = client.get("/platform/claims/").text
    assert "theirs" in page and "pretrain" in page and "secret plan" not in page
    assert "Choose " not in page, "the platform releases nothing here"
    narrowed = client.get("/platform/claims/?tenant=basalt").text
    assert "theirs" in narrowed and "pretrain" not in narrowed
    one = client.get(f"/platform/claims/{theirs.public_id}/").text
    assert "Basalt" in one and "secret plan" not in one
    rows = list(csv.DictReader(io.StringIO(file_of(client, "/platform/claims/file/"))))
    assert {row["tenant"] for row in rows} == {"tidewater", "basalt"}
    assert {row["note"] for row in rows} == {""}
    for path in ("", "file/", f"{theirs.public_id}/"):
        assert client_of(access.user).get(f"/platform/claims/{path}").status_code == 404


LISTS = [
    "/t/tidewater/claims/",
    "/t/tidewater/claims/?class=gpu&by=me&q=e&state=all&sort=ends",
    "/api/v1/tenants/tidewater/claims",
    "/platform/claims/",
    "/api/v1/platform/claims",
]


@pytest.mark.parametrize("path", LISTS)
def test_longer_lists_ask_no_more(access: Access, path: str) -> None:
    PlatformRole.objects.create(user=access.user, role="operator")
    client, version = client_of(access.user), make_version()
    asked = []
    for numbers in (range(2), range(2, 14)):
        for number in numbers:
            make_claim(access, version, name=f"one-{number}", now=NOW)
            SavedView.objects.create(
                tenant=access.tenant,
                owner=access.user.person,
                slug=f"v-{number}",
                name="v",
                query={},
                made_at=NOW,
            )
        client.get(path)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200
        asked.append(len(queries))
    assert asked[0] == asked[1], [query["sql"][:90] for query in queries]


def test_all_that_is_wrong_in_an_address_of_the_api_is_told_at_once(
    access: Access, client: Client
) -> None:
    """What the document refuses and what only the list's own reader refuses."""
    client.force_login(access.user)
    answer = client.get("/api/v1/tenants/tidewater/claims?state=asleep&age=old&limit=many&q=fine")
    said = answer.json()["facts"]["fields"]
    assert answer.status_code == 422
    assert set(said) == {"state", "age", "limit"}
    assert said["age"] == "Such as under-12h or over-7d."
    assert said["state"].startswith("One of open, all, "), "in the words of the page"


def test_the_api_pages_and_sorts_as_the_page_does(
    access: Access, story: dict[str, Claim], client: Client
) -> None:
    client.force_login(access.user)
    address, names = "/api/v1/tenants/tidewater/claims?limit=2&sort=name&state=open", []
    while address:
        body = json.loads(client.get(address).content)
        names += [row["name"] for row in body["results"]]
        address = body["next"]
    assert names == ["by-tim", "pretrain", "pretrain-2", "serve", "stuck"]
    assert body["previous"]
