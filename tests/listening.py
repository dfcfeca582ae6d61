"""A web server on loopback that answers as it is told and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Listener(ThreadingHTTPServer):
    """`said`: status and body of every answer. `asked`: path, headers (names in small letters) and
    body of each question, in order.
    """

    said: tuple[int, bytes] = (200, b"")

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[tuple[str, dict[str, str], bytes]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Listener

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        head = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((self.path, head, self.rfile.read(length)))
        status, text = self.server.said
        self.send_response(status)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@contextmanager
def listening() -> Iterator[Listener]:
    with Listener() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
