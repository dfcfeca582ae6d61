"""The one writer of the mirror: takes what the readers saw, stores it in batches, passes news on.

One thread and one database connection for all kinds: what one kind waits for, all wait for, and the
order in which a kind's changes were seen is the order in which they are stored.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from django.db import connection

from devices.mirror.kinds import MIRRORED
from devices.mirror.leadership import LeadershipLost
from devices.mirror.rows import Row
from devices.mirror.store import Batch, Changed, Store
from devices.watching.parts import DATABASE_AWAY, Part, pauses

# A change waits at most so long for others to share its transaction.
BATCH_SECONDS = 0.05
BATCH_EVENTS = 200
# Heartbeats (leases of nodes) are collected for so long: 5,000 nodes renew 500 times a second.
QUIET_SECONDS = 5.0
ALIVE_SECONDS = 5.0
DROP_SECONDS = 3600.0
# Changes read but not yet stored; when it is full, readers wait, and the API server holds the rest.
WAITING = 2000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """One line of a watch. `row` None: the object is gone; an empty uid: a bookmark."""

    kind: str
    version: str
    uid: str = ""
    row: Row | None = None


Job = Callable[[Store], list[Changed]]


class Writer(Part):
    """Stores Seen lines in batches, and runs Jobs between them, in the order of their arrival.

    `alive` says which kinds' watches are open now; `news` gets what was stored.
    """

    def __init__(
        self,
        store: Store,
        news: Callable[[Sequence[Changed]], None],
        alive: Callable[[], Collection[str]],
        stop: threading.Event,
    ):
        super().__init__("writer", stop)
        self._store = store
        self._news = news
        self._alive = alive
        self._queue: queue.Queue[Seen | Job] = queue.Queue(maxsize=WAITING)
        self._batches: dict[str, Batch] = {}
        self._quiet: dict[str, Batch] = {}
        self._count = 0

    def put(self, item: Seen | Job) -> None:
        """Hands over; waits while the writer is behind, gives up when all stops."""
        while not self.stop.is_set():
            try:
                return self._queue.put(item, timeout=0.5)
            except queue.Full:
                continue

    def end(self, seconds: float) -> None:
        """Lets the write that is under way finish, when all has been told to stop."""
        with contextlib.suppress(queue.Full):
            self._queue.put_nowait(_nothing)
        self.join(seconds)

    def work(self) -> None:
        quiet_at = alive_at = time.monotonic()
        drop_at = time.monotonic() + DROP_SECONDS
        while not self.stop.is_set():
            self._collect()
            now = time.monotonic()
            if now - quiet_at >= QUIET_SECONDS:
                self._batches.update(self._quiet)
                self._quiet, quiet_at = {}, now
            self._flush()
            if now - alive_at >= ALIVE_SECONDS and self._queue.qsize() < BATCH_EVENTS:
                self._persist(self._stay_alive)
                alive_at = now
            if now >= drop_at:
                self._persist(_drop_old)
                drop_at = now + DROP_SECONDS

    def _collect(self) -> None:
        """Fills the batches for a moment; a Job in between is run after what came before it."""
        end = time.monotonic() + 0.5
        while self._count < BATCH_EVENTS and (left := end - time.monotonic()) > 0:
            try:
                item = self._queue.get(timeout=left)
            except queue.Empty:
                return
            if isinstance(item, Seen):
                self._add(item)
                if self._count == 1:
                    end = min(end, time.monotonic() + BATCH_SECONDS)
            else:
                self._flush()
                self._persist(item)

    def _add(self, seen: Seen) -> None:
        batches = self._quiet if MIRRORED[seen.kind].quiet else self._batches
        batch = batches.setdefault(seen.kind, Batch(seen.kind))
        batch.version = seen.version
        if seen.uid:
            batch.rows[seen.uid] = seen.row
        if batches is self._batches:
            self._count += 1

    def _flush(self) -> None:
        if self._batches:
            batches = list(self._batches.values())
            self._batches, self._count = {}, 0
            self._persist(lambda store: store.put_changes(batches))

    def _stay_alive(self, store: Store) -> list[Changed]:
        if kinds := sorted(self._alive()):
            store.alive(kinds)
        return []

    def _persist(self, job: Job) -> None:
        """Runs a job until the database took it; every job may be run twice."""
        waits = pauses(0.2, 5.0)
        while not self.stop.is_set():
            try:
                changed = job(self._store)
            except DATABASE_AWAY as error:
                log.warning("The database does not answer: %s", error)
                connection.close()
                self.stop.wait(next(waits))
            except LeadershipLost as error:
                log.warning("%s; another process leads now", error)
                self.stop.set()
            else:
                if changed:
                    self._news(changed)
                return


def _nothing(store: Store) -> list[Changed]:
    return []


def _drop_old(store: Store) -> list[Changed]:
    store.drop_old()
    return []
