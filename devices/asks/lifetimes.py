"""How long an ask may last, and when its end is announced. Pure.

At its end Berth takes the ask's claim or template out of the cluster, and Kubernetes keeps a claim
in use until its last Pod ends: nothing is evicted. So every sentence here speaks of Berth's part.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from tenants.longest import MOST_DAYS

#: Days before the end at which its people are told, the earliest first.
WARNINGS: Final = (7, 1)
#: So long before its end an ask counts as one that ends soon.
SOON: Final = timedelta(days=WARNINGS[0])


def bound(*longest: int | None) -> int | None:
    """The strictest of several maxima; None where there is none."""
    given = [days for days in longest if days is not None]
    return min(given) if given else None


def days_given(days: int | None, longest: int | None) -> int | None:
    """What counts where nothing was said: the maximum, or no end where there is none."""
    return longest if days is None else days


def wrong_days(days: int | None, longest: int | None) -> str:
    """A sentence where `days` cannot be taken; empty where they can. None means no end."""
    most = MOST_DAYS if longest is None else longest
    if days is None:
        return "" if longest is None else f"It must end: give a whole number from 1 to {most}."
    if not 1 <= days <= most:
        rest = "" if longest is None else " Extend it later if you still need it."
        return f"Give a whole number of days from 1 to {most}.{rest}"
    return ""


def end_of(days: int | None, now: datetime) -> datetime | None:
    """The moment at which an ask of so many days is over, counted from now."""
    return None if days is None else now + timedelta(days=days)


def lasts(asked_at: datetime, expires_at: datetime | None) -> int | None:
    """For how many days somebody would ask to get such an end again; None without an end."""
    if expires_at is None:
        return None
    return max(1, min(MOST_DAYS, round((expires_at - asked_at) / timedelta(days=1))))


def warned_from_the_start(expires_at: datetime | None, now: datetime) -> int | None:
    """The warnings that are over as soon as an end is set: whoever asks for three days needs no
    telling that it ends within seven.
    """
    if expires_at is None:
        return None
    over = [days for days in WARNINGS if expires_at - now <= timedelta(days=days)]
    return min(over) if over else None


def warning_due(expires_at: datetime | None, warned: int | None, now: datetime) -> int | None:
    """Which warning is to be given now, in days before the end; None where none is.

    Where several were missed only the last one is given.
    """
    reached = warned_from_the_start(expires_at, now)
    if reached is None or (warned is not None and warned <= reached):
        return None
    return reached


def ends_soon(expires_at: datetime | None, now: datetime) -> bool:
    """Whether the end is near enough to be said beside the state."""
    return expires_at is not None and expires_at - now <= SOON
