"""Asking and releasing: all of it in one transaction or nothing, and refusals that help."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, ProgrammingError, transaction

from devices.asks.claims import AlreadyReleased, TenantClosing, release_claim
from devices.dra.lifecycle import State
from devices.models import Claim, ClaimEvent
from devices.models.claim import LEASE
from portal.audit.models import AuditLine
from portal.audit.record import all_breaks
from portal.errors import Invalid, NotPermitted
from portal.outbox.models import OutboxLine
from tenants.access import tenant_for
from tenants.models import Tenant
from tests.factories import NOON, make_access, make_claim, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db


def test_an_accepted_ask_is_a_row_a_promise_an_event_and_an_audit_line() -> None:
    access = make_access()
    claim = make_claim(access, values={"count": 3})
    assert (claim.state, claim.words) == (State.REQUESTED, "3 × GPU")
    assert claim.wish().devices[0].count == 3
    line = OutboxLine.objects.get()
    assert (line.task, line.key) == ("devices.tasks.reconcile_claim", claim.public_id)
    assert ClaimEvent.objects.get().claim == claim
    audit = AuditLine.objects.get()
    assert (audit.action, audit.person, audit.tenant) == (
        "claim.asked",
        access.user.person,
        "tidewater",
    )
    assert "avocet" not in str(audit.content())


def test_each_object_name_is_its_own() -> None:
    access, version = make_access(), make_version()
    first, second = make_claim(access, version), make_claim(access, version)
    assert first.object_name != second.object_name
    assert first.object_name.startswith("train-")


@pytest.mark.parametrize(
    ("asked", "fields"),
    [
        pytest.param({"name": "Train!"}, {"name"}, id="a name Kubernetes would not take"),
        pytest.param({"name": "x" * 41}, {"name"}, id="a name too long to be made longer"),
        pytest.param({"namespace": "kube-system"}, {"namespace"}, id="not the tenant's namespace"),
        pytest.param({"values": {"count": 9}}, {"values.count"}, id="more than the template gives"),
        pytest.param(
            {"values": {"count": 0}, "name": "-", "namespace": "x"},
            {"values.count", "name", "namespace"},
            id="everything that is wrong at once",
        ),
    ],
)
def test_a_refused_ask_leaves_nothing(asked: dict[str, Any], fields: set[str]) -> None:
    access = make_access()
    with pytest.raises(Invalid) as refused:
        make_claim(access, **asked)
    assert set(refused.value.fields) == fields
    for table in (Claim, OutboxLine, ClaimEvent, AuditLine):
        assert not table._default_manager.exists()


def test_a_retired_version_cannot_be_asked_for() -> None:
    with pytest.raises(Invalid) as refused:
        make_claim(make_access(), make_version(state="retired"))
    assert set(refused.value.fields) == {"template"}


def test_a_viewer_may_not_ask_and_is_told_who_may() -> None:
    with pytest.raises(NotPermitted, match="member or owner"):
        make_claim(make_access(role="viewer"))


def test_a_closing_tenant_gets_nothing_new() -> None:
    access = make_access()
    Tenant.objects.update(state=Tenant.State.CLOSING)
    with pytest.raises(TenantClosing):
        make_claim(access)


def test_releasing_twice_is_one_release() -> None:
    access = make_access()
    claim = make_claim(access)
    for _ in range(2):
        released = release_claim(
            access=access, public_id=claim.public_id, request_id="request-0002", now=NOON
        )
    assert released.state == State.RELEASING
    assert AuditLine.objects.filter(action="claim.released").count() == 1
    assert OutboxLine.objects.count() == 2


def test_what_is_released_cannot_be_released() -> None:
    access = make_access()
    claim = make_claim(access)
    Claim.objects.update(state=State.RELEASED)
    with pytest.raises(AlreadyReleased):
        release_claim(access=access, public_id=claim.public_id, request_id="request-2", now=NOON)


def test_another_tenants_claim_does_not_exist() -> None:
    claim = make_claim(make_access())
    other = make_tenant("basalt", namespaces=("basalt-x",))
    access = tenant_for(make_person("sorrel", other, "owner"), "basalt")
    with pytest.raises(Claim.DoesNotExist):
        release_claim(access=access, public_id=claim.public_id, request_id="request-2", now=NOON)


def test_the_database_refuses_a_move_that_no_rule_allows() -> None:
    claim = make_claim(make_access())
    Claim.objects.update(state=State.RELEASED)
    with (
        pytest.raises((ProgrammingError, IntegrityError), match="transition"),
        transaction.atomic(),
    ):
        Claim.objects.filter(pk=claim.pk).update(state=State.PENDING)


def test_the_database_refuses_to_change_an_audit_line() -> None:
    make_claim(make_access())
    with pytest.raises(ProgrammingError, match="Cannot update or delete"), transaction.atomic():
        AuditLine.objects.update(action="nothing")
    with pytest.raises(ProgrammingError, match="Cannot update or delete"), transaction.atomic():
        AuditLine.objects.all().delete()
    assert list(all_breaks()) == []


def test_one_turn_at_a_time_has_the_lease() -> None:
    claim = make_claim(make_access())
    assert claim.take_lease("first", NOON)
    assert not claim.take_lease("second", NOON)
    claim.drop_lease("second")
    assert not claim.take_lease("second", NOON)
    claim.drop_lease("first")
    assert claim.take_lease("second", NOON)


def test_a_dead_turns_lease_runs_out_and_its_late_news_are_not_taken() -> None:
    from datetime import timedelta

    claim = make_claim(make_access())
    claim.take_lease("dead", NOON)
    later = NOON + LEASE + timedelta(seconds=1)
    assert claim.take_lease("next", later)
    assert not claim.record(later, holder="dead", state=State.FAILED, code="X", why="late")
    assert Claim.objects.get().state == State.REQUESTED
    assert claim.record(later, holder="next", state=State.APPLIED, code="", why="")
    assert Claim.objects.get().state == State.APPLIED
