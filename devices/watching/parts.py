"""Threads of the watch process: when one of them ends by a bug, all of them stop.

The exception itself goes the way of every uncaught one (log, traceback); nobody swallows it.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator

from django.db import InterfaceError, InternalError, OperationalError, connection

# The last one: PostgreSQL ended our session because it slept inside a transaction.
DATABASE_AWAY = (OperationalError, InterfaceError, InternalError)


class Part(threading.Thread):
    """A thread that works until `stop`; `crashed` when its work ended by an exception."""

    def __init__(self, name: str, stop: threading.Event):
        # A daemon: one that waits for a socket must not keep a process that was told to go.
        super().__init__(name=name, daemon=True)
        self.stop = stop
        self.crashed = False

    def run(self) -> None:
        try:
            self.work()
        except BaseException:
            self.crashed = True
            self.stop.set()
            raise
        finally:
            connection.close()

    def work(self) -> None:
        raise NotImplementedError


def pauses(first: float = 0.5, longest: float = 30.0) -> Iterator[float]:
    """Seconds to wait before each further attempt: doubling, capped, half to whole of it."""
    pause = first
    while True:
        yield pause * random.uniform(0.5, 1.0)
        pause = min(pause * 2, longest)
