"""Two at once at one template: approvers, authors, who retires it, who asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from devices.authoring import reviews
from devices.authoring.drafts import BeingPublished, NotADraft
from devices.authoring.reviews import NotOffered
from portal.audit.models import AuditLine
from portal.errors import Invalid, Outdated
from tests.devices.templatelife import (
    approved,
    author,
    begin,
    change,
    more,
    retire,
    say,
    somebody,
    submit,
)
from tests.factories import GPU_CONTENT, NOON, make_access, make_claim

pytestmark = pytest.mark.django_db(transaction=True)


def together(*acts: Callable[[], Any]) -> list[Any]:
    """Runs acts at the same time; returns what each gave or raised."""
    start, came = threading.Barrier(len(acts)), [None] * len(acts)

    def run(number: int) -> None:
        try:
            start.wait()
            came[number] = acts[number]()
        except Exception as error:
            came[number] = error  # type: ignore[call-overload]
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[number]) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return came


def test_two_approvers_at_once_publish_it_once(settings: Any) -> None:
    settings.TEMPLATE_APPROVALS = 2
    version = begin()
    approval = submit(version)
    for name in ("petra", "paul"):
        somebody(name, "approver")
    came = together(lambda: say(approval, "petra"), lambda: say(approval, "paul"))
    assert not [one for one in came if isinstance(one, Exception)]
    published = together(*[lambda: reviews.publish(version.pk, now=NOON)] * 3)
    assert sorted(published) == [False, False, True]
    assert AuditLine.objects.filter(action="template.published").count() == 1


def test_a_change_and_the_last_yes_at_once_never_publish_what_nobody_read() -> None:
    for number in range(6):
        version = begin(f"gpu-{number}")
        approval = submit(version)
        somebody("petra", "approver")
        author()
        changed, _ = together(
            lambda version=version: change(version, content=more(4)),  # type: ignore[misc]
            lambda approval=approval: say(approval),  # type: ignore[misc]
        )
        reviews.publish(version.pk, now=NOON)
        version.refresh_from_db()
        if version.state == "approved":
            assert version.content == GPU_CONTENT
            assert isinstance(changed, BeingPublished | NotADraft)
        else:
            assert (version.state, version.content) == ("draft", more(4))


def test_two_authors_at_once_save_one_after_the_other() -> None:
    version = begin()
    others = [somebody(name, "operator") for name in ("bert", "cora")]
    came = together(
        *(
            lambda one=one, most=most: change(version, one, revision=1, content=more(most))  # type: ignore[misc]
            for most, one in enumerate(others, start=3)
        )
    )
    assert sum(isinstance(one, Outdated) for one in came) == 1
    version.refresh_from_db()
    assert version.revision == 2


def test_two_retire_it_at_once() -> None:
    approved()
    author()
    came = together(retire, retire)
    assert sum(isinstance(one, NotOffered) for one in came) == 1


def test_retiring_while_somebody_asks_leaves_a_holder_or_a_refusal() -> None:
    access = make_access()
    version = approved()
    author()
    asked, retired = together(lambda: make_claim(access, version), retire)
    assert not isinstance(retired, Exception)
    assert isinstance(asked, Invalid) or asked.version == version
    version.refresh_from_db()
    with pytest.raises(Invalid) as refused:
        make_claim(access, version, name="later")
    assert set(refused.value.fields) == {"template"}
