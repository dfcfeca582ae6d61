"""Lending the right to decide while one is away, and taking it back."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.approvals.models import Delegation
from portal.audit.record import record
from portal.errors import Invalid

LONGEST = timedelta(days=60)


@transaction.atomic
def delegate(
    *,
    lender: UUID,
    borrower: UUID,
    starts_at: datetime,
    ends_at: datetime,
    request_id: str,
    now: datetime,
) -> Delegation:
    """`borrower` may decide with the lender's right from `starts_at` to `ends_at`.

    Raises `Invalid` (borrower, starts_at, ends_at). What the lender loses meanwhile, the borrower
    loses too: rights are looked up when deciding, never copied.
    """
    wrong = {}
    if borrower == lender:
        wrong["borrower"] = "Choose somebody else."
    if ends_at <= max(now, starts_at):
        wrong["ends_at"] = "It must end after it starts, and not in the past."
    elif ends_at - starts_at > LONGEST:
        wrong["ends_at"] = f"At most {LONGEST.days} days; lend it again then."
    if wrong:
        raise Invalid("Nothing was lent.", fields=wrong)
    lent = Delegation.objects.create(
        lender=lender, borrower=borrower, starts_at=starts_at, ends_at=ends_at, made_at=now
    )
    record(
        action="approval.delegated",
        subject=f"delegation {lent.pk}",
        request_id=request_id,
        at=now,
        person=lender,
        facts={"to": str(borrower), "from": starts_at.isoformat(), "until": ends_at.isoformat()},
    )
    return lent


@transaction.atomic
def take_back(*, lender: UUID, delegation_id: int, request_id: str, now: datetime) -> None:
    """Ends one's own delegation at once; doing it twice is fine, others' are not found."""
    mine = Delegation.objects.filter(pk=delegation_id, lender=lender, ended_at=None)
    if mine.update(ended_at=now):
        record(
            action="approval.delegation_ended",
            subject=f"delegation {delegation_id}",
            request_id=request_id,
            at=now,
            person=lender,
        )


def in_force(now: datetime) -> QuerySet[Delegation]:
    """Delegations that count at `now`."""
    return Delegation.objects.filter(starts_at__lte=now, ends_at__gt=now).filter(
        Q(ended_at=None) | Q(ended_at__gt=now)
    )
