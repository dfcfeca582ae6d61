"""What floor 1 forgets with time: sessions that are over, links and invitations that were used."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db.models import Q, QuerySet

from tenants.models import AccountLink, Invitation


def forget(now: datetime, *, rehearse: bool = False) -> dict[str, int]:
    """Deletes what is older than the settings say; with `rehearse` only counts. By its name."""
    before = now - timedelta(days=settings.KEEP_LINKS_DAYS)
    ended = Q(expires_at__lt=before)
    old: dict[str, QuerySet[Any]] = {
        "sessions": Session.objects.filter(expire_date__lt=now),
        "links to set a password": AccountLink.objects.filter(ended),
        "invitations": Invitation.objects.filter(ended),
    }
    return {name: rows.count() if rehearse else rows.delete()[0] for name, rows in old.items()}
