"""News for open pages: what changed, so that a page fetches that fragment again.

News carry no state and no secrets: a topic names a thing of a tenant, the fragment's own view
decides what the viewer may see. Lost news cost freshness, never truth.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from functools import cache

import redis
from django.conf import settings

KEPT = "berth:news:kept"
#: So many are kept for pages that come back; some minutes of a busy cluster.
MOST = 5_000
#: In the place of a tenant: pages of the platform. No tenant's slug looks like this.
PLATFORM = "@platform"

log = logging.getLogger(__name__)


@cache
def valkey() -> redis.Redis:
    """This process's connections to Valkey; calls raise `redis.RedisError` within a second."""
    return redis.Redis.from_url(settings.VALKEY_URL, socket_timeout=1, socket_connect_timeout=1)


def publish(topics: Iterable[str], *, tenant: str = "") -> bool:
    """Tells open pages that `topics` changed; an empty tenant reaches everybody's pages.

    False where Valkey is away: pages notice a cut stream themselves and fetch anew.
    """
    message = json.dumps({"tenant": tenant, "topics": sorted(set(topics))})
    try:
        valkey().xadd(KEPT, {"news": message}, maxlen=MOST, approximate=True)
    except redis.RedisError as error:
        log.info("news not published: %s", error)
        return False
    return True
