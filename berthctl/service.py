"""Calls to the API: retried where that is safe, and every no as a `Failure`.

A call that changes something carries an Idempotency-Key of its own, the same in each try, so that
trying again after a cut line never does it twice.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from berthctl.config import Config
from berthctl.outcomes import RETRYABLE, Failure, of_problem

TRIES = 5
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
TIMEOUT = 90.0
CONFIRM = "Berth-Confirm"


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, the JSON that came with it, and its headers by lower-case name."""

    status: int
    body: Any
    headers: Mapping[str, str]


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A token must not follow a redirect to wherever it leads."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass
class Service:
    """One tenant's API at one Berth."""

    config: Config
    pause: Callable[[float], None] = time.sleep
    opener: urllib.request.OpenerDirector = field(init=False)

    def __post_init__(self) -> None:
        trusted = ssl.create_default_context(cafile=os.environ.get("BERTH_CA_FILE") or None)
        self.opener = urllib.request.build_opener(
            NoRedirects, urllib.request.HTTPSHandler(context=trusted)
        )

    def get(self, path: str, **query: str) -> Any:
        """The body of what stands at `path` below the tenant; raises `Failure`."""
        return self.call("GET", path, query=query).body

    def every(self, path: str, **query: str) -> Iterator[Any]:
        """Each row of a list that comes in pages."""
        page = self.get(path, limit="200", **query)
        while True:
            yield from page["results"]
            if not page["next"]:
                return
            cursor = page["next"].partition("?")[2]
            page = self.call("GET", f"{path}?{cursor}").body

    def act(
        self, method: str, path: str, body: Any = None, *, key: str = "", dry_run: bool = False
    ) -> Answer:
        """Changes something, once. A token that must rehearse first is given its dry run."""
        key = key or str(uuid.uuid4())
        query = {"dry_run": "true"} if dry_run else {}
        try:
            return self.call(method, path, body, query=query, key=key)
        except Failure as failure:
            if failure.body.get("code") != "DRY_RUN_FIRST":
                raise
        tried = self.call(method, path, body, query={"dry_run": "true"})
        confirm = {CONFIRM: tried.headers.get(CONFIRM.lower(), "")}
        return self.call(method, path, body, key=key, headers=confirm)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        key: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """One call, tried again while the server is away, busy or still at it."""
        address = f"{self.config.url}/api/v1/tenants/{quote(self.config.tenant)}/{path}"
        if query:
            address += f"?{urlencode(query)}"
        sent = {
            "Authorization": f"Bearer {self.config.token}",
            "Accept": "application/json",
            "User-Agent": "berth-command-line/1",
            **(headers or {}),
        }
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            sent["Content-Type"] = "application/json"
        if key:
            sent["Idempotency-Key"] = key
        request = urllib.request.Request(address, data, sent, method=method)
        again = method == "GET" or bool(key) or bool(query and query.get("dry_run"))
        for attempt in range(TRIES):
            last = attempt == TRIES - 1 or not again
            failure, wait = self._tried(request)
            if isinstance(failure, Answer):
                return failure
            if last or failure.exit_code != RETRYABLE:
                raise failure
            self.pause(min(wait or FIRST_PAUSE * 2**attempt, LONGEST_PAUSE))
        raise AssertionError("the last try answers or raises")

    def _tried(self, request: urllib.request.Request) -> tuple[Answer | Failure, float]:
        try:
            with self.opener.open(request, timeout=TIMEOUT) as answer:
                return _answer(answer.status, answer.read(), answer.headers), 0
        except urllib.error.HTTPError as error:
            with error:
                found = _answer(error.code, error.read(), error.headers)
            if 300 <= error.code < 400:
                to = found.headers.get("location", "elsewhere")
                return Failure(f"The server sends us to {to}.", "berth login with that address"), 0
            known = found.body if isinstance(found.body, dict) else {}
            after = found.headers.get("retry-after", "")
            return of_problem(error.code, known), float(after) if after.isdecimal() else 0
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            words = f"{self.config.url} does not answer: {reason}."
            return Failure(words, "Is the address right, and is Berth up?", exit_code=RETRYABLE), 0


def _answer(status: int, text: bytes, headers: Any) -> Answer:
    try:
        body = json.loads(text) if text else None
    except ValueError:
        body = None
    return Answer(status, body, {name.lower(): value for name, value in headers.items()})
