"""Whether an ask's object was made by a turn that died before it could say so.

Before an object is made for the first time, the row keeps the version that the cluster had then. A
turn that finds neither the object nor a record of it reads what happened since: an object of the
ask that came and went was deleted by somebody else, and is not made again.
"""

from __future__ import annotations

from typing import Final

from devices.cluster.gateway import Change, Expired, Gateway
from devices.dra.names import CLAIM_LABEL
from devices.models import Claim

#: Seconds for which the cluster is listened to. What happened until now is told at once.
LISTEN: Final = 1


def note(claim: Claim, gateway: Gateway, holder: str) -> bool:
    """Keeps the version from which on an object of this ask may be there; once is enough.

    Returns False where the lease of `holder` was lost: another turn is at work, and nothing may be
    made by this one.
    """
    mine = Claim.objects.filter(pk=claim.pk, lease=holder)
    if claim.sent_from:
        return mine.exists()
    wish = claim.wish()
    there = gateway.list(
        wish.shape.kind, namespace=wish.namespace, fields=f"metadata.name={wish.name}"
    )
    claim.sent_from = there.version
    return bool(mine.update(sent_from=there.version))


def made(claim: Claim, gateway: Gateway) -> str:
    """The uid of an object of this ask that came and went since it was noted; else empty.

    Where the cluster has forgotten what happened (it remembers some minutes), nobody can know: the
    ask was accepted, so it is made.
    """
    if not claim.sent_from:
        return ""
    wish = claim.wish()
    gone = ""
    try:
        for event in gateway.watch(
            wish.shape.kind,
            claim.sent_from,
            namespace=wish.namespace,
            fields=f"metadata.name={wish.name}",
            timeout_seconds=LISTEN,
        ):
            metadata = event.obj.get("metadata", {})
            ours = (metadata.get("labels") or {}).get(CLAIM_LABEL) == claim.public_id
            if event.change is Change.DELETED and ours:
                gone = str(metadata["uid"])
            elif event.change is not Change.BOOKMARK and ours:
                gone = ""  # it is there: somebody made it since this turn looked
    except Expired:
        claim.sent_from = ""
    return gone
