"""An open watch as an iterator of undecoded events that any thread may close.

A watch is an endless HTTP body, one JSON object a line. Only whole lines count: what a cut
connection leaves of a line is thrown away, and the reader resumes after its last whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from devices.cluster.answers import a_line
from devices.cluster.gateway import RawEvent, Unreachable


class LineWatch:
    """A watch over `chunks` of the body; `stop` must make a blocked read of them end."""

    def __init__(self, chunks: Iterator[bytes], stop: Callable[[], None], *, doing: str):
        self._chunks = chunks
        self._stop = stop
        self._doing = doing
        self._closed = False

    def __iter__(self) -> Iterator[RawEvent]:
        try:
            for line in _lines(self._chunks, self._doing):
                yield a_line(line, doing=self._doing)
        except Unreachable:
            if not self._closed:
                raise
        finally:
            self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._stop()


def _lines(chunks: Iterator[bytes], doing: str) -> Iterator[bytes]:
    """Whole lines of the body; Unreachable where it ends in the middle of one."""
    pending: list[bytes] = []
    for chunk in chunks:
        head, newline, rest = chunk.partition(b"\n")
        pending.append(head)
        while newline:
            line = b"".join(pending)
            if line:
                yield line
            head, newline, rest = rest.partition(b"\n")
            pending = [head]
    if any(pending):
        raise Unreachable("the watch was cut in the middle of a line", doing=doing)
