"""The Pods that use an ask's claims, as the mirror has them: for showing, not for writing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Q

from devices.models import Observed

Obj = dict[str, Any]
MOST_PODS = 500
MOST_EVENTS = 200
#: Phases of Pods that hold nothing any more.
ENDED = ("Succeeded", "Failed")


def pods_of_claim(namespace: str, public_id: str, names: Sequence[str]) -> list[Obj]:
    """Pods in `namespace` that carry the ask's label or refer to one of `names` (claims, template).

    At most 500, oldest first: an ask with more shows that many.
    """
    rows = Observed.objects.filter(kind="Pod", namespace=namespace).filter(
        Q(claim=public_id) | Q(uses__overlap=list(names))
    )
    return [row.obj for row in rows.order_by("created_at", "name")[:MOST_PODS]]


def live_pods(namespace: str, public_id: str) -> bool:
    """Whether a Pod with the ask's label, or one that names its objects, has not ended yet."""
    rows = Observed.objects.filter(kind="Pod", namespace=namespace)
    mine = rows.filter(Q(claim=public_id) | Q(uses__overlap=_names(namespace, public_id)))
    return mine.exclude(phase__in=ENDED).exists()


def _names(namespace: str, public_id: str) -> list[str]:
    """Names of an ask's claims and templates, as the mirror has them."""
    rows = Observed.objects.filter(
        kind__in=["ResourceClaim", "ResourceClaimTemplate"], namespace=namespace, claim=public_id
    )
    return list(rows.values_list("name", flat=True)[:MOST_PODS])


def claims_named(namespace: str, names: Sequence[str]) -> list[Obj]:
    """ResourceClaims of a namespace by name, as the mirror has them."""
    rows = Observed.objects.filter(kind="ResourceClaim", namespace=namespace, name__in=list(names))
    return [row.obj for row in rows.order_by("name")]


def events_of(pods: Iterable[Obj]) -> list[Obj]:
    """The newest events about these Pods: what the scheduler, the controllers and nodes said."""
    uids = [pod["metadata"]["uid"] for pod in pods]
    if not uids:
        return []
    rows = Observed.objects.filter(kind="Event", owner_uid__in=uids).order_by("-seen_at")
    return [row.obj for row in rows[:MOST_EVENTS]]
