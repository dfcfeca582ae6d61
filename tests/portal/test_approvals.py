"""Approvals in the database: asked, decided, voided, lent, expired; and nothing goes round them."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from django.db.utils import Error

from portal.approvals.asks import AlreadyAsked, ask, expire_due, refresh, withdraw
from portal.approvals.decisions import decide
from portal.approvals.delegations import delegate, in_force, take_back
from portal.approvals.lists import similar, visible_to, waiting_for
from portal.approvals.models import Approval, Decision
from portal.approvals.rules import DecidedBy, Decider, Line, Rights, State, Verdict, digest
from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted, Refused
from portal.outbox.models import OutboxLine
from tests.factories import NOON

TASK = "portal.api.tasks.forget_answers"
AUTHOR, BO, CY = uuid4(), uuid4(), uuid4()
APPROVER = Rights(platform=frozenset({"approver"}))
MORE = [Line("H100 devices", "8", "16", group="Limits"), Line("claims", "20", "20", "Limits")]


def an_approval(**changed: Any) -> Approval:
    asked: dict[str, Any] = {
        "kind": "limit",
        "subject": "tenant tidewater",
        "title": "16 H100 for Tidewater",
        "lines": MORE,
        "by": DecidedBy(platform=frozenset({"approver"})),
        "author": AUTHOR,
        "tenant": "tidewater",
        "task": TASK,
        "key": "limit-7",
        "request_id": "request-0001",
        "now": NOON,
    }
    return ask(**{**asked, **changed})


def say(
    approval: Approval, person: UUID = BO, verdict: Verdict = Verdict.APPROVE, comment: str = ""
) -> Approval:
    return decide(
        approval_id=approval.pk,
        decider=Decider(person, APPROVER),
        verdict=verdict,
        comment=comment,
        request_id="request-0002",
        now=NOON + timedelta(minutes=5),
    )


@pytest.mark.django_db
def test_the_last_needed_yes_promises_the_work() -> None:
    approval = an_approval(needed=2)
    assert say(approval).state == State.OPEN
    assert not OutboxLine.objects.exists()
    assert say(approval, CY).state == State.APPROVED
    line = OutboxLine.objects.get()
    assert (line.task, line.key, line.request_id) == (TASK, "limit-7", "request-0002")
    assert list(AuditLine.objects.values_list("action", flat=True)) == [
        "approval.asked",
        "approval.decided",
        "approval.decided",
        "approval.approved",
    ]


@pytest.mark.django_db
def test_one_denial_ends_it_and_says_why() -> None:
    approval = an_approval(needed=2)
    with pytest.raises(Invalid) as refused:
        say(approval, verdict=Verdict.DENY, comment="  ")
    assert set(refused.value.fields) == {"comment"}
    assert say(approval, verdict=Verdict.DENY, comment="After the migration.").state == State.DENIED
    assert not OutboxLine.objects.exists()
    with pytest.raises(Refused) as late:
        say(approval, CY)
    assert late.value.code == "APPROVAL_NOT_OPEN"


@pytest.mark.django_db
def test_the_author_is_refused_with_a_code_of_its_own() -> None:
    with pytest.raises(NotPermitted) as refused:
        say(an_approval(), AUTHOR)
    assert refused.value.code == "OWN_REQUEST"
    assert not Decision.objects.exists()


@pytest.mark.django_db
def test_who_had_a_hand_in_it_sees_it_and_decides_as_little_as_the_author() -> None:
    approval = an_approval(coauthors=[BO, AUTHOR])
    assert approval.coauthors == [BO], "the author is the author"
    with pytest.raises(NotPermitted) as refused:
        say(approval, BO)
    assert refused.value.code == "OWN_REQUEST"
    assert not waiting_for(Decider(BO, APPROVER)).exists()
    assert visible_to(Decider(BO, Rights())).get() == approval
    with pytest.raises(Error, match="the author never decides"), transaction.atomic():
        Decision.objects.create(
            approval=approval, person=CY, holder=BO, verdict=Verdict.APPROVE.value, at=NOON
        )
    assert say(approval, CY).state == "approved"


@pytest.mark.django_db
def test_who_belongs_to_the_tenant_is_not_asked_about_it() -> None:
    approval = an_approval()
    insider = Rights(platform=APPROVER.platform, tenants={"tidewater": "viewer"})
    assert not waiting_for(Decider(BO, insider)).exists()
    asked: dict[str, Any] = {"approval_id": approval.pk, "verdict": Verdict.APPROVE, "comment": ""}
    with pytest.raises(NotPermitted) as refused:
        decide(decider=Decider(BO, insider), request_id="r", now=NOON, **asked)
    assert refused.value.code == "OWN_TENANT"
    elsewhere = Rights(platform=APPROVER.platform, tenants={"basalt": "owner"})
    assert waiting_for(Decider(BO, elsewhere)).get() == approval
    admin = Rights(platform=frozenset({"admin", "approver"}), tenants={"tidewater": "owner"})
    assert waiting_for(Decider(BO, admin)).get() == approval


@pytest.mark.django_db
def test_a_change_voids_what_was_approved_so_far_and_the_same_content_does_not() -> None:
    approval = an_approval(needed=2)
    say(approval)
    told = {"kind": "limit", "subject": "tenant tidewater", "request_id": "r", "now": NOON}
    assert refresh(digest=digest("limit", "tenant tidewater", MORE), **told) is None
    assert refresh(digest="something else", **told) == approval
    approval.refresh_from_db()
    assert (approval.state, approval.ended_why) == ("void", "What was asked for changed.")
    assert AuditLine.objects.filter(action="approval.void").count() == 1
    again = an_approval(lines=[Line("H100 devices", "8", "12")])
    assert again.case().decided == ()


@pytest.mark.django_db
def test_one_open_approval_per_subject() -> None:
    first = an_approval()
    with pytest.raises(AlreadyAsked) as refused:
        an_approval()
    assert refused.value.facts == {"approval": first.number}
    withdraw(approval_id=first.pk, person=AUTHOR, request_id="r", now=NOON)
    an_approval()


@pytest.mark.django_db
def test_only_the_author_withdraws() -> None:
    with pytest.raises(Refused) as refused:
        withdraw(approval_id=an_approval().pk, person=BO, request_id="r", now=NOON)
    assert refused.value.code == "NOT_YOUR_REQUEST"


@pytest.mark.django_db
def test_time_ends_it() -> None:
    approval = an_approval(lasts=timedelta(days=1))
    assert expire_due(approval.expires_at - timedelta(seconds=1)) == 0
    assert expire_due(approval.expires_at) == 1
    approval.refresh_from_db()
    assert approval.state == State.EXPIRED


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changed", "field"),
    [
        pytest.param({"title": " "}, "title", id="no title"),
        pytest.param({"lines": [Line("a", "1", "1")]}, "lines", id="nothing would change"),
        pytest.param({"by": DecidedBy()}, "by", id="nobody could decide"),
        pytest.param({"needed": 0}, "needed", id="needs nobody"),
        pytest.param({"lasts": timedelta(days=90)}, "lasts", id="too long"),
    ],
)
def test_a_senseless_request_is_refused(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        an_approval(**changed)
    assert set(refused.value.fields) == {field}


@pytest.mark.django_db
def test_a_lent_right_counts_for_its_time_and_until_it_is_taken_back() -> None:
    lent = delegate(
        lender=BO,
        borrower=CY,
        starts_at=NOON,
        ends_at=NOON + timedelta(days=3),
        request_id="r",
        now=NOON,
    )
    assert in_force(NOON).get() == lent
    assert not in_force(NOON + timedelta(days=3)).exists()
    decider = Decider(CY, Rights(), {BO: APPROVER})
    approval = an_approval()
    assert waiting_for(decider).get() == approval
    decide(
        approval_id=approval.pk,
        decider=decider,
        verdict=Verdict.APPROVE,
        comment="",
        request_id="r",
        now=NOON,
    )
    said = approval.decisions.get()
    assert (said.person, said.holder) == (CY, BO)
    for _ in range(2):
        take_back(lender=BO, delegation_id=lent.pk, request_id="r", now=NOON)
    assert not in_force(NOON).exists()
    assert AuditLine.objects.filter(action="approval.delegation_ended").count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changed", "field"),
    [
        pytest.param({"borrower": BO}, "borrower", id="to oneself"),
        pytest.param({"ends_at": NOON}, "ends_at", id="ended already"),
        pytest.param({"ends_at": NOON + timedelta(days=90)}, "ends_at", id="too long"),
    ],
)
def test_a_senseless_loan_is_refused(changed: dict[str, Any], field: str) -> None:
    told = {
        "lender": BO,
        "borrower": CY,
        "starts_at": NOON,
        "ends_at": NOON + timedelta(days=1),
        "request_id": "r",
        "now": NOON,
    }
    with pytest.raises(Invalid) as refused:
        delegate(**{**told, **changed})
    assert set(refused.value.fields) == {field}


@pytest.mark.django_db
def test_who_sees_it() -> None:
    approval = an_approval()
    seen = {
        "author": Decider(AUTHOR, Rights()),
        "approver": Decider(BO, APPROVER),
        "auditor": Decider(BO, Rights(frozenset({"auditor"}))),
        "owner": Decider(BO, Rights(tenants={"tidewater": "owner"})),
        "member": Decider(BO, Rights(tenants={"tidewater": "member"})),
        "owner of another": Decider(BO, Rights(tenants={"basalt": "owner"})),
        "operator": Decider(BO, Rights(frozenset({"operator"}))),
    }
    assert [who for who, decider in seen.items() if approval in visible_to(decider)] == [
        "author",
        "approver",
        "auditor",
        "owner",
    ]


@pytest.mark.django_db
def test_similar_ones_are_ended_and_of_the_same_kind() -> None:
    before = say(an_approval())
    an_approval(kind="grant")
    now = an_approval(subject="tenant basalt")
    assert list(similar(now, Decider(CY, APPROVER))) == [before]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("UPDATE approvals_approval SET state = 'open'", id="reopened"),
        pytest.param("UPDATE approvals_approval SET lines = '[]'", id="other content"),
        pytest.param("UPDATE approvals_approval SET needed = 1", id="fewer needed"),
        pytest.param("DELETE FROM approvals_approval", id="forgotten"),
        pytest.param("UPDATE approvals_decision SET verdict = 'approve'", id="another verdict"),
        pytest.param("DELETE FROM approvals_decision", id="unsaid"),
        pytest.param(
            "INSERT INTO approvals_decision (approval_id, person, holder, verdict, comment, at) "
            f"SELECT id, '{AUTHOR}', '{AUTHOR}', 'approve', '', now() FROM approvals_approval",
            id="by its author",
        ),
    ],
)
def test_the_database_refuses_what_the_verbs_would_never_do(statement: str) -> None:
    say(an_approval(needed=2), verdict=Verdict.DENY, comment="No.")
    with pytest.raises(Error), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


@pytest.mark.django_db(transaction=True)
def test_two_at_once_are_both_heard_and_promise_once() -> None:
    approval = an_approval(needed=2)

    def speak(person: UUID) -> None:
        try:
            say(approval, person)
        finally:
            connection.close()

    threads = [threading.Thread(target=speak, args=[person]) for person in (BO, CY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    approval.refresh_from_db()
    assert approval.state == State.APPROVED
    assert OutboxLine.objects.count() == 1
