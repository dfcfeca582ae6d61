"""Finding audit lines: filters that indexes serve, and pages by number, fast at any length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet

from portal.audit.models import AuditLine

PAGE_SIZE = 50
CHUNK = 2000
SLACK = timedelta(hours=1)
"""Clocks differ, so a line's time may run ahead of its neighbours by so much, never by more."""


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for; None and empty do not narrow."""

    tenant: str | None = None
    person: UUID | None = None
    action: str = ""
    subject: str = ""
    request_id: str = ""
    source: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Lines, newest first, and the numbers that lead on; None where there is nothing there."""

    lines: tuple[AuditLine, ...]
    older: int | None
    newer: int | None


def found(search: Search) -> QuerySet[AuditLine]:
    """Everything that fits, newest first.

    `action` may be a family ("claim" finds claim.asked and claim.released); `subject` is exact
    ("claim 7fq2x4m8") or a kind ("claim").
    """
    rows = AuditLine.objects.order_by("-number")
    if search.tenant is not None:
        rows = rows.filter(tenant=search.tenant)
    if search.person is not None:
        rows = rows.filter(person=search.person)
    if search.action:
        exact = "." in search.action
        rows = rows.filter(
            **{"action" if exact else "action__startswith": search.action + ("" if exact else ".")}
        )
    if search.subject:
        exact = " " in search.subject
        rows = rows.filter(
            **{
                "subject" if exact else "subject__startswith": search.subject
                + ("" if exact else " ")
            }
        )
    if search.request_id:
        rows = rows.filter(request_id=search.request_id)
    if search.source:
        rows = rows.filter(source="" if search.source == "berth" else search.source)
    return _between(rows, search.since, search.until)


def page(search: Search, *, before: int | None = None, after: int | None = None) -> Page:
    """One page: the lines below `before`, or those above `after`, or the newest ones."""
    rows = found(search)
    if after is not None:
        # Upwards from there, so that "newer" ends where it came from.
        above = list(rows.filter(number__gt=after).order_by("number")[: PAGE_SIZE + 1])
        lines = above[:PAGE_SIZE][::-1]
        more_above, more_below = len(above) > PAGE_SIZE, True
    else:
        below = list((rows if before is None else rows.filter(number__lt=before))[: PAGE_SIZE + 1])
        lines = below[:PAGE_SIZE]
        more_above, more_below = before is not None, len(below) > PAGE_SIZE
    if not lines:
        return Page((), None, None)
    return Page(
        tuple(lines),
        lines[-1].number if more_below else None,
        lines[0].number if more_above else None,
    )


def chunks(search: Search) -> Iterator[list[AuditLine]]:
    """Everything that fits, oldest first, piece by piece; lines written meanwhile come too.

    Each piece is a query of its own, so that a long export holds no transaction.
    """
    rows, last = found(search).order_by("number"), 0
    while piece := list(rows.filter(number__gt=last)[:CHUNK]):
        yield piece
        last = piece[-1].number


def _between(
    rows: QuerySet[AuditLine], since: datetime | None, until: datetime | None
) -> QuerySet[AuditLine]:
    """Narrows to a time; by number first, so that an old hour needs no walk through newer lines."""
    if since is not None:
        first = _nearest(since - SLACK)
        rows = rows.filter(at__gte=since)
        rows = rows.none() if first is None else rows.filter(number__gte=first - 1)
    if until is not None:
        last = _nearest(until + SLACK)
        rows = rows.filter(at__lt=until)
        rows = rows if last is None else rows.filter(number__lte=last)
    return rows


def _nearest(moment: datetime) -> int | None:
    """The number of the first line at or after a moment, or None where there is none."""
    later = AuditLine.objects.filter(at__gte=moment).order_by("at")
    return later.values_list("number", flat=True).first()
