"""Drafts of templates: who writes them, what is wrong named, two authors, thrown away."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import Http404

from devices.authoring import drafts, reviews
from devices.authoring.drafts import DraftExists, NotADraft
from devices.models import ClaimTemplate, TemplateVersion
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted, Outdated
from tests.devices.templatelife import (
    REQUEST,
    actions,
    approved,
    author,
    begin,
    change,
    copy,
    more,
    say,
    somebody,
    submit,
)
from tests.factories import GPU_CONTENT, NOON

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("role", ["operator", "admin"])
def test_operators_and_admins_write_templates(role: str) -> None:
    version = begin(access=somebody("ann", role))
    assert (version.number, version.state, version.revision) == (1, "draft", 1)
    assert version.content == GPU_CONTENT
    assert actions() == ["template.begun"]


@pytest.mark.parametrize("role", ["auditor", "approver"])
def test_nobody_else_does(role: str) -> None:
    with pytest.raises(NotPermitted):
        begin(access=somebody("ann", role))
    version, other = begin(), somebody("ann", role)
    for act in (
        lambda: change(version, other),
        lambda: submit(version, other),
        lambda: drafts.begin_version(access=other, slug="gpu", request_id="r", now=NOON),
        lambda: reviews.withdraw(access=other, slug="gpu", number=1, request_id="r", now=NOON),
    ):
        with pytest.raises(NotPermitted):
            act()


@pytest.mark.parametrize(
    ("slug", "given", "fields"),
    [
        pytest.param("Not good", {}, {"slug"}, id="a short name that is none"),
        pytest.param("new", {}, {"slug"}, id="a short name that is an address"),
        pytest.param("gpu-2", {"name": " "}, {"name"}, id="no name"),
        pytest.param("gpu-2", {"words": "x" * 241}, {"words"}, id="too many words"),
        pytest.param("gpu-2", {"words": "bell\x07"}, {"words"}, id="an unseen character"),
        pytest.param("gpu-2", {"icon": "dragon"}, {"icon"}, id="an icon that there is not"),
        pytest.param("gpu-2", {"text": "a: [1"}, {"text"}, id="no YAML"),
        pytest.param(
            "gpu-2",
            {"text": "requests:\n  - name: gpu\n    words: GPU\n    device_class: 7\n"},
            {"content.requests[0].device_class"},
            id="a type that is wrong",
        ),
    ],
)
def test_what_is_wrong_is_named(slug: str, given: dict[str, Any], fields: set[str]) -> None:
    with pytest.raises(Invalid) as refused:
        begin(slug, **given)
    assert set(refused.value.fields) == fields
    assert not TemplateVersion.objects.exists()


def test_a_mistake_in_the_text_says_its_line() -> None:
    with pytest.raises(Invalid) as refused:
        begin(text="# GPUs\nrequests:\n  - name: gpu\n    words: GPU\n    device_class: 7\n")
    assert refused.value.fields["content.requests[0].device_class"].startswith("Line 5: ")


def test_comments_are_kept() -> None:
    text = "# Ask Iris first.\nrequests:\n  - {name: gpu, words: GPU, device_class: gpu}\n"
    version = begin(text=text)
    version.refresh_from_db()
    assert version.text == text
    assert copy_of_approved(version).text == text


def copy_of_approved(version: TemplateVersion) -> TemplateVersion:
    say(submit(version))
    reviews.publish(version.pk, now=NOON)
    return copy()


def test_the_second_author_learns_who_changed_what_meanwhile() -> None:
    version = begin()
    change(version, somebody("bert", "admin"), revision=1, content=more(4))
    with pytest.raises(Outdated) as refused:
        change(version, revision=1, content=more(2))
    assert "bert" in refused.value.message
    assert refused.value.facts["changed_by"] == "bert"
    assert "maximum: 4" in refused.value.facts["now"]["text"]  # type: ignore[index]
    version.refresh_from_db()
    assert version.content == more(4)
    assert len(version.authors) == 2


def test_saving_the_same_again_changes_nothing() -> None:
    version = begin()
    assert change(version).revision == 1
    assert actions() == ["template.begun"]


def test_a_new_version_is_a_copy_and_there_is_one_at_a_time() -> None:
    first = approved()
    second = copy()
    assert (second.number, second.state, second.content) == (2, "draft", first.content)
    assert second.note == "", "what is new is said anew"
    with pytest.raises(DraftExists) as refused:
        copy()
    assert refused.value.facts == {"version": 2}
    with pytest.raises(Http404):
        copy("unheard-of")


def discard(number: int = 1, revision: int | None = None) -> None:
    drafts.discard(
        access=author(),
        slug="gpu",
        number=number,
        revision=revision,
        request_id=REQUEST,
        now=NOON,
    )


def test_an_only_draft_goes_with_its_template() -> None:
    begin()
    discard()
    assert not ClaimTemplate.objects.exists()
    assert AuditLine.objects.filter(action="template.discarded").count() == 1


def test_a_draft_beside_what_is_offered_goes_alone() -> None:
    approved()
    copy()
    discard(2)
    assert [one.number for one in TemplateVersion.objects.all()] == [1]


def test_only_a_draft_that_nobody_changed_meanwhile_is_thrown_away() -> None:
    version = begin()
    with pytest.raises(Outdated):
        discard(revision=version.revision + 1)
    submit(version)
    with pytest.raises(NotADraft):
        discard()
    assert TemplateVersion.objects.count() == 1
