"""Passes on what was stored: who must look at changed objects is woken, and pages are told.

Behind a queue of its own, so that a broker that is away or slow never delays the mirror. What does
not fit is dropped: news cost freshness only, and a sweep wakes every row that was forgotten.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence

from devices.mirror.store import Changed
from devices.watching.parts import Part

# Batches of changes that may wait; a batch is 200 changes at most, a page of a list 500.
WAITING = 200

log = logging.getLogger(__name__)

Wake = Callable[[Sequence[Changed]], None]


class Announcer(Part):
    """Calls `wake[kind]` with each batch's changes of that kind.

    `turned` is called when the mirror's state as a whole did: the cluster came or went, or
    everything was listed. Both must see to it that a broker that is away is no exception.
    """

    def __init__(self, wake: Mapping[str, Wake], turned: Callable[[], None], stop: threading.Event):
        super().__init__("announcer", stop)
        self._wake = wake
        self._turned = turned
        self._queue: queue.Queue[Sequence[Changed]] = queue.Queue(maxsize=WAITING)

    def put(self, changes: Sequence[Changed]) -> None:
        """Hands over without waiting; no changes mean that the state turned."""
        try:
            self._queue.put_nowait(changes)
        except queue.Full:
            log.warning("News of %d changes dropped: the broker is behind", len(changes))

    def work(self) -> None:
        while not self.stop.is_set():
            try:
                changes = self._queue.get(timeout=0.5)
            except queue.Empty:
                continue
            if not changes:
                self._turned()
            for kind, wake in self._wake.items():
                if of_kind := [change for change in changes if change.kind == kind]:
                    wake(of_kind)
