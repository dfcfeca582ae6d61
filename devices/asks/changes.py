"""Which claims changed since somebody looked: nothing is left out, something may come twice.

"Since" is a transaction of the database: the oldest that had not ended when the look was taken. A
row that was written later, or by one that was still under way, carries that number or a younger
one in its `xmin`, so nothing can slip between two looks, in whatever order transactions end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from devices.models import Claim
from tenants.models import Tenant

#: PostgreSQL's row numbers wrap; what is older than this is looked at as a whole.
OLDEST = 2**30


@dataclass(frozen=True, slots=True)
class Changes:
    """Claims, and from where to go on. `whole`: all that are not released, for a first look."""

    seen: str
    whole: bool
    claims: list[Claim]


@transaction.atomic
def changes(tenant: Tenant, since: str) -> Changes:
    """What changed since `since` (empty, unknown or too old: everything that is not released)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")
        (seen,) = cursor.fetchone()
    rows: Any = Claim.objects.of(tenant).listed().order_by("pk")
    old = int(since) if since.isascii() and since.isdecimal() and len(since) < 20 else -1
    whole = not 0 <= int(seen) - old < OLDEST or old < 0
    if whole:
        rows = rows.filter(released_at=None)
    else:
        rows = rows.extra(
            where=["age(devices_claim.xmin) <= age(%s::text::xid)"], params=[str(old % 2**32)]
        )
    return Changes(seen, whole, list(rows))
