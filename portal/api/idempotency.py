"""Idempotency-Key: a request sent twice is done once, proven by the act's own transaction.

Same key and same body: the first answer again, with `Idempotency-Replayed: true`. Same key and
another body: 422. The same key still being worked on: 409. Refused requests are not kept, so that
a caller may mend the cause and try again with the same key.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import connection, transaction
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.models import KeptAnswer
from portal.errors import AlreadyInProgress, Invalid, Refused

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
KEPT_FOR = timedelta(hours=24)
LONGEST_KEY = 255


class KeyReused(Refused):
    """The same key came with another request."""

    code = "IDEMPOTENCY_KEY_REUSED"


def once(request: Request, *, caller: str, now: datetime, act: Callable[[], Response]) -> Response:
    """Runs `act` in a transaction, at most once per caller and Idempotency-Key.

    Without the header, `act` simply runs in a transaction. The lock is taken without waiting, so a
    doubled request never occupies a worker.
    """
    key = request.headers.get(HEADER, "")
    if len(key) > LONGEST_KEY:
        wrong = {HEADER: f"Take a key of at most {LONGEST_KEY} characters."}
        raise Invalid("The key is too long.", fields=wrong)
    with transaction.atomic():
        if not key:
            return act()
        if not _locked(f"{caller}\n{key}"):
            raise AlreadyInProgress("The same request is being worked on; ask again in a moment.")
        fingerprint = _fingerprint(request)
        kept = KeptAnswer.objects.filter(caller=caller, key=key).first()
        if kept and kept.fingerprint != fingerprint:
            raise KeyReused(f"This {HEADER} was used for another request; take a new key.")
        if kept:
            headers = {**kept.headers, REPLAYED: "true"}
            return Response(kept.body, status=kept.status, headers=headers)
        answer = act()
        KeptAnswer.objects.create(
            caller=caller,
            key=key,
            fingerprint=fingerprint,
            status=answer.status_code,
            body=answer.data,
            headers={
                name: answer[name] for name in ("Location", "ETag") if answer.has_header(name)
            },
            created_at=now,
        )
        return answer


def forget(now: datetime) -> int:
    """Drops answers older than a day; returns how many."""
    return KeptAnswer.objects.filter(created_at__lt=now - KEPT_FOR).delete()[0]


def _locked(name: str) -> bool:
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        (locked,) = cursor.fetchone()
    return bool(locked)


def _fingerprint(request: Request) -> str:
    head = f"{request.method} {request.get_full_path()}\n".encode()
    return hashlib.sha256(head + request._request.body).hexdigest()
