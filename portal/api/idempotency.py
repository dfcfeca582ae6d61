"""Idempotency-Key: a request sent twice is done once, proven by the act's own transaction.

Same key and same body: the first answer again, with `Idempotency-Replayed: true`. Same key and
another body: 422. The same key still being worked on: 409. Refused requests are not kept, so that
a caller may mend the cause and try again with the same key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, models, transaction
from django.db.models import Value
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.models import KeptAnswer
from portal.errors import AlreadyInProgress, Invalid, Refused

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
KEPT_FOR = timedelta(hours=24)
LONGEST_KEY = 255
#: Set on a request whose whole operation runs once already.
AROUND = "berth_around"


class KeyReused(Refused):
    """The same key came with another request."""

    code = "IDEMPOTENCY_KEY_REUSED"


class SecretShownOnce(Refused):
    """Done before under this key; what it answered was a secret, and nobody keeps those."""

    code = "SECRET_SHOWN_ONCE"
    http_status = 409


def once(request: Request, *, caller: str, now: datetime, act: Callable[[], Response]) -> Response:
    """Runs `act` in a transaction, at most once per caller and Idempotency-Key.

    Operations stand inside of `around` already; then this is a part of that transaction.
    """
    if getattr(request, AROUND, False):
        with transaction.atomic():
            return act()
    return around(request, caller=caller, now=now, act=act)


def around(
    request: Request,
    *,
    caller: str,
    now: datetime,
    act: Callable[[], Any],
    secret: bool = False,
) -> Any:
    """The same around a whole operation. Of a `secret` answer only that it was given is kept.

    Without the header, `act` simply runs in a transaction. The lock is taken without waiting, so a
    doubled request never occupies a worker. An answer that is no success undoes what was written
    and is not kept.
    """
    setattr(request, AROUND, True)
    key = check_key(request)
    with transaction.atomic():
        if not key:
            return act()
        if not _locked(f"{caller}\n{key}"):
            raise AlreadyInProgress("The same request is being worked on; ask again in a moment.")
        asked = fingerprint(request)
        kept = KeptAnswer.objects.filter(caller=caller, key=key).first()
        if kept and kept.fingerprint != asked:
            raise KeyReused(f"This {HEADER} was used for another request; take a new key.")
        if kept and secret:
            raise SecretShownOnce(
                "This was done before under the same key, and its secret was shown then; it cannot "
                "be shown again. Take back what was made and make a new one."
            )
        if kept:
            headers = {**kept.headers, REPLAYED: "true"}
            return Response(kept.body, status=kept.status, headers=headers)
        answer = act()
        if answer.status_code >= 400:
            transaction.set_rollback(True)
            return answer
        data = None if secret else getattr(answer, "data", None)
        KeptAnswer.objects.create(
            caller=caller,
            key=key,
            fingerprint=asked,
            status=answer.status_code,
            # A plain None would be SQL's NULL.
            body=Value(None, models.JSONField()) if data is None else plain(data),
            headers={
                name: answer[name] for name in ("Location", "ETag") if answer.has_header(name)
            },
            created_at=now,
        )
        return answer


def check_key(request: Request) -> str:
    """The key, "" without one; `Invalid` for one that is too long."""
    key = request.headers.get(HEADER, "")
    if len(key) > LONGEST_KEY or "\0" in key:
        wrong = {HEADER: f"Take a key of at most {LONGEST_KEY} characters."}
        raise Invalid("The key is too long.", fields=wrong)
    return key


def plain(data: Any) -> Any:
    """An answer's data as JSON has it, read from the database where it still has to be."""
    return json.loads(JSONRenderer().render(data))


def forget(now: datetime) -> int:
    """Drops answers older than a day; returns how many."""
    return KeptAnswer.objects.filter(created_at__lt=now - KEPT_FOR).delete()[0]


def _locked(name: str) -> bool:
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        (locked,) = cursor.fetchone()
    return bool(locked)


def fingerprint(request: Request) -> str:
    """Of method, address and body; the same for a request and its dry run."""
    asked = request.query_params.copy()
    asked.pop("dry_run", None)
    head = f"{request.method} {request.path}?{asked.urlencode()}\n".encode()
    return hashlib.sha256(head + request._request.body).hexdigest()
