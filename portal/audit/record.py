"""Writing and proving audit lines."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from portal.audit.chain import GENESIS, Break, digest, first_break
from portal.audit.models import AuditLine

# Any fixed number: it names the one lock under which a line gets its number and its digest.
CHAIN_LOCK = 0x42657274


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
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            "an audit line belongs into the act's transaction"
        )
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CHAIN_LOCK])
    last = AuditLine.objects.order_by("-number").values_list("number", "digest").first()
    number, previous = (last[0] + 1, last[1]) if last else (1, GENESIS)
    line = AuditLine(
        number=number,
        at=at,
        person=person,
        tenant=tenant,
        action=action,
        subject=subject,
        request_id=request_id,
        facts=dict(facts or {}),
        previous=previous,
    )
    line.digest = digest(previous, line.content())
    line.save(force_insert=True)
    return line


def verify() -> Break | None:
    """Walks the whole chain; None where every line proves."""

    def lines() -> Iterator[tuple[int, str, str, Mapping[str, Any]]]:
        for line in AuditLine.objects.order_by("number").iterator(chunk_size=2000):
            yield line.number, line.previous, line.digest, line.content()

    return first_break(lines())
