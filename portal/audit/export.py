"""Audit lines as JSON lines or CSV, piece by piece."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from portal.audit.models import AuditLine
from portal.exports import csv_lines

Names = Callable[[Iterable[UUID | None]], Mapping[UUID | None, str]]

#: The files that there are; the first is what is given unasked.
KINDS = ("jsonl", "csv")
COLUMNS = [
    "number", "at", "source", "person", "name", "tenant", "action", "subject", "request_id",
    "facts", "previous", "digest",
]  # fmt: skip


def as_row(line: AuditLine, name: str) -> dict[str, Any]:
    """One line as JSON values. `name` is what its person is called today; the chain has ids."""
    return {
        "number": line.number,
        "at": line.at.isoformat(),
        "source": line.source or "berth",
        "person": str(line.person) if line.person else None,
        "name": name,
        "tenant": line.tenant,
        "action": line.action,
        "subject": line.subject,
        "request_id": line.request_id,
        "facts": line.facts,
        "previous": line.previous,
        "digest": line.digest,
    }


def texts(pieces: Iterable[list[AuditLine]], kind: str, names: Names) -> Iterator[str]:
    """The file, piece by piece; `names` is asked once a piece."""
    if kind == "csv":
        yield ",".join(COLUMNS) + "\r\n"
    for piece in pieces:
        known = names(line.person for line in piece)
        rows = [as_row(line, known[line.person]) for line in piece]
        if kind == "csv":
            yield _csv(rows)
        else:
            yield "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _csv(rows: list[dict[str, Any]]) -> str:
    told = ({**row, "facts": json.dumps(row["facts"], ensure_ascii=False)} for row in rows)
    return csv_lines([row[column] for column in COLUMNS] for row in told)
