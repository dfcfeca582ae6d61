"""The life of a template: the whole way to approved, who sees it, its successor, retired."""

from __future__ import annotations

import pytest
from django.db import InternalError, ProgrammingError, transaction

from devices.authoring import reviews
from devices.authoring.audience import show_to
from devices.authoring.drafts import NotADraft
from devices.authoring.reviews import NotOffered
from devices.models import TemplateVersion
from portal.errors import Invalid
from portal.outbox.models import OutboxLine
from tests.devices.templatelife import (
    HOUR,
    REQUEST,
    a_draft,
    actions,
    approved,
    author,
    begin,
    change,
    more,
    retire,
    say,
    state_of,
    submit,
)
from tests.factories import NOON, make_tenant

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_whole_way() -> None:
    version = begin()
    approval = submit(version)
    assert state_of(version) == "in review"
    assert approval.subject == "template gpu version 1"
    assert approval.address == "/platform/templates/gpu/1/"
    say(approval)
    assert OutboxLine.objects.get(task=reviews.PUBLISH).key == str(version.pk)
    assert reviews.publish(version.pk, now=NOON)
    assert not reviews.publish(version.pk, now=NOON), "once"
    assert state_of(version) == "approved"
    assert not OutboxLine.objects.filter(task=reviews.PUBLISH).exists()
    assert actions() == ["template.begun", "template.published"]


@pytest.mark.parametrize("state", ["in review", "approved", "retired"])
def test_the_database_keeps_what_was_reviewed(state: str) -> None:
    version = begin()
    TemplateVersion.objects.filter(pk=version.pk).update(state="in review")
    for step in ("approved", "retired")[: ("in review", "approved", "retired").index(state)]:
        TemplateVersion.objects.filter(pk=version.pk).update(state=step)
    rows = TemplateVersion.objects.filter(pk=version.pk)
    for change_to in ({"content": more(2)}, {"text": "x"}, {"name": "Other"}, {"number": 7}):
        with pytest.raises((ProgrammingError, InternalError)), transaction.atomic():
            rows.update(**change_to)
    with pytest.raises((ProgrammingError, InternalError)), transaction.atomic():
        version.delete()


def test_an_approved_version_does_not_change() -> None:
    version = approved()
    with pytest.raises(NotADraft):
        change(version, content=more(4))
    with pytest.raises(NotADraft):
        submit(version)


def test_a_new_version_takes_the_place_of_the_one_before() -> None:
    first = approved()
    second = approved(content=more(4), name="GPU, new")
    first.refresh_from_db()
    assert (first.state, first.successor, first.retired_words) == (
        "retired",
        second.template,
        "More of it.",
    )
    assert (second.state, second.template.name) == ("approved", "GPU, new")


def test_retiring_names_a_successor_and_a_reason() -> None:
    old = approved()
    new = approved("gpu-next", name="Next GPU")
    retire(successor="gpu-next")
    old.refresh_from_db()
    assert (old.state, old.successor, old.retired_words) == (
        "retired",
        new.template,
        "The cards are old.",
    )
    assert actions()[-1] == "template.retired"
    with pytest.raises(NotOffered):
        retire()


@pytest.mark.parametrize(
    ("successor", "words", "field"),
    [
        pytest.param("gpu", "Old.", "successor", id="itself"),
        pytest.param("unheard-of", "Old.", "successor", id="what there is not"),
        pytest.param("drafted", "Old.", "successor", id="what nobody can ask for"),
        pytest.param("", " ", "words", id="without a reason"),
    ],
)
def test_retiring_takes_a_successor_that_is_offered(successor: str, words: str, field: str) -> None:
    version = approved()
    begin("drafted")
    with pytest.raises(Invalid) as refused:
        retire(successor=successor, words=words)
    assert set(refused.value.fields) == {field}
    assert state_of(version) == "approved"


def test_a_retired_template_is_offered_again_by_a_new_version() -> None:
    approved()
    retire()
    version = approved(content=more(4))
    assert (version.number, version.state) == (2, "approved")


def test_who_sees_it_is_said_by_name() -> None:
    version = begin()
    make_tenant("tide")
    given = {"access": author(), "slug": "gpu", "request_id": REQUEST, "now": NOON + HOUR}
    with pytest.raises(Invalid):
        show_to(audience="named", tenants=[], **given)  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        show_to(audience="named", tenants=["nobody"], **given)  # type: ignore[arg-type]
    found = show_to(audience="named", tenants=["tide"], **given)  # type: ignore[arg-type]
    assert [tenant.slug for tenant in found.tenants.all()] == ["tide"]
    assert actions()[-1] == "template.shown"
    assert a_draft().name == version.name
