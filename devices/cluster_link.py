"""How fresh Berth's picture of the cluster is, for the frame of every page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Min
from django.utils import timezone

from devices.models import ClusterState, Sync


@dataclass(frozen=True, slots=True)
class ClusterLink:
    """`state` is building, unreachable, stale or live; `as_of` is None where nothing was ever seen.

    While it is building, `text`, `done` and `total` say how far whoever prepares it is.
    """

    name: str
    state: str
    as_of: datetime | None
    window: timedelta
    text: str = ""
    done: int | None = None
    total: int | None = None

    @property
    def live(self) -> bool:
        return self.state == "live"


def cluster_link() -> ClusterLink:
    """The cluster as the watch process last left it: two small queries."""
    row = ClusterState.objects.first()
    ages = Sync.objects.filter(served=True).exclude(listed_at=None)
    as_of = ages.aggregate(oldest=Min("alive_at"))["oldest"]
    return link_of(
        row, as_of=as_of, now=timezone.now(), name=settings.CLUSTER_NAME, window=stale_after()
    )


def stale_after() -> timedelta:
    """News older than this are shown as late."""
    window: timedelta = settings.MIRROR_STALE_AFTER
    return window


def link_of(
    row: ClusterState | None, *, as_of: datetime | None, now: datetime, name: str, window: timedelta
) -> ClusterLink:
    """The state in words, from what the watch process wrote and from the clock."""
    if row is not None and row.reachable and as_of is not None:
        state = "live" if now - as_of <= window else "stale"
        return ClusterLink(name, state, as_of, window)
    if as_of is not None:
        since = row.message if row else ""
        return ClusterLink(name, "unreachable", as_of, window, text=since)
    text, done, total = _notice()
    if text or row is None or row.reachable:
        text = text or "Berth is reading the cluster for the first time."
        return ClusterLink(name, "building", None, window, text, done, total)
    return ClusterLink(name, "unreachable", None, window, text=row.message)


def _notice() -> tuple[str, int | None, int | None]:
    """What whoever prepares the cluster says of it; nothing where nobody does."""
    if not settings.CLUSTER_NOTICE_FILE:
        return "", None, None
    try:
        notice = json.loads(Path(settings.CLUSTER_NOTICE_FILE).read_text())
    except (OSError, ValueError):
        return "", None, None
    return str(notice.get("text", "")), notice.get("done"), notice.get("total")
