"""Writing and proving audit lines."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from portal.audit.chain import GENESIS, Break, Line, breaks, digest
from portal.audit.models import AuditLine

# Any fixed number: it names the one lock under which a line gets its number and its digest.
CHAIN_LOCK = 0x42657274
CLUSTER = "cluster"


def record(
    *,
    action: str,
    subject: str,
    request_id: str,
    at: datetime,
    person: uuid.UUID | None = None,
    tenant: str = "",
    facts: Mapping[str, Any] | None = None,
) -> AuditLine:
    """Appends one line in the caller's transaction.

    Call it last in a verb: the chain's lock is held until the transaction ends. Raises
    `TransactionManagementError` outside of a transaction.
    """
    line = AuditLine(
        at=at,
        person=person,
        tenant=tenant,
        action=action,
        subject=subject,
        request_id=request_id,
        facts=dict(facts or {}),
    )
    _lock()
    return _append(line)


def record_observed(
    *,
    action: str,
    subject: str,
    origin: str,
    at: datetime,
    tenant: str = "",
    request_id: str = "",
    facts: Mapping[str, Any] | None = None,
) -> AuditLine | None:
    """Appends what only the cluster knows: somebody did it with kubectl, going round Berth.

    `origin` names what was seen, such as "<uid>/<resourceVersion>/deleted"; the same is written
    once, however often the watch brings it, and None comes back then. In the caller's transaction.
    """
    line = AuditLine(
        at=at,
        tenant=tenant,
        action=action,
        subject=subject,
        request_id=request_id,
        facts=dict(facts or {}),
        source=CLUSTER,
        origin=origin,
    )
    _lock()
    if AuditLine.objects.filter(origin=origin).exists():
        return None
    return _append(line)


def all_breaks() -> Iterator[Break]:
    """Every break of the whole chain, from its beginning."""
    return breaks(_lines(), _place_of)


def head() -> tuple[int, str]:
    """The newest line's number and digest; kept elsewhere, they prove that no end was cut off."""
    last = AuditLine.objects.order_by("-number").values_list("number", "digest").first()
    return last or (0, GENESIS)


def _lock() -> None:
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "an audit line belongs into the act's transaction"
        )
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHAIN_LOCK])


def _append(line: AuditLine) -> AuditLine:
    number, line.previous = head()
    line.number = number + 1
    line.digest = digest(line.previous, line.content())
    line.save(force_insert=True)
    return line


def _lines() -> Iterator[Line]:
    for line in AuditLine.objects.order_by("number").iterator(chunk_size=2000):
        yield line.number, line.previous, line.digest, line.content()


def _place_of(digest: str) -> int | None:
    found = AuditLine.objects.filter(digest=digest).values_list("number", flat=True)
    return found.first()
