"""The form of an ask as its person meets it: it redraws, asks once, and keeps entries."""

from __future__ import annotations

import ast
import html
import re
from typing import Any

import pytest
from django.test import Client

from devices.models import Claim, TemplateVersion
from portal.management.demo_templates import TEMPLATES
from tenants.models import Membership, Tenant
from tests.devices.demofleet import fleet_objects, mirror
from tests.devices.dra.templates.contents import EVERYTHING
from tests.factories import make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db
FORM = "/t/tidewater/ask/gpu/"
PREVIEW = f"{FORM}preview/"
NAMED = {"name": "train", "namespace": "tidewater-train"}


@pytest.fixture
def member(client: Client) -> Client:
    make_version(content=EVERYTHING)
    client.force_login(make_person("avocet", make_tenant()))
    return client


def questions(page: str) -> list[str]:
    return re.findall(r'name="asked" value="([^"]*)"', page)[0].split()


def hidden(page: str) -> dict[str, str]:
    """What a browser sends along without anybody typing it."""
    found = re.findall(
        r'<input type="hidden" name="(form|version|asked|drawn)" value="([^"]*)"', page
    )
    return dict(found)


def test_a_page_asks_what_its_usual_answers_ask(member: Client) -> None:
    page = member.get(FORM).text
    assert questions(page) == ["network", "clients", "memory", "patient"]
    assert "p-speed" not in page
    for title in ("Plain words", "YAML", "Pod", "Job", "Deployment", "curl", "Python"):
        assert re.search(rf'role="tab"[^>]*>{title}<', page), title
    assert "Tried in this order" in page and "<li>1 × H100</li><li>2 × A100</li>" in page


def test_questions_are_drawn_anew_where_answers_change_them(member: Client) -> None:
    before = hidden(member.get(FORM).text)
    same = member.post(PREVIEW, {**NAMED, **before, "p-network": "none", "p-clients": "1"}).text
    assert 'id="questions"' not in same, "what is being typed in is left alone"
    other = member.post(PREVIEW, {**NAMED, **before, "p-network": "tcp", "p-clients": "2"}).text
    assert '<div id="questions" class="form-grid" hx-swap-oob="true">' in other
    assert questions(other) == ["network", "speed", "clients", "memory", "patient"]
    assert re.search(r'value="100"[^>]* checked', other), "the new question has its default"
    assert re.search(r'value="400"[^>]* disabled', other)
    assert "only where Network is RDMA" in other, "what cannot be chosen says why"
    assert 'id="made-yaml" hx-swap-oob="true"' in other


def test_a_question_that_nobody_has_seen_is_shown_before_anything_is_asked_for(
    member: Client,
) -> None:
    """Without script the page does not redraw by itself."""
    before = hidden(member.get(FORM).text)
    sent = {**NAMED, **before, "p-network": "rdma", "p-clients": "2"}
    page = member.post(FORM, sent)
    assert page.status_code == 422 and not Claim.objects.exists()
    assert "Your answers brought this question up" in page.text
    again = {**sent, **hidden(page.text), "p-speed": "100"}
    assert member.post(FORM, again).status_code == 302
    assert Claim.objects.get().values == {
        "network": "rdma",
        "speed": "100",
        "clients": 2,
        "patient": False,
    }


def test_a_switch_that_was_not_on_the_page_is_not_off(member: Client) -> None:
    content = {
        **EVERYTHING,
        "parameters": [
            *EVERYTHING["parameters"],
            {
                "kind": "switch",
                "name": "fast",
                "label": "Fast",
                "default": True,
                "when": {"network": ["tcp"]},
            },
        ],
    }
    make_version("other", content)
    form = "/t/tidewater/ask/other/"
    before = hidden(member.get(form).text)
    page = member.post(f"{form}preview/", {**NAMED, **before, "p-network": "tcp"}).text
    assert re.search(r'name="p-fast"[^>]* checked', page)
    after = {**before, **hidden(page), "p-network": "tcp", "p-speed": "100", "p-clients": "2"}
    member.post(form, {**NAMED, **after})
    assert Claim.objects.get().values["fast"] is False, "shown, and switched off"


def test_what_is_no_longer_shown_is_dropped(member: Client) -> None:
    sent = {**NAMED, "p-network": "none", "p-speed": "100", "p-clients": "2", "p-memory": ""}
    assert member.post(FORM, sent).status_code == 302
    assert Claim.objects.get().values == {"network": "none", "clients": 2, "patient": False}


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        pytest.param({"p-clients": "9"}, "Give a whole number from 1 to 8.", id="a count"),
        pytest.param({"p-clients": ""}, "Give a whole number from 1 to 8.", id="an empty count"),
        pytest.param(
            {"p-memory": "0.7"}, "Give an amount from 1 to 64 GiB", id="between two steps"
        ),
        pytest.param({"p-network": "x"}, "Choose one of None (none)", id="no such option"),
    ],
)
def test_what_is_not_right_stands_beside_its_field(
    member: Client, sent: dict[str, str], said: str
) -> None:
    page = member.post(FORM, {**NAMED, "p-network": "none", "p-clients": "2", **sent})
    assert page.status_code == 422 and said in page.text
    assert 'aria-invalid="true"' in page.text
    assert "<h2" in page.text and "Some answers are not right yet" in page.text
    assert not Claim.objects.exists()


def test_a_page_that_is_sent_twice_asks_once(member: Client) -> None:
    """A double click, the back button, a page restored in a second tab."""
    sent = {**NAMED, **hidden(member.get(FORM).text), "p-network": "none", "p-clients": "2"}
    first, second = member.post(FORM, sent), member.post(FORM, sent)
    assert first.status_code == second.status_code == 302
    assert first["Location"] == second["Location"]
    claim = Claim.objects.get()
    other = member.post(FORM, {**sent, "p-clients": "3", "p-memory": "4"})
    assert other.status_code == 422 and Claim.objects.count() == 1
    assert "Not asked for again." in other.text and claim.public_id in other.text
    fresh = {**sent, "p-clients": "3", "p-memory": "4", **hidden(other.text)}
    assert member.post(FORM, fresh).status_code == 302
    assert Claim.objects.count() == 2


def test_the_same_page_of_two_people_is_two_asks(member: Client) -> None:
    sent = {**NAMED, "form": "same", "p-network": "none", "p-clients": "2"}
    member.post(FORM, sent)
    member.force_login(make_person("plover", Tenant.objects.get(), Membership.Role.MEMBER))
    member.post(FORM, {**sent, "name": "other"})
    assert Claim.objects.count() == 2


def test_a_template_that_changed_meanwhile_keeps_the_entries_and_says_what_differs(
    member: Client,
) -> None:
    sent = {**NAMED, **hidden(member.get(FORM).text), "p-network": "tcp", "p-speed": "100"}
    sent |= {"p-clients": "2", "p-memory": "4", "asked": "network speed clients memory patient"}
    renew(speed="twice the speed")
    page = member.post(FORM, sent)
    assert page.status_code == 422 and not Claim.objects.exists()
    assert "Not asked for: version 2 has taken the place" in page.text
    assert "with twice the speed" in page.text, "what differs for these very answers"
    assert re.search(r'value="tcp"[^>]* checked', page.text), "entries are kept"
    assert re.search(r'name="p-memory" value="4"', page.text)
    assert member.post(FORM, {**sent, **hidden(page.text)}).status_code == 302


def renew(*, speed: str) -> None:
    """Version 2, whose slow option means something else."""
    version = TemplateVersion.objects.get()
    TemplateVersion.objects.filter(pk=version.pk).update(state="retired")
    content: dict[str, Any] = {**EVERYTHING, "parameters": [*EVERYTHING["parameters"]]}
    choice = dict(content["parameters"][1])
    choice["options"] = [{**choice["options"][0], "selectors": {"nic": [speed]}}]
    choice["default"] = "100"
    content["parameters"][1] = choice
    make_version(content=content)


def test_a_retired_template_says_so_and_never_was_is_not_found(member: Client) -> None:
    TemplateVersion.objects.update(state="retired", retired_words="The cards are gone.")
    for answer in (member.get(FORM), member.post(FORM, NAMED)):
        assert answer.status_code == 410
        assert "It cannot be asked for any more" in answer.text
        assert "The cards are gone." in answer.text
    assert member.post(PREVIEW, NAMED, headers={"HX-Request": "true"})["HX-Refresh"] == "true"
    assert member.get("/t/tidewater/ask/none/").status_code == 404


def test_amounts_say_what_devices_make_of_them(client: Client) -> None:
    make_version("cores", TEMPLATES["cores"][3])
    client.force_login(make_person("avocet", make_tenant()))
    mirror(fleet_objects())
    page = client.post("/t/tidewater/ask/cores/preview/", {**NAMED, "p-cores": "24"}).text
    assert "A part of one device: NUMA zone" in page
    assert "Rounded up to whole cores." in page
    assert "Up to 2 asks of this size at a time on each device." in page
    assert "Left beside these, for smaller asks: 14 cores." in page
    assert "cpu.numa.example/cores: &#x27;24&#x27;" in page
    assert "Fits now" in page


def test_hostile_texts_stay_text_in_everything_that_is_to_be_pasted(member: Client) -> None:
    name = "'''+__import__('os').system('x')+'''</pre><script>alert(1)</script>"
    page = member.get(FORM, {"name": name, "p-network": name}).text
    assert "<script>alert" not in page
    snippet = html.unescape(page.split('id="python"')[1].partition(">")[2].split("</pre>")[0])
    compiled = ast.parse(snippet)
    assert not [one for one in ast.walk(compiled) if getattr(one, "id", "") == "__import__"]
