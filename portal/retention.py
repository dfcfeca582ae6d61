"""What all floors forget with time, for the command and for the daily task."""

from __future__ import annotations

from datetime import datetime

from devices import retention as devices
from migrationplan import retention as migrationplan
from tenants import retention as tenants


def forget(now: datetime, *, rehearse: bool = False) -> dict[str, int]:
    """How many rows of each kind went, or would go."""
    return {
        **tenants.forget(now, rehearse=rehearse),
        **devices.forget(now, rehearse=rehearse),
        **migrationplan.forget(now, rehearse=rehearse),
    }
