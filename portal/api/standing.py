"""How a thing stands, as its GET answers: its ETag, and what changed since a caller looked.

An operation that gives no ETag of its own has one of what it answered. What a caller looked at is
remembered for an hour, so that a 412 can name the difference.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from typing import Any

import redis
from django.db import connection
from django.urls import Resolver404, resolve
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.fields import PAGE
from portal.errors import Outdated
from portal.news import valkey

REMEMBERED = 3600
LARGEST = 65_536

log = logging.getLogger(__name__)


def tag(request: Request, response: Response, *, caller: str) -> None:
    """Gives the answer an ETag where it is about one thing, and remembers what was looked at."""
    if not isinstance(response.data, Mapping) or set(response.data) == PAGE:
        return
    text = JSONRenderer().render(response.data)
    if not response.has_header("ETag"):
        response["ETag"] = f'"{hashlib.sha256(text).hexdigest()[:20]}"'
    if len(text) <= LARGEST:
        try:
            valkey().set(_key(caller, request.path, response["ETag"]), text, ex=REMEMBERED)
        except redis.RedisError as error:
            log.info("what was looked at is not remembered: %s", error)


def compare(view: Any, request: Request, *, caller: str) -> None:
    """Raises `Outdated` where If-Match names another state than the one that GET answers now.

    The thing is what stands at the operation's own address, else at the one above it
    (`…/claims/a1/release` is about `…/claims/a1`). Operations on the same thing that compare go
    one after the other.
    """
    wanted = request.headers.get("If-Match", "*").strip()
    if wanted == "*":
        return
    path = request.path.rstrip("/")
    _in_turn(path)
    answer = None
    for address in (path, path.rpartition("/")[0]):
        answer = _now(view, request, address)
        if answer is not None:
            path = address
            break
    if answer is None:
        return  # The operation says itself that there is nothing here.
    text = JSONRenderer().render(answer.data)
    present = answer.headers.get("ETag") or f'"{hashlib.sha256(text).hexdigest()[:20]}"'
    named = [part.strip() for part in wanted.split(",")]
    if present in named:
        return
    now = json.loads(text)
    raise Outdated(
        "It changed since you looked; facts.now says how it stands, facts.difference what changed.",
        etag=present,
        now=now,
        difference=_difference(caller, path, named, now),
    )


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that differ, each as it was and as it is; a field that is not there is null."""
    names = sorted(set(before) | set(after))
    return {
        name: {"was": before.get(name), "is": after.get(name)}
        for name in names
        if before.get(name) != after.get(name)
    }


def _difference(
    caller: str, path: str, named: list[str], now: Mapping[str, Any]
) -> dict[str, Any] | None:
    """None where nobody remembers what the caller looked at."""
    try:
        for one in named:
            found: Any = valkey().get(_key(caller, path, one))
            if found is not None:
                return difference(json.loads(found), now)
    except redis.RedisError as error:
        log.info("what was looked at is not known: %s", error)
    return None


def _now(view: Any, request: Request, address: str) -> Response | None:
    try:
        found = resolve(address)
    except Resolver404:
        return None
    kind = getattr(found.func, "cls", None)
    if kind is None or not hasattr(kind, "get") or not hasattr(kind, "caller"):
        return None
    looking = kind(**getattr(found.func, "initkwargs", {}))
    looking.request, looking.args, looking.kwargs = request, found.args, found.kwargs
    looking.format_kwarg = None
    answer = looking.get(request, *found.args, **found.kwargs)
    if not isinstance(answer, Response) or not isinstance(answer.data, Mapping):
        return None
    return None if set(answer.data) == PAGE else answer


def _in_turn(path: str) -> None:
    number = int.from_bytes(hashlib.sha256(f"thing {path}".encode()).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [number])


def _key(caller: str, path: str, etag: str) -> str:
    return f"berth:looked:{caller}:{path.rstrip('/')}:{etag}"
