"""What capacity and pending Pods are held to, and how they stand against it."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Final

from django.db import transaction

from devices.dra.podstatus import read_pod_status
from devices.dra.snapshot import Snapshot
from devices.ledger.figures import kept, unit_of
from devices.models import LedgerNode, LedgerObjectives
from portal.audit.record import record
from portal.errors import Invalid
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

#: What the scheduler says where a node has too little of what the ledger counts.
_SHORT: Final = ("Insufficient cpu", "Insufficient memory", "Insufficient hugepages-")
LONGEST: Final = 10_080


@transaction.atomic
def set_objectives(
    *,
    access: PlatformAccess,
    most_charged: int,
    most_pending: int,
    request_id: str,
    now: datetime,
) -> LedgerObjectives:
    """Per cent of what a node offers, and minutes. Raises `NotPermitted` and `Invalid`."""
    access.require(PlatformAct.ASSUME)
    wrong = {}
    if not 1 <= most_charged <= 100:
        wrong["most_charged"] = "From 1 to 100 per cent."
    if not 1 <= most_pending <= LONGEST:
        wrong["most_pending"] = f"From 1 to {LONGEST} minutes."
    if wrong:
        raise Invalid("Nothing was set.", fields=wrong)
    row, _ = LedgerObjectives.objects.update_or_create(
        name="ledger",
        defaults={
            "most_charged": most_charged, "most_pending": most_pending,
            "said_by": access.user.person, "said_at": now,
        },
    )  # fmt: skip
    record(
        action="ledger.objectives set", subject="node ledger", request_id=request_id, at=now,
        person=access.user.person,
        facts={"most_charged": most_charged, "most_pending": most_pending},
    )  # fmt: skip
    return row


def fullest() -> tuple[str, str, Fraction] | None:
    """Node, resource and share of what is charged most full; None where nothing is known."""
    found = [
        (one.share, one.node, one.resource)
        for row in LedgerNode.objects.only("node", "figures")
        for one in kept(row.node, row.figures)
        if one.share is not None and unit_of(one.resource) and one.resource != "ephemeral-storage"
    ]
    if not found:
        return None
    share, node, resource = max(found)
    return node, resource, share


def numa_refused(snapshot: Snapshot) -> int:
    """Pods that a kubelet's topology manager refused and that are still there: the node had room,
    and no zone of it (kubelet `topologymanager`: reason TopologyAffinityError).
    """
    return sum(
        (pod.raw.get("status") or {}).get("reason") == "TopologyAffinityError"
        for pod in snapshot.pods.values()
        if pod.phase == "Failed"
    )


def waiting(snapshot: Snapshot) -> tuple[tuple[str, datetime], ...]:
    """Pods with devices that wait for want of what the ledger counts, and since when; longest
    first.
    """
    found = []
    for pod in snapshot.pods.values():
        if pod.node_name or pod.finished or not (pod.claims or pod.extended_claim):
            continue
        told = read_pod_status(pod.raw).conditions.get("PodScheduled")
        if told is None or told.true or told.at is None:
            continue
        if any(words in told.message for words in _SHORT):
            found.append((str(pod), told.at))
    return tuple(sorted(found, key=lambda one: one[1]))
