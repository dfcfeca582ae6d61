"""The verb of those who decide; the last needed yes promises the work in the same transaction."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from portal.approvals.asks import end
from portal.approvals.models import Approval, Decision
from portal.approvals.rules import Decider, NoSeat, Refusal, State, Verdict, outcome, seat
from portal.audit.record import record
from portal.errors import Invalid, NotPermitted, Refused
from portal.outbox import lines as outbox

LONGEST_COMMENT = 2000
FORBIDDEN = {Refusal.OWN_REQUEST, Refusal.OWN_TENANT, Refusal.NO_RIGHT}


@transaction.atomic
def decide(
    *,
    approval_id: int,
    decider: Decider,
    verdict: Verdict,
    comment: str,
    request_id: str,
    now: datetime,
) -> Approval:
    """Writes one person's decision and what it makes of the approval.

    Raises `Invalid` (comment), `NotPermitted` (OWN_REQUEST, OWN_TENANT, NOT_A_DECIDER) and
    `Refused` with the codes of `rules.Refusal`; `Approval.DoesNotExist`. Two people deciding at
    once wait for each other at the row, so the last needed yes is one of them and the work is
    promised once.
    """
    approval = Approval.objects.select_for_update().get(pk=approval_id)
    taken = seat(approval.case(), decider, now)
    if isinstance(taken, NoSeat):
        kind = NotPermitted if taken.code in FORBIDDEN else Refused
        raise kind(taken.words, code=taken.code, approval=approval.number)
    said = comment.strip()
    if verdict == Verdict.DENY and not said:
        raise Invalid(
            "Nothing was decided.",
            fields={"comment": "Say what would have to change; the author reads it."},
        )
    if len(said) > LONGEST_COMMENT:
        raise Invalid(
            "Nothing was decided.", fields={"comment": f"At most {LONGEST_COMMENT} characters."}
        )
    Decision.objects.create(
        approval=approval,
        person=decider.person,
        holder=taken.holder,
        verdict=verdict,
        comment=said,
        at=now,
    )
    state = outcome(approval.case())
    if state == State.APPROVED:
        outbox.promise(approval.task, approval.key, request_id=request_id, now=now)
    lent = {"for": str(taken.holder)} if taken.holder != decider.person else {}
    record(
        action="approval.decided",
        subject=f"approval {approval.number}",
        request_id=request_id,
        at=now,
        person=decider.person,
        tenant=approval.tenant,
        facts={"about": approval.subject, "verdict": verdict, "comment": said, **lent},
    )
    if state != State.OPEN:
        why = "Enough people approved." if state == State.APPROVED else "Somebody sent it back."
        end(approval, state, why, request_id, now, decider.person)
    return approval
