"""Runs turns: short calls by key, each key one at a time, on a few threads, again when due.

A turn looks at the world afresh and returns the seconds after which it wants to look again, or
None where only news can change anything. News only wakes a turn, so lost or doubled news does no
harm. The shape is that of the work queue of Kubernetes' own controllers (client-go `workqueue`).
"""

from __future__ import annotations

import heapq
import logging
import threading
import time
from collections.abc import Callable, Hashable

from devices.cluster.gateway import ClusterError

log = logging.getLogger(__name__)

Turn = Callable[[], float | None]

FIRST_RETRY = 0.25
LAST_RETRY = 10.0
AFTER_A_BUG = 30.0


class Turns:
    """A set of turns by key. `wake` may be called from any thread, also from within a turn."""

    def __init__(self, workers: int = 6) -> None:
        self._workers = workers
        self._turns: dict[Hashable, Turn] = {}
        self._due: dict[Hashable, float] = {}
        self._heap: list[tuple[float, int, Hashable]] = []
        self._running: set[Hashable] = set()
        self._again: set[Hashable] = set()
        self._failures: dict[Hashable, int] = {}
        self._count = 0
        self._stopping = False
        self._news = threading.Condition()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for _ in range(self._workers):
            self._hire()

    def stop(self, timeout: float = 5.0) -> None:
        """Ends every worker after the turn it is in; what is still due stays undone."""
        with self._news:
            self._stopping = True
            self._news.notify_all()
        until = time.monotonic() + timeout
        for thread in list(self._threads):
            thread.join(max(0.0, until - time.monotonic()))

    def add(self, key: Hashable, turn: Turn, *, after: float = 0.0) -> None:
        """Makes `turn` known under `key` and wakes it."""
        with self._news:
            self._turns[key] = turn
        self.wake(key, after=after)

    def drop(self, key: Hashable) -> None:
        """Forgets the key; a turn that is running ends undisturbed and is not run again."""
        with self._news:
            self._turns.pop(key, None)
            self._due.pop(key, None)
            self._failures.pop(key, None)

    def wake(self, key: Hashable, *, after: float = 0.0) -> None:
        """Asks for a turn in `after` seconds at the latest; unknown keys are ignored."""
        with self._news:
            self._wake(key, time.monotonic() + after)

    def _wake(self, key: Hashable, due: float) -> None:
        if key not in self._turns or self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._count += 1
        heapq.heappush(self._heap, (due, self._count, key))
        self._news.notify()

    def _hire(self) -> None:
        thread = threading.Thread(target=self._work, name="fleet-turns", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()]
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        """One worker's life. A bug ends this thread with its traceback; another takes its place."""
        key: Hashable = None
        try:
            while (found := self._next()) is not None:
                key, turn = found
                self._finish(key, self._run(key, turn))
                key = None
        finally:
            if key is not None:
                self._finish(key, AFTER_A_BUG)
            if not self._stopping:
                self._hire()

    def _next(self) -> tuple[Hashable, Turn] | None:
        with self._news:
            while not self._stopping:
                now = time.monotonic()
                wait: float | None = None
                while self._heap:
                    due, _, key = self._heap[0]
                    if self._due.get(key) != due:
                        heapq.heappop(self._heap)  # dropped, or woken for an earlier time
                    elif due > now:
                        wait = due - now
                        break
                    else:
                        heapq.heappop(self._heap)
                        del self._due[key]
                        if key in self._running:
                            self._again.add(key)  # one turn of a key at a time
                            continue
                        self._running.add(key)
                        return key, self._turns[key]
                self._news.wait(wait)
        return None

    def _run(self, key: Hashable, turn: Turn) -> float | None:
        try:
            again = turn()
        except ClusterError as error:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            again = min(LAST_RETRY, FIRST_RETRY * 2 ** min(failures, 10))
            log.log(
                logging.DEBUG if error.retry else logging.WARNING,
                "%s: %s; again in %.1f s",
                key,
                error.message,
                again,
            )
        else:
            self._failures.pop(key, None)
        return again

    def _finish(self, key: Hashable, again: float | None) -> None:
        with self._news:
            self._running.discard(key)
            if key in self._again:
                self._again.discard(key)
                again = 0.0
            if again is not None:
                self._wake(key, time.monotonic() + again)
