"""Changes of the cluster's release, and what the ledger lost by them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from devices.dra.charges import told_amounts
from devices.dra.ledgerentries import OF_DEVICES, Entry, Seen
from devices.models import ClusterState, LedgerHead, LedgerUpgrade

#: Drivers publish anew and the mirror is listed anew within this.
SETTLES: Final = timedelta(minutes=5)
_NAMED: Final = 200


def note(
    head: LedgerHead, before: Mapping[str, Entry], charges: Mapping[str, Entry], seen: Seen,
    now: datetime,
) -> None:  # fmt: skip
    """Begins a row when the release changed, and ends it once it had time to settle. ``before`` are
    the charges before this look. Called within the look's transaction; sets `head.release`.
    """
    cluster = ClusterState.objects.only("release").first()
    release = cluster.release if cluster else ""
    if release and head.release and release != head.release:
        LedgerUpgrade.objects.create(
            frm=head.release, to=release, at=now, before=len(_of_devices(before))
        )
    head.release = release or head.release
    for row in LedgerUpgrade.objects.filter(settled_at=None, at__lte=now - SETTLES):
        standing = _of_devices(charges)
        lost = [entry for entry in standing if not _told(entry, seen)]
        row.after, row.told, row.settled_at = len(standing), len(standing) - len(lost), now
        row.lost = [
            [entry.pod, entry.claim, entry.node, entry.resource, str(entry.amount or "?")]
            for entry in lost[:_NAMED]
        ]
        row.save()


def under_way(head: LedgerHead) -> bool:
    """Whether the release changed, or what a change lost is still to be told; two queries."""
    cluster = ClusterState.objects.only("release").first()
    changed = cluster is not None and cluster.release not in ("", head.release)
    return changed or LedgerUpgrade.objects.filter(settled_at=None).exists()


def _told(entry: Entry, seen: Seen) -> bool:
    """Whether the Pod's status still says an amount for it."""
    charge = seen.told.get(entry.pair)
    return charge is not None and bool(told_amounts(charge).get((entry.rule, entry.resource)))


def _of_devices(charges: Mapping[str, Entry]) -> list[Entry]:
    return [entry for entry in charges.values() if entry.rule in OF_DEVICES]
