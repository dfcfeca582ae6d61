"""The moment that a page of the ledger is asked for: exact, or by the slider over the last day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from devices.fleet.ownershipbook import moment_of

#: How far back the slider goes, and its steps, in minutes.
BACK: Final = 24 * 60
STEP: Final = 5


@dataclass(frozen=True, slots=True)
class Moment:
    """`at` is None for now. `wrong` says what is wrong with what was asked. `minutes` is where the
    slider stands: 0 for now, -1440 for a day ago or earlier.
    """

    at: datetime | None = None
    wrong: str = ""
    minutes: int = 0

    @property
    def earlier(self) -> bool:
        """Whether it is before all that the slider reaches."""
        return self.minutes <= -BACK


def moment(asked: Mapping[str, str], now: datetime) -> Moment:
    """`?minutes=-90` is the slider's, `?at=` an exact moment; the slider wins where it is sent."""
    slid = asked.get("minutes", "").strip()
    if slid:
        try:
            minutes = int(slid)
        except ValueError:
            return Moment(wrong="Give whole minutes, such as -90 for an hour and a half ago.")
        if not -BACK <= minutes <= 0:
            return Moment(
                wrong=f"The slider goes from -{BACK} to 0 minutes; older moments by date."
            )
        return Moment(now + timedelta(minutes=minutes), "", minutes) if minutes else Moment()
    at, wrong = moment_of(asked.get("at", ""))
    if at is None:
        return Moment(wrong=wrong)
    minutes = -round((now - at).total_seconds() / 60 / STEP) * STEP
    return Moment(at, "", min(max(minutes, -BACK), 0))
