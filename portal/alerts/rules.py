"""Whom an alert is told, when, and how often. Pure; knows no database.

An alert is one state of affairs: while it lasts, whatever says so again only counts (its
*fingerprint* is the same). It is told through every route that it matches, unless a silence covers
it, once when it opens and once when it is over; a route may have a second channel for what nobody
took on in time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class Severity(StrEnum):
    """How soon somebody should look: when there is time, today, now."""

    NOTICE = "notice"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Medium(StrEnum):
    """How a channel reaches people. The bell is no channel: every alert stands there."""

    WEBHOOK = "webhook"
    MAIL = "mail"


class Happening(StrEnum):
    """What a delivery tells."""

    OPENED = "opened"
    ESCALATED = "escalated"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Told:
    """What routes and silences look at. `tenant` is empty for the platform's own alerts."""

    code: str
    failure_class: str
    severity: Severity
    tenant: str


@dataclass(frozen=True, slots=True)
class Match:
    """Which alerts are meant; an empty field means any. `least` is the lowest severity."""

    code: str = ""
    failure_class: str = ""
    tenant: str = ""
    least: Severity = Severity.NOTICE

    def covers(self, told: Told) -> bool:
        return (
            self.code in ("", told.code)
            and self.failure_class in ("", told.failure_class)
            and self.tenant in ("", told.tenant)
            and told.severity.rank >= self.least.rank
        )


@dataclass(frozen=True, slots=True)
class Quiet:
    """A silence: what it covers, and its end, which every silence has."""

    match: Match
    until: datetime


def fingerprint(code: str, tenant: str, subject: str) -> str:
    """The same for whatever says the same of the same thing; 32 hexadecimal digits."""
    return hashlib.sha256("\n".join((code, tenant, subject)).encode()).hexdigest()[:32]


def silenced(told: Told, silences: Iterable[Quiet], now: datetime) -> bool:
    """Whether it must not be told now. It stands at the bell nevertheless."""
    return any(one.until > now and one.match.covers(told) for one in silences)


#: Attempts of one delivery, the first one included.
MOST_ATTEMPTS = 10
FIRST_PAUSE = timedelta(seconds=15)
LONGEST_PAUSE = timedelta(hours=4)


def pause(attempts: int, chance: float) -> timedelta:
    """How long to wait after `attempts` failures: 15 s, 1 min, 4 min, 16 min, … at most 4 h.

    `chance`, from 0 to 1, shortens it by up to a quarter, so that what failed together is not
    tried again together.
    """
    whole = min(FIRST_PAUSE * 4 ** (min(attempts, 12) - 1), LONGEST_PAUSE)
    return whole * (1 - chance / 4)


def escalates_at(opened_at: datetime, after: timedelta | None) -> datetime | None:
    """When a route's second channel is told, unless somebody took the alert on before."""
    return None if after is None else opened_at + after
