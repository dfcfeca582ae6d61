"""How often a caller may ask: so many reads and writes a minute, each token by itself.

Counted in Valkey by the minute. Where Valkey is away nothing is counted and nothing is said about
it: being careful with a caller is not worth being down for all.
"""

from __future__ import annotations

import logging
import time
from typing import Any

import redis
from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from portal.news import valkey

WINDOW = 60
READING = frozenset({"GET", "HEAD", "OPTIONS"})
#: Where the figures of a request are kept on it: limit, remaining, seconds to the next minute.
KEPT = "berth_rate"

log = logging.getLogger(__name__)


class CallerRate(BaseThrottle):
    """One more request of a caller; refused with 429 where the minute's are used up."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Counts it, and keeps the figures on the request for its headers."""
        caller = getattr(view, "caller", None)
        if caller is None or not request.user.is_authenticated:
            return True
        held = request._request
        if hasattr(held, KEPT):
            return True  # a stream or a long wait, looking again
        kind = "reads" if request.method in READING else "writes"
        limit: int = settings.API_RATES[kind]
        now = time.time()
        left = WINDOW - int(now) % WINDOW
        key = f"berth:rate:{caller()}:{kind}:{int(now) // WINDOW}"
        try:
            used = _count(key)
        except redis.RedisError as error:
            log.warning("requests are not counted: %s", error)
            return True
        setattr(held, KEPT, (limit, max(limit - used, 0), left))
        return used <= limit

    def wait(self) -> float:
        """Seconds until it may ask again."""
        return WINDOW - int(time.time()) % WINDOW


def headers(request: Any) -> dict[str, str]:
    """RateLimit-* of an answer; none where the request was not counted."""
    figures = getattr(getattr(request, "_request", request), KEPT, None)
    if figures is None:
        return {}
    names = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
    return dict(zip(names, map(str, figures), strict=True))


def _count(key: str) -> int:
    with valkey().pipeline(transaction=False) as pipe:
        pipe.incr(key)
        pipe.expire(key, 2 * WINDOW)
        counted, _ = pipe.execute()
    return int(counted)
