"""News as server-sent events: one reader of Valkey per process, fanned out to its open pages.

A page that comes back within the news that Valkey keeps hears what it missed; any other fetches
everything anew. Rights are looked at again every few seconds, of all open pages together: whoever
lost theirs hears nothing more.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Set
from dataclasses import dataclass, field
from typing import Any

import redis.asyncio
from django.conf import settings
from django.db import Error as DatabaseError
from redis.exceptions import RedisError

from portal.news import KEPT

PING_SECONDS = 15.0
SUBSCRIBED_WITHIN = 5.0
# A page asks again after this; nothing that lasts longer than a deployment should rest on one.
LIFE_SECONDS = 600.0
# So soon whoever lost a right is cut off.
RIGHTS_SECONDS = 5.0
# A reader so far behind is cut off; it comes back and fetches everything anew.
LONGEST_QUEUE = 200

_ID = re.compile(r"(\d{1,19})-(\d{1,19})")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who reads: a person by key, the session they read in, and whose news: a tenant's slug."""

    user: int
    session: str
    of: str


Allowed = Callable[[Set[Viewer]], Awaitable[Set[Viewer]]]


@dataclass(frozen=True, slots=True)
class News:
    """One topic. Only the last of a message carries its id, so that none is lost half-way."""

    topic: str
    id: str = ""


@dataclass(eq=False)
class Reader:
    """One open page, or a program that waits; `viewer` is None for whoever is judged elsewhere."""

    tenant: str
    viewer: Viewer | None = None
    queue: asyncio.Queue[News | None] = field(default_factory=lambda: asyncio.Queue(LONGEST_QUEUE))

    def offer(self, news: News | None) -> None:
        """Queues news, or None for the end; a full queue ends the stream."""
        try:
            self.queue.put_nowait(news)
        except asyncio.QueueFull:
            while not self.queue.empty():
                self.queue.get_nowait()
            self.queue.put_nowait(None)


class Fanout:
    """The readers of this process and the one task that listens for them."""

    def __init__(self) -> None:
        self.readers: set[Reader] = set()
        self.listening: asyncio.Task[None] | None = None
        self.subscribed = asyncio.Event()
        self.last = "0-0"
        self.allowed: Allowed | None = None

    @contextlib.contextmanager
    def reader(self, tenant: str, viewer: Viewer | None = None) -> Iterator[Reader]:
        """A reader of a tenant's news while the block runs."""
        reader = Reader(tenant, viewer)
        self.readers.add(reader)
        if self.listening is None or self.listening.done():
            self.listening = asyncio.create_task(self._listen())
        try:
            yield reader
        finally:
            self.readers.discard(reader)

    async def missed(self, tenant: str, after: str) -> list[News] | None:
        """What a page did not hear since the news `after`; None where that is not kept any more."""
        if not _ID.fullmatch(after):
            return None
        client = _client()
        try:
            oldest = await client.xrange(KEPT, count=1)
            if not oldest or _key(oldest[0][0].decode()) > _key(after):
                return None
            found = await client.xrange(KEPT, min=f"({after}", count=LONGEST_QUEUE + 1)
        except RedisError:
            return None
        finally:
            await client.aclose()
        if len(found) > LONGEST_QUEUE:
            return None
        return [one for number, fields in found for one in _for(tenant, number, fields)]

    async def _listen(self) -> None:
        """Hands news on until nobody reads or Valkey goes away; then every stream ends."""
        client = _client()
        judging = asyncio.create_task(self._judge())
        try:
            newest = await client.xrevrange(KEPT, count=1)
            self.last = newest[0][0].decode() if newest else "0-0"
            self.subscribed.set()
            while self.readers:
                found = await client.xread({KEPT: self.last}, block=int(PING_SECONDS * 1000))
                for _, entries in found:
                    for number, fields in entries:
                        self._hand_on(number, fields)
        except (RedisError, OSError) as error:
            log.warning("news are cut off: %s", error)
        finally:
            # All at once, before anything is waited for: a page that comes while the connection is
            # closed starts a listener of its own, and is not cut off with those before it.
            judging.cancel()
            self.subscribed.clear()
            self.listening = None
            for reader in list(self.readers):
                reader.offer(None)
            await client.aclose()

    def _hand_on(self, number: bytes, fields: dict[bytes, bytes]) -> None:
        self.last = number.decode()
        told: dict[str, list[News]] = {}
        for reader in self.readers:
            if reader.tenant not in told:
                told[reader.tenant] = _for(reader.tenant, number, fields)
            for one in told[reader.tenant]:
                reader.offer(one)

    async def _judge(self) -> None:
        """Ends the streams of those who may read no more. Where nobody can say, all go on: the
        pages themselves ask for their rights at every fetch.
        """
        while True:
            await asyncio.sleep(RIGHTS_SECONDS)
            viewers = {reader.viewer for reader in self.readers if reader.viewer is not None}
            if not viewers or self.allowed is None:
                continue
            try:
                allowed = await self.allowed(viewers)
            except DatabaseError:
                log.exception("rights of open pages were not looked at")
                continue
            for reader in list(self.readers):
                if reader.viewer in viewers and reader.viewer not in allowed:
                    reader.offer(None)


FANOUT = Fanout()


def _client() -> Any:
    """Untyped: the library leaves open what each answer is."""
    return redis.asyncio.Redis.from_url(
        settings.VALKEY_URL, socket_connect_timeout=2, socket_timeout=PING_SECONDS + 5
    )


def _key(number: str) -> tuple[int, int]:
    before, _, after = number.partition("-")
    return int(before), int(after)


def _for(tenant: str, number: bytes, fields: dict[bytes, bytes]) -> list[News]:
    """What of one message concerns a tenant's pages."""
    news = json.loads(fields[b"news"])
    if news["tenant"] not in {"", tenant} or not news["topics"]:
        return []
    *others, last = news["topics"]
    return [*map(News, others), News(last, number.decode())]


def event(name: str, number: str = "") -> bytes:
    """One server-sent event; its data is only the moment, for the page fetches what it shows."""
    head = f"id: {number}\n" if number else ""
    return f"{head}event: {name}\ndata: {int(time.time())}\n\n".encode()


async def stream(
    tenant: str, *, viewer: Viewer | None = None, after: str = ""
) -> AsyncIterator[bytes]:
    """Events for one open page: `ready` (fetch everything) or what it missed since `after`, then
    topics as they come, `ping` in between.
    """
    end = time.monotonic() + LIFE_SECONDS
    with FANOUT.reader(tenant, viewer) as reader:
        # Only now: a page fetches everything when it hears this, and hears all that comes after.
        try:
            await asyncio.wait_for(FANOUT.subscribed.wait(), SUBSCRIBED_WITHIN)
        except TimeoutError:
            return
        missed = await FANOUT.missed(tenant, after) if after else None
        heard = after if missed is not None else "0-0"
        yield b"retry: 2000\n\n"
        if missed is None:
            yield event("ready", FANOUT.last)
        else:
            yield event("resumed")
            for one in missed:
                heard = one.id or heard
                yield event(one.topic, one.id)
        while time.monotonic() < end:
            try:
                news = await asyncio.wait_for(reader.queue.get(), PING_SECONDS)
            except TimeoutError:
                yield event("ping")
                continue
            if news is None:
                return
            # What came while the missed ones were read is among them already.
            if not news.id or _key(news.id) > _key(heard):
                yield event(news.topic, news.id)
