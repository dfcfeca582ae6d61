"""Claims as CSV: one line an ask, with names that a spreadsheet can sort by."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final
from uuid import UUID

from devices.asks.claimlist import Search, found, pieces
from devices.models import Claim
from devices.models.claim import ClaimQuerySet
from portal.exports import csv_lines
from tenants.people import names_of

COLUMNS: Final = (
    "id", "name", "tenant", "namespace", "template", "template_version", "words", "classes",
    "state", "code", "since", "asked_by", "requested_at", "expires_at", "released_at", "node",
    "devices", "pods", "note", "request_id",
)  # fmt: skip


def claim_file(
    search: Search, rows: ClaimQuerySet, *, me: UUID, now: datetime, notes: bool
) -> Iterator[str]:
    """The file, piece by piece, in the order of the list; two queries a piece. Without `notes`
    theirs is an empty column.
    """
    yield csv_lines([COLUMNS])
    fitting = found(search, rows, me=me, now=now, notes=notes).whole()
    for piece in pieces(fitting, search.order):
        names = names_of(claim.asked_by for claim in piece)
        yield csv_lines(
            _line(claim, names[claim.asked_by], claim.note if notes else "") for claim in piece
        )


def _line(claim: Claim, asked_by: str, note: str) -> list[object]:
    devices = (f"{one['driver']}/{one['pool']}/{one['device']}" for one in claim.placed)
    return [
        claim.public_id,
        claim.name,
        claim.tenant.slug,
        claim.namespace.name,
        claim.version.template.slug,
        claim.version.number,
        claim.words,
        " ".join(claim.classes),
        claim.state,
        claim.code,
        _stamp(claim.since),
        asked_by,
        _stamp(claim.requested_at),
        _stamp(claim.expires_at),
        _stamp(claim.released_at),
        claim.node,
        " ".join(devices),
        " ".join(pod["name"] for pod in claim.pods),
        note,
        claim.request_id,
    ]


def _stamp(moment: datetime | None) -> str:
    """To the second, in UTC, as spreadsheets read it."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment else ""
