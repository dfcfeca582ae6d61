"""Verbs of those who ask: ask, void, refresh; and the sweep that ends what nobody decided."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from portal.approvals.models import Approval
from portal.approvals.rules import DecidedBy, Effect, Line, State, digest
from portal.audit.record import record
from portal.errors import Invalid, NotPermitted, Refused

WEEK = timedelta(days=7)
LONGEST = timedelta(days=60)


class AlreadyAsked(Refused):
    """There is an open approval for the same subject; facts name it."""

    code = "ALREADY_ASKED"


@transaction.atomic
def ask(
    *,
    kind: str,
    subject: str,
    title: str,
    lines: Iterable[Line],
    by: DecidedBy,
    author: UUID,
    task: str,
    key: str,
    request_id: str,
    now: datetime,
    effects: Iterable[Effect] = (),
    tenant: str = "",
    reason: str = "",
    needed: int = 1,
    lasts: timedelta = WEEK,
    coauthors: Iterable[UUID] = (),
    address: str = "",
) -> Approval:
    """Opens an approval. Call it in the transaction of the row that waits for it.

    Once `needed` people approved, `task` is promised with `key` (portal.outbox), in the transaction
    of the last decision; the task must look up the approval, act once, and settle its lines.
    `coauthors` had a hand in it and decide as little as the author; `address` is the page on which
    what is asked for can be looked at.
    Raises `Invalid` (title, lines, by, needed, lasts) and `AlreadyAsked`.
    """
    content = list(lines)
    wrong = {}
    if not title.strip():
        wrong["title"] = "Say in a few words what is asked for."
    if not any(line.changed for line in content):
        wrong["lines"] = "Nothing would change, so there is nothing to approve."
    if not by.platform and not (by.tenant and by.roles):
        wrong["by"] = "Somebody must be able to decide."
    if needed < 1:
        wrong["needed"] = "At least one."
    if not timedelta(0) < lasts <= LONGEST:
        wrong["lasts"] = f"At most {LONGEST.days} days."
    if wrong:
        raise Invalid("Nothing was asked for.", fields=wrong)
    open_one = Approval.objects.filter(kind=kind, subject=subject, state=State.OPEN).first()
    if open_one is not None:
        raise AlreadyAsked(
            f"{open_one.number} asks about {subject} already; decide or withdraw it first.",
            approval=open_one.number,
        )
    seen = list(effects)
    approval = Approval.objects.create(
        kind=kind,
        subject=subject,
        title=title.strip(),
        tenant=tenant,
        lines=[asdict(line) for line in content],
        effects=[asdict(effect) for effect in seen],
        effects_at=now if seen else None,
        digest=digest(kind, subject, content),
        needed=needed,
        platform_roles=sorted(by.platform),
        decided_by_tenant=by.tenant,
        tenant_roles=sorted(by.roles),
        author=author,
        coauthors=sorted(set(coauthors) - {author}),
        address=address,
        reason=reason.strip(),
        asked_at=now,
        expires_at=now + lasts,
        task=task,
        key=key,
        request_id=request_id,
    )
    record(
        action="approval.asked",
        subject=f"approval {approval.number}",
        request_id=request_id,
        at=now,
        person=author,
        tenant=tenant,
        facts={"about": subject, "kind": kind, "digest": approval.digest, "needed": needed},
    )
    return approval


def refresh(
    *, kind: str, subject: str, digest: str, request_id: str, now: datetime
) -> Approval | None:
    """Says how `subject` stands now: an open approval of anything else is void, with its decisions.

    Call it in the transaction that changes the subject, with `rules.digest` of what would be asked
    for now (or any other text where the subject is gone). Returns the approval that it voided.
    """
    with transaction.atomic():
        approval = (
            Approval.objects.select_for_update()
            .filter(kind=kind, subject=subject, state=State.OPEN)
            .exclude(digest=digest)
            .first()
        )
        if approval is not None:
            end(approval, State.VOID, "What was asked for changed.", request_id, now)
        return approval


@transaction.atomic
def withdraw(*, approval_id: int, person: UUID, request_id: str, now: datetime) -> Approval:
    """The author takes the request back. Raises `NotPermitted`; `Refused` where it has ended."""
    approval = Approval.objects.select_for_update().get(pk=approval_id)
    if approval.author != person:
        raise NotPermitted("Only its author can withdraw it.", code="NOT_YOUR_REQUEST")
    if approval.state != State.OPEN:
        raise Refused(f"It is {approval.state} already.", code="APPROVAL_NOT_OPEN")
    end(approval, State.VOID, "Its author withdrew it.", request_id, now, person)
    return approval


@transaction.atomic
def void(*, approval_id: int, why: str, request_id: str, now: datetime) -> None:
    """Berth ends it because its subject went away or was ended otherwise; ended ones stay."""
    approval = Approval.objects.select_for_update().get(pk=approval_id)
    if approval.state == State.OPEN:
        end(approval, State.VOID, why, request_id, now)


def expire_due(now: datetime) -> int:
    """Ends open approvals whose time is over; returns how many."""
    with transaction.atomic():
        due = list(
            Approval.objects.select_for_update(skip_locked=True).filter(
                state=State.OPEN, expires_at__lte=now
            )[:200]
        )
        for approval in due:
            end(approval, State.EXPIRED, "Nobody decided in time.", approval.request_id, now)
    return len(due)


def end(
    approval: Approval,
    state: State,
    why: str,
    request_id: str,
    now: datetime,
    person: UUID | None = None,
) -> None:
    """Writes an end and its audit line; the caller holds the row's lock."""
    approval.state, approval.ended_at, approval.ended_why = state, now, why
    approval.save(update_fields=["state", "ended_at", "ended_why"])
    record(
        action=f"approval.{state}",
        subject=f"approval {approval.number}",
        request_id=request_id,
        at=now,
        person=person,
        tenant=approval.tenant,
        facts={"about": approval.subject, "digest": approval.digest, "why": why},
    )
