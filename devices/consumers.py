"""The Pods that use an ask's claims, as the mirror has them: for showing, not for writing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import Q

from devices.models import Observed

Obj = dict[str, Any]
MOST_PODS = 500
PREPARE_REASON = "FailedPrepareDynamicResources"


def pods_of_claim(namespace: str, public_id: str, names: Sequence[str]) -> list[Obj]:
    """Pods in `namespace` that carry the ask's label or refer to one of `names` (claims, template).

    At most 500, oldest first: an ask with more shows that many.
    """
    rows = Observed.objects.filter(kind="Pod", namespace=namespace).filter(
        Q(claim=public_id) | Q(uses__overlap=list(names))
    )
    return [row.obj for row in rows.order_by("created_at", "name")[:MOST_PODS]]


def prepare_message(pods: Iterable[Obj]) -> str:
    """The newest text of a failed preparation of these Pods, where none was prepared since."""
    waiting = [pod["metadata"]["uid"] for pod in pods if _waits_on_node(pod)]
    if not waiting:
        return ""
    events = Observed.objects.filter(kind="Event", owner_uid__in=waiting).order_by("-seen_at")
    for event in (row.obj for row in events[:50]):
        if event.get("reason") == PREPARE_REASON:
            return str(event.get("message") or event.get("note") or "")
    return ""


def _waits_on_node(pod: Obj) -> bool:
    """Placed on a node, and its sandbox is not up yet: preparing is what it waits for."""
    if not (pod.get("spec") or {}).get("nodeName"):
        return False
    status = pod.get("status") or {}
    conditions = {each.get("type"): each.get("status") for each in status.get("conditions") or []}
    return status.get("phase") == "Pending" and conditions.get("PodReadyToStartContainers") != "True"
