"""Whether a forecast came true: what it said against what the Pod's stage times show. Pure.

A forecast is about the moment at which it was made. So it is compared only where a Pod came soon
after, and only once the Pod had time enough to be allocated.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from devices.forecasts.whatif import Fate

#: A Pod that comes later than this meets another cluster than the one that was looked at.
POD_WITHIN: Final = timedelta(minutes=10)
#: "It fits" means allocated within so long after the Pod came.
ALLOCATED_WITHIN: Final = timedelta(minutes=2)


class Verdict(StrEnum):
    """What came of a forecast."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_COMPARED = "not compared"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict, why in a few words, and the seconds from Pod to allocation where it was."""

    verdict: Verdict
    why: str
    took: float | None = None


def judge(
    *,
    fate: str,
    made: datetime,
    pod: datetime | None,
    allocated: datetime | None,
    wanted: bool,
    now: datetime,
) -> Judgement | None:
    """What came of a forecast by ``now``; None where nobody can say yet.

    ``pod`` is when the first Pod was made, ``allocated`` when its claims had devices, ``wanted``
    whether the ask still stands.
    """
    if fate == Fate.UNKNOWN:
        return Judgement(Verdict.NOT_COMPARED, "nothing was foretold")
    if pod is None:
        if not wanted:
            return Judgement(Verdict.NOT_COMPARED, "released before any Pod came")
        late = now - made > POD_WITHIN
        return Judgement(Verdict.NOT_COMPARED, "no Pod came soon after") if late else None
    if pod - made > POD_WITHIN:
        return Judgement(Verdict.NOT_COMPARED, "the Pod came much later")
    took = None if allocated is None else max((allocated - pod).total_seconds(), 0.0)
    if took is not None and took <= ALLOCATED_WITHIN.total_seconds():
        right = fate == Fate.NOW
        return Judgement(Verdict.RIGHT if right else Verdict.WRONG, "allocated at once", took)
    if allocated is None and now - pod <= ALLOCATED_WITHIN:
        return None if wanted else Judgement(Verdict.NOT_COMPARED, "released while it waited")
    right = fate != Fate.NOW
    return Judgement(Verdict.RIGHT if right else Verdict.WRONG, "it had to wait", took)
