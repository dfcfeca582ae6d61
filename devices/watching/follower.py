"""Follows one kind: list, watch from where the list ended, resume after a cut, or list again.

Reads only; what it sees goes to the writer. It remembers nothing but the last version it saw.
"""

from __future__ import annotations

import logging
import threading

from devices.cluster.gateway import (
    Change,
    ClusterError,
    Expired,
    Forbidden,
    Gateway,
    NotServed,
    RawWatch,
)
from devices.cluster.kinds import KINDS
from devices.mirror.kinds import Mirrored
from devices.mirror.reader import bookmark
from devices.mirror.rows import Row
from devices.mirror.store import Changed, Store
from devices.watching.parts import Part, pauses
from devices.watching.writer import Seen, Writer
from portal import metrics

# How long one watch lasts before it is opened anew; the server ends it in order.
WATCH_SECONDS = 290
# A kind that is not served, or that we may not read, is asked for again after so long.
ABSENT_SECONDS = 60.0
FORBIDDEN_SECONDS = 20.0
# A cluster that was away is followed again so soon after it is back.
LONGEST_PAUSE = 5.0
# Pages read and not yet stored: keeps memory flat however slow the database is.
PAGES_AHEAD = 3

log = logging.getLogger(__name__)


class Follower(Part):
    """One kind's list and watch. `open` is True while its watch stands."""

    def __init__(
        self,
        gateway: Gateway,
        mirrored: Mirrored,
        writer: Writer,
        stop: threading.Event,
        *,
        version: str = "",
        listing: threading.Semaphore,
    ):
        super().__init__(f"follow {mirrored.kind}", stop)
        self.kind = mirrored.kind
        self.open = False
        self.listed = threading.Event()
        if version:
            self.listed.set()
        self._gateway = gateway
        self._mirrored = mirrored
        self._writer = writer
        self._version = version
        self._api_version = ""
        self._listing = listing
        self._pages = threading.Semaphore(PAGES_AHEAD)
        self._watch: RawWatch | None = None
        self._heard = 0
        self._troubled = True  # whatever an earlier process noted is over once the watch is open
        # A version out of the database may be of another past of the cluster.
        self._doubtful = bool(version)

    def hang_up(self) -> None:
        """Ends the watch that the thread may be waiting in."""
        if watch := self._watch:
            watch.close()

    def work(self) -> None:
        waits = pauses(longest=LONGEST_PAUSE)
        while not self.stop.is_set():
            heard = self._heard
            try:
                if self._doubtful and self._went_back():
                    self._version = ""
                if not self._version:
                    with self._listing:
                        self._version = self._list()
                self._follow()
            except ClusterError as error:
                if self._heard > heard:
                    waits = pauses(longest=LONGEST_PAUSE)
                self.stop.wait(self._trouble(error) or error.retry_after or next(waits))
            finally:
                self.open = False

    def _trouble(self, error: ClusterError) -> float | None:
        """Notes what is wrong; returns seconds to wait where they do not grow with each attempt."""
        kind = self.kind
        match error:
            case Expired():
                log.info("%s: the history is gone, listing anew", kind)
                self._version = ""
                return 0.1
            case NotServed() if self._is_absent():
                self._version = ""
                self._writer.put(lambda store: _absent(store, kind))
                self.listed.set()
                return ABSENT_SECONDS
        log.warning("%s", error)
        self._doubtful = self._troubled = True
        text = str(error)
        self._writer.put(lambda store: _noted(store, kind, text))
        if isinstance(error, Forbidden):
            self.listed.set()
            return FORBIDDEN_SECONDS
        return None

    def _is_absent(self) -> bool:
        """Whether discovery agrees: a 404 may also be somebody's on the way to the API server."""
        known = KINDS[self.kind]
        try:
            versions = self._gateway.served().versions(known.group, known.name)
        except ClusterError:
            return False
        return not set(versions) & set(known.versions)

    def _list(self) -> str:
        """Every object, page by page, to the writer; returns the version to watch from."""
        metrics.WATCH_LISTS.labels(self.kind).inc()
        seen: list[str] = []
        version = ""
        for page in self._gateway.pages(self.kind, namespace=self._mirrored.namespace):
            self._api_version = page.api_version
            read = [self._read(bytes(raw), page.api_version) for raw in page.items]
            rows = [row for _, _, row in read if row is not None]
            seen += [row.uid for row in rows]
            version = page.version
            self._store_page(rows)
            if self.stop.is_set():
                return ""
        kind, api_version = self.kind, self._api_version

        def end(store: Store) -> list[Changed]:
            gone = store.end_list(kind, seen, version=version, api_version=api_version)
            self.listed.set()
            return gone

        self._writer.put(end)
        return version

    def _store_page(self, rows: list[Row]) -> None:
        while not self._pages.acquire(timeout=0.5):
            if self.stop.is_set():
                return

        def put(store: Store) -> list[Changed]:
            changed = store.put_page(rows)
            self._pages.release()
            return changed

        self._writer.put(put)

    def _read(self, raw: bytes, api_version: str = "") -> tuple[str, str, Row | None]:
        """As Reader.read; nothing of an object that is no JSON, which must not stop the others."""
        try:
            return self._mirrored.reader.read(raw, api_version)
        except ValueError as error:
            log.error("An object of kind %s cannot be read: %s", self.kind, error)
            return "", "", None

    def _went_back(self) -> bool:
        """True where the cluster is at an earlier version than we saw: it was restored or replaced.

        A watch from a version that is still to come would stay silent until then.
        """
        if self._version:
            pages = self._gateway.pages(self.kind, namespace=self._mirrored.namespace, size=1)
            newest = next(iter(pages)).version
            if int(newest) < int(self._version):
                log.warning("%s: at %s, behind %s: listing anew", self.kind, newest, self._version)
                return True
        self._doubtful = False
        return False

    def _follow(self) -> None:
        """One watch, to its end; `_version` follows every whole line."""
        self._watch = self._gateway.stream(
            self.kind,
            self._version,
            namespace=self._mirrored.namespace,
            timeout_seconds=WATCH_SECONDS,
        )
        self.open = True
        if self._troubled:
            self._troubled = False
            self._writer.put(lambda store: _noted(store, self.kind, ""))
        if self.stop.is_set():
            self._watch.close()
        for event in self._watch:
            self._heard += 1
            metrics.WATCH_EVENTS.labels(self.kind, event.change.value).inc()
            if event.change is Change.BOOKMARK:
                seen = Seen(self.kind, bookmark(event.raw))
            else:
                uid, version, row = self._read(event.raw)
                gone = event.change is Change.DELETED
                seen = Seen(self.kind, version or self._version, uid, None if gone else row)
            self._version = seen.version
            self._writer.put(seen)


def _absent(store: Store, kind: str) -> list[Changed]:
    store.trouble(kind, "", served=False)
    store.forget(kind)
    return []


def _noted(store: Store, kind: str, error: str) -> list[Changed]:
    store.trouble(kind, error)
    return []
