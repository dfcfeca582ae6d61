"""Files that leave while they are made: the first bytes go before the last rows are read."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, StreamingHttpResponse

FORMATS = {
    "jsonl": "application/jsonl",
    "csv": "text/csv; charset=utf-8",
    "tar": "application/x-tar",
}
Piece = TypeVar("Piece", str, bytes)


def streamed(
    request: HttpRequest, pieces: Iterable[Piece], *, kind: str, name: str
) -> StreamingHttpResponse:
    """The answer with the file; under ASGI each piece is read in a thread when it is its turn."""
    source = iter(pieces)
    content = _asynchronous(source) if isinstance(request, ASGIRequest) else source
    answer = StreamingHttpResponse(content, content_type=FORMATS[kind])
    answer["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    answer["Cache-Control"] = "no-store"
    answer["X-Accel-Buffering"] = "no"
    return answer


def csv_lines(rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV text, each cell one that no spreadsheet runs."""
    out = io.StringIO()
    writer = csv.writer(out)
    for row in rows:
        writer.writerow([_harmless(cell) for cell in row])
    return out.getvalue()


async def _asynchronous(pieces: Iterator[Piece]) -> AsyncIterator[Piece]:
    following = sync_to_async(lambda: next(pieces, None))
    while (piece := await following()) is not None:
        yield piece


def _harmless(value: Any) -> Any:
    """A cell that a spreadsheet would run as a formula gets an apostrophe before it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in "=+-@\t\r" and value else value
