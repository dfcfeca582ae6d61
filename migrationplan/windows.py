"""When a node may start: windows of a week in a time zone, and the freeze calendar. Pure.

Clocks change twice a year. A window that begins in the hour that does not exist begins when the
hour is over; one that ends in the hour that comes twice ends when it is over the second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip
WEEK: Final = timedelta(days=7)
#: Beyond so many closed windows and freezes in a row nobody is told a moment.
FARTHEST: Final = 500


@dataclass(frozen=True, slots=True)
class Window:
    """On these weekdays (Monday is 0), from `begins` to `ends` on the clocks of `zone`.

    One whose end is not after its beginning ends on the next day; it belongs to the day on which
    it begins.
    """

    days: frozenset[int]
    begins: time
    ends: time
    zone: str

    def __str__(self) -> str:
        return f"{_weekdays(self.days)} {self.begins:%H:%M} to {self.ends:%H:%M} {self.zone}"


@dataclass(frozen=True, slots=True)
class Frozen:
    """One entry of the freeze calendar: no node starts from `begins` until `ends`."""

    begins: datetime
    ends: datetime
    reason: str


def spans(window: Window, around: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The openings of a window from a week before a moment to a week after it, in UTC."""
    zone = ZoneInfo(window.zone)
    today = around.astimezone(zone).date()
    over_night = timedelta(days=1) if window.ends <= window.begins else timedelta(0)
    for offset in range(-8, 9):
        day = today + timedelta(days=offset)
        if day.weekday() in window.days:
            begins = _moment(day, window.begins, zone, second=False)
            ends = _moment(day + over_night, window.ends, zone, second=True)
            if begins < ends:  # in spring one of half an hour may fall out whole
                yield begins, ends


def _moment(day: date, clock: time, zone: ZoneInfo, *, second: bool) -> datetime:
    """What a clock on the wall means, in UTC."""
    wall = datetime.combine(day, clock, zone)
    early = wall.replace(fold=0).astimezone(UTC)
    late = wall.replace(fold=1).astimezone(UTC)
    if late > early:  # the hour comes twice
        return late if second else early
    if late < early:  # the hour does not exist: clocks jump when it would begin
        return _jump(late, early, zone)
    return early


def _jump(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    """The moment between the two at which the clocks change."""
    before = low.astimezone(zone).utcoffset()
    while high - low > timedelta(seconds=1):
        middle = low + (high - low) / 2
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high.replace(microsecond=0)


def open_until(windows: Sequence[Window], now: datetime) -> datetime | None:
    """When the window that is open now closes; None where none is open. Windows that touch are
    one. Without windows there is no end: ask `is_open`.
    """
    found = None
    for begins, ends in sorted(span for one in windows for span in spans(one, now)):
        reached = now if found is None else found
        if begins <= reached < ends:
            found = ends
    return found


def is_open(windows: Sequence[Window], now: datetime) -> bool:
    """Whether a node may start as far as windows go; without windows it always may."""
    return not windows or open_until(windows, now) is not None


def opens_next(windows: Sequence[Window], now: datetime) -> datetime | None:
    """When the next window opens, strictly after now; None where no window ever does."""
    begins = [begin for one in windows for begin, _ in spans(one, now) if begin > now]
    return min(begins, default=None)


def frozen_by(calendar: Iterable[Frozen], now: datetime) -> Frozen | None:
    """The entry that stops nodes now, of several the one that lasts longest."""
    standing = [one for one in calendar if one.begins <= now < one.ends]
    return max(standing, key=lambda one: one.ends, default=None)


def may_start(
    windows: Sequence[Window], calendar: Sequence[Frozen], now: datetime
) -> datetime | None:
    """The first moment from now on at which a window is open and nothing is frozen; None where no
    such moment can be named.
    """
    moment = now
    for _ in range(FARTHEST):
        if (frozen := frozen_by(calendar, moment)) is not None:
            moment = frozen.ends
        elif not is_open(windows, moment):
            opening = opens_next(windows, moment)
            if opening is None:
                return None
            moment = opening
        else:
            return moment
    return None


def said(moment: datetime, now: datetime, zone: str) -> str:
    """A moment in words: "Mon 09:00 CET", with its date where it is a week away or more."""
    local = moment.astimezone(ZoneInfo(zone))
    day = DAYS[local.weekday()]
    if abs(moment - now) >= WEEK - timedelta(days=1):
        day = f"{day} {local.day} {MONTHS[local.month - 1]}"
    return f"{day} {local:%H:%M} {local.tzname()}"


def about(length: timedelta) -> str:
    """A length of time in words: "about 2 h"."""
    minutes = max(length.total_seconds(), 0) / 60
    if minutes < 1.5:
        return "about 1 min"
    if minutes < 90:
        return f"about {round(minutes)} min"
    if minutes < 36 * 60:
        return f"about {round(minutes / 60)} h"
    return f"about {round(minutes / 60 / 24)} days"


def _weekdays(days: frozenset[int]) -> str:
    """ "Mon to Thu", "Mon, Wed", "every day"."""
    found = sorted(days)
    if len(found) == len(DAYS):
        return "every day"
    if len(found) > 2 and found[-1] - found[0] == len(found) - 1:
        return f"{DAYS[found[0]]} to {DAYS[found[-1]]}"
    return ", ".join(DAYS[one] for one in found)
