"""The Pods that use an ask's claims, as the mirror has them: for showing, not for writing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Q

from devices.models import Observed

Obj = dict[str, Any]
MOST_PODS = 500
MOST_EVENTS = 200


def pods_of_claim(namespace: str, public_id: str, names: Sequence[str]) -> list[Obj]:
    """Pods in `namespace` that carry the ask's label or refer to one of `names` (claims, template).

    At most 500, oldest first: an ask with more shows that many.
    """
    rows = Observed.objects.filter(kind="Pod", namespace=namespace).filter(
        Q(claim=public_id) | Q(uses__overlap=list(names))
    )
    return [row.obj for row in rows.order_by("created_at", "name")[:MOST_PODS]]


def events_of(pods: Iterable[Obj]) -> list[Obj]:
    """The newest events about these Pods: what the scheduler, the controllers and nodes said."""
    uids = [pod["metadata"]["uid"] for pod in pods]
    if not uids:
        return []
    rows = Observed.objects.filter(kind="Event", owner_uid__in=uids).order_by("-seen_at")
    return [row.obj for row in rows[:MOST_EVENTS]]
