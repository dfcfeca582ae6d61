"""The pages of those who write templates: list, template, editor with its pane, retiring."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from devices.models import DryRun, TemplateVersion
from portal.approvals.models import Approval
from portal.approvals.rules import Verdict
from tests.devices.pages import client_of, text
from tests.devices.templatelife import (
    a_draft,
    approved,
    author,
    begin,
    change,
    say,
    somebody,
    submit,
)
from tests.factories import GPU_CONTENT, make_access, make_claim, make_person, make_tenant

pytestmark = pytest.mark.django_db
LIST = "/platform/templates/"
PAGE = f"{LIST}gpu/"
EDITOR = f"{PAGE}1/"
HTMX = {"HX-Request": "true"}


def given(**changed: Any) -> dict[str, Any]:
    draft = a_draft()
    sent = {"name": draft.name, "words": draft.words, "icon": draft.icon, "text": draft.text}
    return {**sent, "revision": "1", **changed}


def writer() -> Client:
    return client_of(author().user)


def more(most: int) -> dict[str, Any]:
    (count,) = GPU_CONTENT["parameters"]
    return {**GPU_CONTENT, "parameters": [{**count, "maximum": most}]}


def test_an_empty_list_says_what_to_do() -> None:
    assert "There is no template yet" in text(writer().get(LIST))


def test_the_list_shows_what_is_offered_written_and_held() -> None:
    make_claim(make_access(), approved())
    begin("drafted", name="Drafted")
    shown = text(writer().get(LIST))
    assert "Drafted" in shown and "version 1" in shown and "1 tenant" in shown
    assert "1</span></a></nav>" in shown, "one is being written"
    only = text(writer().get(f"{LIST}?show=open"))
    assert "Drafted" in only and f'href="{PAGE}"' not in only
    assert "<h1>" not in text(writer().get(LIST, headers=HTMX)), "a fragment alone"


def test_the_list_costs_the_same_however_many_templates_there_are() -> None:
    counts = []
    client = writer()
    for number in range(2):
        for one in range(1 + 3 * number):
            approved(f"t-{number}-{one}")
        client.get(LIST)
        with CaptureQueriesContext(connection) as queries:
            client.get(LIST)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_template_is_written_on_the_page() -> None:
    client = writer()
    first = client.get(f"{LIST}new/")
    assert "GPUs per Pod" in text(first), "it starts with a text that explains itself"
    answer = client.post(f"{LIST}new/", given(slug="gpu", save="1"))
    assert (answer.status_code, answer["Location"]) == (302, EDITOR)
    shown = text(client.get(EDITOR))
    assert "It reads as a template" in shown and "How many" in shown
    assert "Each Pod gets devices of its own" in shown


def test_mistakes_stand_beside_the_text_with_their_lines_and_what_was_typed_stays() -> None:
    begin()
    typed = "# mine\nrequests:\n  - name: gpu\n    words: GPU\n    device_clas: gpu\n"
    answer = writer().post(EDITOR, given(text=typed, save="1"))
    assert answer.status_code == 422
    shown = text(answer)
    assert "Line 5" in shown and "device_clas" in shown and "# mine" in shown
    assert TemplateVersion.objects.get().content == GPU_CONTENT


def test_a_name_that_is_taken_stands_at_its_field() -> None:
    begin()
    answer = writer().post(f"{LIST}new/", given(slug="gpu", save="1"))
    assert answer.status_code == 422
    assert "A template is called so already" in text(answer)


def test_the_pane_is_redrawn_for_what_is_typed_and_saves_nothing() -> None:
    make_tenant("tide", ("tide-a",))
    begin()
    typed = a_draft(more(3)).text.replace("How many", "GPUs wanted")
    answer = writer().post(f"{EDITOR}try/", given(text=typed, tenant="tide"), headers=HTMX)
    shown = text(answer)
    assert "GPUs wanted" in shown and 'max="3"' in shown and "tide-a" in shown
    assert "It reads as a template." in shown
    assert TemplateVersion.objects.get().content == GPU_CONTENT
    chosen = given(text=typed, tenant="tide", asked="count", drawn="x", **{"p-count": "2"})
    assert "count: 2" in text(writer().post(f"{EDITOR}try/", chosen, headers=HTMX))


def test_without_script_a_button_redraws() -> None:
    begin()
    answer = writer().post(EDITOR, given(text=a_draft(more(3)).text, **{"try": "1"}))
    assert answer.status_code == 200
    assert 'max="3"' in text(answer)
    assert TemplateVersion.objects.get().content == GPU_CONTENT


def test_the_second_author_sees_who_came_first_and_both_texts() -> None:
    version = begin()
    change(version, somebody("bert", "admin"), content=more(4))
    answer = writer().post(EDITOR, given(text=a_draft(more(2)).text, save="1"))
    assert answer.status_code == 412
    shown = text(answer)
    assert "bert changed" in shown and "OUTDATED" in shown
    assert "- maximum: 4" in shown and "+ maximum: 2" in shown
    assert 'name="revision" value="2"' in shown, "saving once more is a choice"
    again = writer().post(EDITOR, given(text=a_draft(more(2)).text, save="1", revision="2"))
    assert again.status_code == 302
    assert TemplateVersion.objects.get().content == more(2)


def test_saving_and_putting_to_review_is_one_button() -> None:
    begin()
    sent = given(text=a_draft(more(4)).text, submit="1", reason="for the rack")
    answer = writer().post(EDITOR, sent)
    approval = Approval.objects.get()
    assert answer["Location"] == f"/approvals/{approval.number}/"
    assert approval.reason == "for the rack"
    shown = text(client_of(somebody("petra", "approver").user).get(answer["Location"]))
    assert f'href="{EDITOR}"' in shown and "Holders of earlier versions" in shown
    assert "It waits for somebody else" in text(writer().get(EDITOR))


def test_what_the_check_refuses_is_saved_and_said() -> None:
    begin()
    content = {
        "requests": [
            {"name": "gpu", "device_class": "gpu", "words": "GPU", "selectors": ["device.nope +"]}
        ]
    }
    answer = writer().post(EDITOR, given(text=a_draft(content).text, submit="1"))
    assert answer.status_code == 422
    shown = text(answer)
    assert "Saved, and not put to review." in shown and "CHECK_FAILED" in shown
    assert "SELECTOR_REFUSED" in shown
    assert TemplateVersion.objects.get().content == content
    assert not Approval.objects.exists()


def test_it_is_taken_back() -> None:
    submit(begin())
    assert writer().post(f"{EDITOR}withdraw/").status_code == 302
    assert TemplateVersion.objects.get().state == "draft"


def test_a_draft_is_thrown_away() -> None:
    begin()
    assert "Throw the draft of version 1 away?" in text(writer().get(EDITOR))
    assert writer().post(f"{EDITOR}discard/").status_code == 302
    assert not TemplateVersion.objects.exists()


def test_what_was_sent_back_says_why() -> None:
    say(submit(begin()), verdict=Verdict.DENY, comment="Eight is too many.")
    shown = text(writer().get(EDITOR))
    assert "Sent back" in shown and "Eight is too many." in shown


def test_an_approved_version_is_read_and_copied() -> None:
    approved()
    client = writer()
    shown = text(client.get(EDITOR))
    assert "Save the draft" not in shown and "What it says" in shown
    answer = client.post(f"{PAGE}copy/")
    assert answer["Location"] == f"{PAGE}2/"
    assert "What is new" in text(client.get(f"{PAGE}2/"))
    assert client.post(f"{PAGE}copy/").status_code == 409


def test_what_differs_from_the_version_before_stands_below() -> None:
    approved()
    writer().post(f"{PAGE}copy/")
    version = TemplateVersion.objects.get(number=2)
    change(version, content=more(4), note="Four at most.")
    shown = text(writer().get(f"{PAGE}2/"))
    assert "maximum: 8" in shown and "maximum: 4" in shown and "Question How many" in shown


def test_who_may_not_write_reads_and_learns_who_may() -> None:
    begin()
    auditor = client_of(somebody("iris", "auditor").user)
    for path in (LIST, PAGE, EDITOR):
        answer = auditor.get(path)
        assert answer.status_code == 200
        assert "one must be admin or operator" in text(answer)
    assert auditor.post(EDITOR, given(save="1")).status_code == 403
    assert auditor.get(f"{LIST}new/").status_code == 403
    stranger = client_of(make_person("tim", make_tenant()))
    for path in (LIST, PAGE, EDITOR, f"{LIST}new/", "/platform/events/"):
        assert stranger.get(path).status_code == 404


def test_who_sees_it_is_changed_on_its_page() -> None:
    approved()
    make_tenant("tide", ())
    client = writer()
    wrong = client.post(f"{PAGE}audience/", {"audience": "named"})
    assert wrong.status_code == 422 and "Name at least one tenant." in text(wrong)
    sent = client.post(f"{PAGE}audience/", {"audience": "named", "tenants": ["tide"]})
    assert sent.status_code == 302
    assert "Only the tenants named here" in text(client.get(LIST))


def test_retiring_says_what_stays_and_asks_for_a_successor() -> None:
    make_claim(make_access(), approved())
    approved("next", name="Next GPU")
    client = writer()
    shown = text(client.get(f"{PAGE}retire/"))
    assert "1 claim of 1 tenant and their Pods" in shown and "Next GPU" in shown
    wrong = client.post(f"{PAGE}retire/", {"successor": "", "words": "Old."})
    assert wrong.status_code == 422, "nothing at all is a choice of its own"
    sent = client.post(f"{PAGE}retire/", {"successor": "next", "words": "The cards are old."})
    assert sent.status_code == 302
    shown = text(client.get(PAGE))
    assert "The cards are old." in shown and "Next GPU" in shown
    assert "It is not offered" in text(client.get(f"{PAGE}retire/"))


def test_a_dry_run_is_asked_for_and_its_answer_is_ones_own() -> None:
    make_tenant("tide", ("tide-a",))
    begin()
    client = writer()
    waiting = client.post(f"{EDITOR}dry-run/", given(tenant="tide"), headers=HTMX)
    row = DryRun.objects.get()
    assert f"sse:{row.topic}" in text(waiting)
    (obj,) = row.objects_json
    assert (obj["kind"], obj["metadata"]["namespace"]) == ("ResourceClaimTemplate", "tide-a")
    DryRun.objects.update(
        answered_at=row.asked_at, accepted=False, code="REFUSED_BY_SERVER", said="no <b>such</b>"
    )
    shown = text(client.get(f"/platform/dry-runs/{row.public_id}/", headers=HTMX))
    assert "no &lt;b&gt;such&lt;/b&gt;" in shown and "REFUSED_BY_SERVER" in shown
    assert "<h1>" in text(client.get(f"/platform/dry-runs/{row.public_id}/"))
    other = client_of(somebody("bert", "admin").user)
    assert other.get(f"/platform/dry-runs/{row.public_id}/").status_code == 404


def test_a_dry_run_without_a_place_or_with_a_broken_text_is_refused_in_words() -> None:
    begin()
    client = writer()
    assert "Choose a tenant" in text(client.post(f"{EDITOR}dry-run/", given(), headers=HTMX))
    broken = client.post(f"{EDITOR}dry-run/", given(text="a: [1"), headers=HTMX)
    assert "Mend the text first" in text(broken)
    assert not DryRun.objects.exists()


def test_without_script_a_dry_run_has_a_page() -> None:
    make_tenant("tide", ("tide-a",))
    begin()
    answer = writer().post(f"{EDITOR}dry-run/", given(tenant="tide"))
    row = DryRun.objects.get()
    assert answer["Location"] == f"/platform/dry-runs/{row.public_id}/"
    assert "Look for the answer" in text(writer().get(answer["Location"]))


def test_hostile_words_are_text() -> None:
    begin(name="<script>alert(1)</script>", words="</title><img src=x>")
    for path in (LIST, PAGE, EDITOR):
        shown = text(writer().get(path))
        assert "<script>alert" not in shown and "<img" not in shown
