"""Reviews of templates: what approvers see, who may not approve, what keeps a draft from review."""

from __future__ import annotations

from typing import Any

import pytest

from devices.authoring import reviews
from devices.authoring.reviews import CheckFailed, standings
from portal.approvals.asks import AlreadyAsked
from portal.approvals.models import Approval
from portal.approvals.rules import Verdict
from portal.errors import Invalid, NotPermitted
from tests.devices.templatelife import (
    REQUEST,
    approved,
    author,
    begin,
    change,
    copy,
    more,
    say,
    somebody,
    state_of,
    submit,
)
from tests.factories import GPU_CONTENT, NOON, make_access, make_claim

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_approver_sees_what_changes_what_it_does_and_what_was_checked() -> None:
    access = make_access()
    make_claim(access, approved())
    content = more(4)
    content["requests"] = [{"name": "gpu", "device_class": "h100", "words": "GPU"}]
    version = change(copy(), content=content, note="H100 instead.")
    approval = submit(version)
    lines = {(line.label, line.before, line.after) for line in approval.content() if line.changed}
    assert ("class", "gpu", "h100") in lines
    assert ("maximum", "8", "4") in lines
    effects = {effect.label: (effect.value, effect.note) for effect in approval.all_effects()}
    assert effects["Holders of earlier versions"] == (
        "1 claim",
        "of 1 tenant; they keep what they have",
    )
    assert effects["Classes that become reachable"][0] == "h100"
    assert effects["Classes no longer reachable"][0] == "gpu"
    assert effects["Fits now"][0] == "unknown", "nobody has seen a cluster here"


def test_whoever_wrote_in_it_never_approves() -> None:
    version = begin()
    change(version, somebody("bert", "admin", "approver"), content=more(4))
    approval = submit(version)
    for name in ("ada", "bert"):
        with pytest.raises(NotPermitted) as refused:
            say(approval, name)
        assert refused.value.code == "OWN_REQUEST"
    say(approval)
    assert reviews.publish(version.pk, now=NOON)


def test_more_than_one_yes_where_the_platform_wants_it(settings: Any) -> None:
    settings.TEMPLATE_APPROVALS = 2
    version = begin()
    approval = submit(version)
    say(approval)
    assert not reviews.publish(version.pk, now=NOON)
    say(approval, "paul")
    assert reviews.publish(version.pk, now=NOON)


def test_a_change_voids_the_approval_and_needs_another_review() -> None:
    version = begin()
    approval = submit(version)
    change(version, content=more(4))
    approval.refresh_from_db()
    assert approval.state == "void"
    assert state_of(version) == "draft"
    say(submit(version))
    assert reviews.publish(version.pk, now=NOON)


def test_what_was_sent_back_says_why_and_can_be_put_again() -> None:
    version = begin()
    say(submit(version), verdict=Verdict.DENY, comment="Eight is too many.")
    version.refresh_from_db()
    standing = standings([version])[version.pk]
    assert (standing.state, standing.why) == ("denied", "Eight is too many.")
    change(version, content=more(4))
    assert state_of(version) == "draft"
    say(submit(version))
    assert reviews.publish(version.pk, now=NOON)


def test_withdrawing_makes_it_a_draft_again() -> None:
    version = begin()
    approval = submit(version)
    for _ in range(2):
        reviews.withdraw(access=author(), slug="gpu", number=1, request_id=REQUEST, now=NOON)
    approval.refresh_from_db()
    assert (approval.state, state_of(version)) == ("void", "draft")


def test_it_is_asked_for_once() -> None:
    version = begin()
    submit(version)
    with pytest.raises(AlreadyAsked):
        submit(version)


def test_a_new_version_says_what_is_new() -> None:
    approved()
    version = change(copy(), content=more(4))
    with pytest.raises(Invalid) as refused:
        submit(version)
    assert set(refused.value.fields) == {"note"}


def test_a_new_version_that_changes_nothing_is_not_asked_for() -> None:
    approved()
    version = change(copy(), note="Nothing, in fact.")
    with pytest.raises(Invalid) as refused:
        submit(version)
    assert set(refused.value.fields) == {"lines"}
    assert state_of(version) == "draft"


def test_what_the_check_finds_keeps_it_from_review() -> None:
    content = {
        "requests": [
            {"name": "gpu", "device_class": "gpu", "words": "GPU", "selectors": ["device.nope +"]}
        ]
    }
    version = begin(content=content)
    with pytest.raises(CheckFailed) as refused:
        submit(version)
    (finding,) = refused.value.facts["findings"]  # type: ignore[misc]
    assert finding["code"] == "SELECTOR_REFUSED"
    assert (state_of(version), Approval.objects.count()) == ("draft", 0)


def test_what_was_offered_is_hidden_or_redirected_never_removed() -> None:
    approved()
    version = change(copy(), content={"requests": GPU_CONTENT["requests"]}, note="No question.")
    with pytest.raises(CheckFailed) as refused:
        submit(version)
    assert refused.value.facts["findings"][0]["code"] == "VALUE_REMOVED"  # type: ignore[index]
