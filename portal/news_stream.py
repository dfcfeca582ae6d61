"""News as server-sent events: one Valkey subscription per process, fanned out to its open pages."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import redis.asyncio
from django.conf import settings
from redis.exceptions import RedisError

from portal.news import CHANNEL

PING_SECONDS = 15.0
SUBSCRIBED_WITHIN = 5.0
# A page asks again after this; only then is it noticed that somebody left the tenant.
LIFE_SECONDS = 600.0
# A reader so far behind is cut off; it comes back and fetches everything anew.
LONGEST_QUEUE = 200

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Reader:
    """One open page."""

    tenant: str
    queue: asyncio.Queue[str | None] = field(default_factory=lambda: asyncio.Queue(LONGEST_QUEUE))

    def offer(self, topic: str | None) -> None:
        """Queues a topic, or None for the end; a full queue ends the stream."""
        try:
            self.queue.put_nowait(topic)
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

    @contextlib.contextmanager
    def reader(self, tenant: str) -> Iterator[Reader]:
        """A reader of a tenant's news while the block runs."""
        reader = Reader(tenant)
        self.readers.add(reader)
        if self.listening is None or self.listening.done():
            self.listening = asyncio.create_task(self._listen())
        try:
            yield reader
        finally:
            self.readers.discard(reader)

    async def _listen(self) -> None:
        """Hands news on until nobody reads or Valkey goes away; then every stream ends."""
        client = redis.asyncio.Redis.from_url(settings.VALKEY_URL, socket_connect_timeout=2)
        try:
            async with client.pubsub() as channel:
                await channel.subscribe(CHANNEL)
                while self.readers:
                    message = await channel.get_message(timeout=PING_SECONDS)
                    if message is None:
                        continue
                    if message["type"] == "message":
                        self._hand_on(message["data"])
                    else:
                        self.subscribed.set()
        except (RedisError, OSError) as error:
            log.warning("news are cut off: %s", error)
        finally:
            self.subscribed.clear()
            await client.aclose()
            for reader in list(self.readers):
                reader.offer(None)

    def _hand_on(self, data: bytes) -> None:
        news = json.loads(data)
        for reader in self.readers:
            if news["tenant"] in {"", reader.tenant}:
                for topic in news["topics"]:
                    reader.offer(topic)


FANOUT = Fanout()


def event(name: str) -> bytes:
    """One server-sent event; its data is only the moment, for the page fetches what it shows."""
    return f"event: {name}\ndata: {int(time.time())}\n\n".encode()


async def stream(tenant: str) -> AsyncIterator[bytes]:
    """Events for one open page: `ready`, topics as they come, `ping` in between."""
    end = time.monotonic() + LIFE_SECONDS
    with FANOUT.reader(tenant) as reader:
        # Only now: a page fetches everything when it hears this, and hears all that comes after.
        try:
            await asyncio.wait_for(FANOUT.subscribed.wait(), SUBSCRIBED_WITHIN)
        except TimeoutError:
            return
        yield b"retry: 2000\n\n" + event("ready")
        while time.monotonic() < end:
            try:
                topic = await asyncio.wait_for(reader.queue.get(), PING_SECONDS)
            except TimeoutError:
                yield event("ping")
                continue
            if topic is None:
                return
            yield event(topic)
