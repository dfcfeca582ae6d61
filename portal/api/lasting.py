"""Answers that last: a long poll, and a stream that says what changed.

Both ask an ordinary operation again and again, so signing in, rights and shapes are those of that
operation, each time anew; news only hurry them. Between two looks no thread and no connection to
the database is held.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from rest_framework.negotiation import DefaultContentNegotiation

from portal.news_stream import FANOUT, Reader

Look = Callable[..., HttpResponseBase]
#: News may be lost, so one looks again after so many seconds even without.
AGAIN_AFTER = 5.0
PING_AFTER = 15.0
#: News come in bursts; so long one waits for the rest of one.
TOGETHER = 0.1
LONGEST_WAIT = 60
LONGEST_WATCH = 600
LAST_SEEN = "HTTP_LAST_EVENT_ID"


class WhateverIsAccepted(DefaultContentNegotiation):
    """For what is told as events: whoever accepts those gets problems as JSON all the same."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: Any = None) -> Any:
        return renderers[0], renderers[0].media_type


async def long_poll(
    look: Look, request: HttpRequest, *, seconds: float, settled: Callable[[Any], bool], **at: str
) -> HttpResponseBase:
    """The first answer that is settled (or no 200), else the last one after so many seconds."""
    end = time.monotonic() + seconds
    answer = await _looked(look, request, at)
    if answer.status_code != 200 or seconds <= 0 or settled(_read(answer)):
        return answer
    with FANOUT.reader(at["slug"]) as reader:
        while True:
            await _news(reader, min(AGAIN_AFTER, end - time.monotonic()))
            answer = await _looked(look, request, at)
            over = time.monotonic() >= end
            if answer.status_code != 200 or settled(_read(answer)) or over:
                return answer


async def watching(
    look: Look, request: HttpRequest, *, seconds: float, **at: str
) -> HttpResponseBase:
    """Server-sent events made of `look`, which answers {"seen": …, "rows": [{…}]}.

    Each row is an event `claim`; after them `seen` carries the id from which to go on. A row that
    this stream has told already, by id and revision, is left out. Ends with `end` and the problem
    where the caller may not look any more.
    """
    first = await _looked(look, request, at)
    if first.status_code != 200:
        return first
    response = StreamingHttpResponse(
        _events(look, request, _read(first), time.monotonic() + seconds, at),
        content_type="text/event-stream",
    )
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


async def _events(
    look: Look, request: HttpRequest, found: Any, end: float, at: dict[str, str]
) -> AsyncIterator[bytes]:
    told: dict[str, int] = {}
    yield b"retry: 2000\n\n"
    with FANOUT.reader(at["slug"]) as reader:
        while True:
            for row in found["rows"]:
                if told.get(row["id"]) != row["revision"]:
                    told[row["id"]] = row["revision"]
                    yield _event("claim", row)
            yield _event("seen", {"id": found["seen"]}, number=found["seen"])
            left = end - time.monotonic()
            if left <= 0:
                return
            await _news(reader, min(PING_AFTER, left))
            request.META[LAST_SEEN] = found["seen"]
            answer = await _looked(look, request, at)
            if answer.status_code != 200:
                yield _event("end", _read(answer))
                return
            found = _read(answer)


async def _news(reader: Reader, seconds: float) -> None:
    """Returns when something happened in the tenant, or after so many seconds."""
    if seconds <= 0:
        return
    end = time.monotonic() + seconds
    try:
        topic = await asyncio.wait_for(reader.queue.get(), seconds)
        if topic is None:  # cut off: nothing will be heard, so one looks by the clock
            await asyncio.sleep(min(1.0, end - time.monotonic()))
        await asyncio.sleep(TOGETHER)
    except TimeoutError:
        return
    while not reader.queue.empty():
        reader.queue.get_nowait()


async def _looked(look: Look, request: HttpRequest, at: dict[str, str]) -> HttpResponseBase:
    def looked() -> HttpResponseBase:
        answer = look(request, **at)
        render = getattr(answer, "render", None)
        if render is not None:
            render()
        if not connection.in_atomic_block:
            connection.close()
        return answer

    return await sync_to_async(looked)()


def _read(answer: HttpResponseBase) -> Any:
    return json.loads(getattr(answer, "content", b"null"))


def _event(name: str, data: Any, *, number: str = "") -> bytes:
    head = f"id: {number}\n" if number else ""
    return f"{head}event: {name}\ndata: {json.dumps(data)}\n\n".encode()
