"""Audit lines as JSON lines or CSV, streamed: the first bytes leave before the last are read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

from portal.audit.models import AuditLine

Names = Callable[[Iterable[UUID | None]], Mapping[UUID | None, str]]

COLUMNS = [
    "number", "at", "source", "person", "name", "tenant", "action", "subject", "request_id",
    "facts", "previous", "digest",
]  # fmt: skip
FORMATS = {"jsonl": "application/jsonl", "csv": "text/csv; charset=utf-8"}


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


def streamed(
    request: HttpRequest, pieces: Iterable[str], *, kind: str, name: str
) -> StreamingHttpResponse:
    """The answer with the file; under ASGI each piece is read in a thread when it is its turn."""
    source = iter(pieces)
    content = _asynchronous(source) if isinstance(request, ASGIRequest) else source
    answer = StreamingHttpResponse(content, content_type=FORMATS[kind])
    answer["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


async def _asynchronous(pieces: Iterator[str]) -> AsyncIterator[str]:
    following = sync_to_async(lambda: next(pieces, None))
    while (piece := await following()) is not None:
        yield piece


def _csv(rows: list[dict[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    for row in rows:
        values = {**row, "facts": json.dumps(row["facts"], ensure_ascii=False)}
        writer.writerow([_harmless(values[column]) for column in COLUMNS])
    return out.getvalue()


def _harmless(value: Any) -> Any:
    """A cell that a spreadsheet would run as a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
