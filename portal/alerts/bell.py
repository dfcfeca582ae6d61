"""What stands at somebody's bell: which alerts they may know of, and which are new to them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from portal.alerts.models import Alert, Glance

#: Somebody who never looked is not greeted with the whole past.
FIRST_LOOK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks: the slugs of their tenants, and whether they have any role on the platform."""

    person: UUID
    tenants: Collection[str]
    platform: bool


def visible_to(viewer: Viewer) -> QuerySet[Alert]:
    """Alerts that the viewer may know of: their own, their tenants', all for the platform's."""
    common = Q(person=None) if viewer.platform else Q(person=None, tenant__in=list(viewer.tenants))
    return Alert.objects.filter(common | Q(person=viewer.person))


def ringing(viewer: Viewer, now: datetime) -> int:
    """How many opened since the viewer looked, and are not over; at most 100."""
    glance = Glance.objects.filter(person=viewer.person).values("seen_at")
    since = Coalesce(Subquery(glance), Value(now - FIRST_LOOK))
    return visible_to(viewer).filter(over_at=None, opened_at__gt=since)[:100].count()


def looked(person: UUID, now: datetime) -> None:
    """The viewer has seen what opened until now."""
    Glance.objects.update_or_create(person=person, defaults={"seen_at": now})
