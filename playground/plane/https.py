"""One HTTPS request to a part of the playground, with its certificate checked and ours shown.

For what must work before, below or beside the product's own gateway: readiness, tokens, etcd.
"""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playground.plane.certificates import Pair


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `status` 0 means nobody answered, and `body` says why."""

    status: int
    body: bytes

    def json(self) -> dict[str, Any]:
        """The body as an object. Raises `ValueError` where it is none."""
        read = json.loads(self.body)
        if not isinstance(read, dict):
            raise ValueError(f"not a JSON object: {self.body[:200]!r}")
        return read


def ask(
    url: str,
    *,
    ca_file: Path,
    client: Pair | None = None,
    token: str = "",
    method: str = "GET",
    body: dict[str, Any] | None = None,
    content_type: str = "application/json",
    timeout: float = 10,
) -> Answer:
    """Asks once; no answer is an answer with status 0, never an exception."""
    context = ssl.create_default_context(cafile=str(ca_file))
    if client is not None:
        context.load_cert_chain(client.certificate, client.key)
    parts = urlsplit(url)
    headers = {"Accept": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    content = None
    if body is not None:
        content = json.dumps(body).encode()
        headers["Content-Type"] = content_type
    connection = http.client.HTTPSConnection(
        parts.hostname or "", parts.port, timeout=timeout, context=context
    )
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, path, content, headers)
        response = connection.getresponse()
        return Answer(response.status, response.read())
    except (OSError, http.client.HTTPException) as error:
        return Answer(0, str(error).encode())
    finally:
        connection.close()


def words(answer: Answer) -> str:
    """The message of a Kubernetes Status, or whatever else was said."""
    try:
        return str(answer.json().get("message", "")) or f"HTTP {answer.status}"
    except ValueError:
        return answer.body.decode(errors="replace")[:300] or f"HTTP {answer.status}"
