"""What a tenant sees of the ledger: lines of one of its claims and of the Pods that use it.

Nothing of anybody else's: neither what the node has, nor what it has left.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from devices.dra.objects import Shape
from devices.models import Claim, LedgerLine
from devices.models.ledger import LedgerLines


def lines_of_claim(row: Claim, at: datetime | None = None, *, all_: bool = False) -> LedgerLines:
    """Lines that stand (or stood) for a claim's objects and for the Pods that use them; `all_`:
    ended ones and what ended them, too.

    A name may have been somebody else's once, so lines from before it was asked for are left out.
    """
    space = row.namespace.name
    objects = {f"{space}/{one['claim']}" for one in row.placed if one.get("claim")}
    if row.shape == Shape.CLAIM:
        objects.add(f"{space}/{row.object_name}")
    since = LedgerLine.objects.filter(at__gte=row.requested_at)
    users = since.filter(claim__in=objects).exclude(pod="").values("pod")
    pods = {f"{space}/{one['name']}" for one in row.pods if one.get("name")}
    mine = Q(claim__in=objects) | Q(claim="", pod__in=users) | Q(claim="", pod__in=pods)
    if all_:
        lines = since.filter(mine)
        return lines.filter(at__lte=at) if at is not None else lines
    return LedgerLine.objects.standing(at).filter(mine, at__gte=row.requested_at)
