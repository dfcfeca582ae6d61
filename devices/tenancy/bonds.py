"""What ties a tenant to others, and how it ends with the tenant: grants on both sides, tokens,
invitations, approvals that are still to decide.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from devices.models import Closure
from portal.approvals import asks
from portal.approvals.models import Approval
from portal.approvals.rules import State as ApprovalState
from tenants import grants, members, tokens

WHY = "The tenant is closed."


def end_bonds(closure: Closure, now: datetime) -> None:
    """Ends them all, and writes down which; doing it twice is fine.

    Grants end one by one, each under the lock of both tenants; the rest in one transaction with
    what is written down, so whoever dies in between begins again and finds fewer.
    """
    tenant, request_id = closure.tenant, closure.request_id
    ended = grants.end_all(tenant, request_id=request_id, now=now)
    with transaction.atomic():
        row = Closure.objects.select_for_update().get(pk=closure.pk)
        if row.bonds is not None:
            return
        row.bonds = {
            "at": now.isoformat(),
            "grants": sorted({*ended, *grants.ended_since(tenant, row.empty_at or now)}),
            "tokens": tokens.revoke_all(tenant, now=now, request_id=request_id),
            "invitations": members.revoke_all(tenant, now=now, request_id=request_id),
            "approvals": _void(closure, now),
        }
        row.save(update_fields=["bonds"])


def _void(closure: Closure, now: datetime) -> list[str]:
    """Numbers of the tenant's approvals that nobody decided; they are void."""
    open_ones = Approval.objects.filter(tenant=closure.tenant.slug, state=ApprovalState.OPEN)
    numbers = []
    for approval in open_ones.order_by("pk"):
        asks.void(approval_id=approval.pk, why=WHY, request_id=closure.request_id, now=now)
        numbers.append(approval.number)
    return numbers
