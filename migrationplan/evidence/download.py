"""A bundle as an answer, and the audit line that says who has it."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from migrationplan.evidence.collecting import exported
from migrationplan.models import Evidence
from portal.audit.record import record
from portal.exports import streamed
from portal.request_ids import request_id_of
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct


def sent(request: HttpRequest, row: Evidence, access: PlatformAccess) -> HttpResponseBase:
    """The tar while it is made; 403 for who may not have it."""
    access.require(PlatformAct.READ_EVIDENCE)
    with transaction.atomic():
        record(
            action="evidence.downloaded",
            subject=f"evidence {row.public_id}",
            request_id=request_id_of(request),
            at=timezone.now(),
            person=access.user.person,
            facts={"pool": row.pool.slug, "sha256": row.digest},
        )
    return streamed(request, exported(row), kind="tar", name=row.filename)
