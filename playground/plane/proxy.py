"""A proxy in front of the API server that can be slow, deaf, cut off, or answer nonsense.

Connections pass through byte by byte, so clients check the API server's own certificate and show
their own. Only to answer in the API server's place does the proxy end TLS itself, with a
certificate of the playground's authority: to clients it looks like the API server, or like a load
balancer before it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import socket
import ssl
import sys
import threading
from collections.abc import Coroutine
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from playground.errors import PlaygroundError
from playground.plane.certificates import Pair
from playground.running.ports import free_port
from playground.running.processes import LIFELINE

CHUNK = 65536
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reply:
    """What the proxy says instead of the API server."""

    status: str
    content_type: str
    body: bytes
    headers: tuple[str, ...] = ()


def _status(code: int, reason: str, message: str) -> bytes:
    """A Status object as the API server writes it."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return json.dumps(status | {"code": code, "reason": reason, "message": message}).encode()


PAGE = (
    b"<html><head><title>Sign in</title></head><body><h1>Sign in to the network</h1></body></html>"
)
REPLIES = {
    "429": Reply(
        "429 Too Many Requests",
        "application/json",
        _status(429, "TooManyRequests", "the server has received too many requests"),
        ("Retry-After: 1",),
    ),
    "500": Reply(
        "500 Internal Server Error",
        "application/json",
        _status(500, "InternalError", "Internal error occurred: etcdserver: request timed out"),
    ),
    "html": Reply("200 OK", "text/html; charset=utf-8", PAGE),
    "html-404": Reply("404 Not Found", "text/html; charset=utf-8", PAGE),
    "html-502": Reply("502 Bad Gateway", "text/html; charset=utf-8", PAGE),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the way to the API server; the default is: nothing.

    `delay` seconds before each piece in either direction. `cut_after` bytes towards the client each
    connection is cut, those that are open at once where it is 0 (bytes of TLS: of a record, up to
    16 KiB, that is cut the client sees nothing). `refuse`: nobody listens. `stall`: connections
    open and nothing comes. `answer`: a key of `REPLIES`.
    """

    delay: float = 0.0
    cut_after: int | None = None
    refuse: bool = False
    stall: bool = False
    answer: str = ""

    def __post_init__(self) -> None:
        if self.answer and self.answer not in REPLIES:
            raise PlaygroundError(f"No such answer: {self.answer}; there are {', '.join(REPLIES)}.")

    def write(self, path: Path) -> None:
        """For a proxy in another process that follows this file."""
        new = path.with_name(f".{path.name}.{os.getpid()}")
        new.write_text(json.dumps(asdict(self)))
        new.replace(path)

    @classmethod
    def read(cls, path: Path) -> Fault:
        """The fault in a file; none where the file is missing or half written."""
        try:
            return cls(**json.loads(path.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return cls()


class Proxy:
    """Listens on loopback for one API server at `target` (a port on loopback).

    `pair` is a server's certificate for 127.0.0.1 of an authority that the clients trust. Runs in a
    thread of its own; all methods may be called from any thread.
    """

    def __init__(self, target: int, pair: Pair, *, port: int = 0):
        self.port = port or free_port()
        self._target = target
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(pair.certificate, pair.key)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._fault = Fault()
        self._changed = asyncio.Event()
        self._listening: asyncio.Task[None] | None = None
        self._open: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """To be used in the place of the API server's."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def fault(self) -> Fault:
        return self._fault

    def start(self) -> Self:
        """Returns when it listens. Raises `OSError` where the port is taken."""
        self._thread.start()
        self._call(self._set(Fault()))
        return self

    def set(self, fault: Fault) -> None:
        """From now on; `refuse`, `stall` and `answer` concern open connections too."""
        self._call(self._set(fault))

    def mend(self) -> None:
        """Nothing is wrong any more."""
        self.set(Fault())

    def cut(self) -> None:
        """Cuts all open connections once, in the middle of whatever they say."""
        self._call(self._cut())

    def stop(self) -> None:
        """Cuts all connections and listens no more."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def follow(self, path: Path) -> None:
        """Does what a file says (see `Fault.write`), looking ten times a second; never returns."""
        last = self._fault
        while True:
            if (wanted := Fault.read(path)) != last:
                last = wanted
                self.set(wanted)
            threading.Event().wait(0.1)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # Everything below runs in the loop's thread.

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _set(self, fault: Fault) -> None:
        self._fault = fault
        self._changed.set()
        self._changed = asyncio.Event()
        for connection in self._open:
            connection.sent = 0
        if fault.refuse or fault.answer or fault.cut_after == 0:
            await self._cut()
        if fault.refuse:
            await self._stop_listening()
        elif self._listening is None:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", self.port))
            except OSError:
                listener.close()
                raise
            listener.listen(128)
            listener.setblocking(False)
            self._listening = asyncio.create_task(self._listen(listener))

    async def _close(self) -> None:
        await self._stop_listening()
        await self._cut()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listening
            self._listening = None

    async def _cut(self) -> None:
        for connection in tuple(self._open):
            connection.abort()

    async def _listen(self, listener: socket.socket) -> None:
        with listener:
            while True:
                client, _ = await self._loop.sock_accept(listener)
                task = asyncio.create_task(self._serve(client))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reply = REPLIES.get(self._fault.answer)
        connection = _Connection()
        self._open.add(connection)
        try:
            reader, writer = await _streams(client, self._tls if reply else None)
            connection.writers.append(writer)
            if reply is not None:
                await _answer(reader, writer, reply)
            else:
                await self._hold_up()
                server = await asyncio.open_connection("127.0.0.1", self._target)
                connection.writers.append(server[1])
                await asyncio.gather(
                    self._pass(connection, reader, server[1], towards_client=False),
                    self._pass(connection, server[0], writer, towards_client=True),
                )
        except (OSError, ssl.SSLError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # one side has gone: so goes the other
        finally:
            connection.abort()
            self._open.discard(connection)

    async def _pass(
        self,
        connection: _Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        towards_client: bool,
    ) -> None:
        while data := await reader.read(CHUNK):
            await self._hold_up()
            limit = self._fault.cut_after if towards_client else None
            if limit is not None and connection.sent + len(data) > limit:
                writer.write(data[: max(limit - connection.sent, 0)])
                await writer.drain()
                await asyncio.sleep(0.01)  # abort drops what the system has not taken yet
                connection.abort()
                return
            if towards_client:
                connection.sent += len(data)
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async def _hold_up(self) -> None:
        while self._fault.stall:
            await self._changed.wait()
        if self._fault.delay:
            await asyncio.sleep(self._fault.delay)


class _Connection:
    """One client's connection and ours for it, cut together."""

    def __init__(self) -> None:
        self.writers: list[asyncio.StreamWriter] = []
        self.sent = 0

    def abort(self) -> None:
        for writer in self.writers:
            writer.transport.abort()


async def _streams(
    client: socket.socket, tls: ssl.SSLContext | None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Like `asyncio.start_server`, which cannot decide about TLS for each connection."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=CHUNK, loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.connect_accepted_socket(lambda: protocol, client, ssl=tls)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, reply: Reply) -> None:
    """Reads one request to its end, or the client would not read the answer; then closes."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            await reader.readexactly(int(value))
    lines = (
        f"HTTP/1.1 {reply.status}",
        f"Content-Type: {reply.content_type}",
        f"Content-Length: {len(reply.body)}",
        "Connection: close",
        *reply.headers,
    )
    writer.write("\r\n".join((*lines, "", "")).encode() + reply.body)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


def main(words: list[str] | None = None) -> None:
    """A proxy as a process of its own, following a file of faults."""
    parser = argparse.ArgumentParser(prog="python -m playground.plane.proxy")
    for name in ("--port", "--target"):
        parser.add_argument(name, type=int, required=True)
    for name in ("--certificate", "--key", "--faults"):
        parser.add_argument(name, type=Path, required=True)
    options = parser.parse_args(words)
    if os.environ.get(LIFELINE) == "stdin":
        threading.Thread(target=_end_with_lifeline, daemon=True).start()
    proxy = Proxy(options.target, Pair(options.certificate, options.key), port=options.port)
    proxy.start().follow(options.faults)


def _end_with_lifeline() -> None:
    """Whoever started us holds the other end of our standard input, and has died."""
    while sys.stdin.buffer.read(CHUNK):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
