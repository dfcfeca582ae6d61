"""How often forecasts came true, by device class."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from devices.forecasts.forecast import LOOK_BACK


@dataclass(frozen=True, slots=True)
class Rate:
    """Of so many asks for a class whose forecast could be compared, so many were as foretold."""

    right: int = 0
    compared: int = 0

    @property
    def percent(self) -> int | None:
        """Rounded down, so that 100 means all; None where nothing was compared yet."""
        return self.right * 100 // self.compared if self.compared else None


def rates_by_class(now: datetime) -> dict[str, Rate]:
    """Over the last 30 days, all tenants together; one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT class, count(*) FILTER (WHERE outcome = 'right'), count(*)"
            " FROM devices_forecast AS told JOIN devices_claim AS ask ON ask.id = told.claim_id,"
            " unnest(ask.classes) AS class"
            " WHERE told.made_at > %s AND outcome IN ('right', 'wrong') GROUP BY class",
            [now - LOOK_BACK],
        )
        return {name: Rate(right, compared) for name, right, compared in cursor.fetchall()}
