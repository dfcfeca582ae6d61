"""Operations that are to go: since when, until when, and what takes their place. Pure.

Said where programs look: headers `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link` on every
answer, `deprecated` in the OpenAPI document, a line in the CHANGELOG.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from django.utils.http import http_date

#: Nobody has less time than this to follow.
SHORTEST = timedelta(days=183)


@dataclass(frozen=True, slots=True)
class Ending:
    """An operation's end: deprecated `since`, there until the end of `until`.

    `instead` is the path of the operation that takes its place, "" where nothing does. Raises
    ValueError where there is less than `SHORTEST` between the two.
    """

    since: date
    until: date
    instead: str = ""

    def __post_init__(self) -> None:
        if self.until - self.since < SHORTEST:
            raise ValueError(f"{SHORTEST.days} days at least lie between since and until")

    def headers(self) -> dict[str, str]:
        """What each answer says."""
        said = {
            "Deprecation": f"@{_seconds(self.since)}",
            "Sunset": http_date(_seconds(self.until + timedelta(days=1)) - 1),
        }
        if self.instead:
            said["Link"] = f'<{self.instead}>; rel="successor-version"'
        return said

    def words(self) -> str:
        """A sentence for the OpenAPI document."""
        instead = f"Use {self.instead} instead." if self.instead else "Nothing takes its place."
        return f"Deprecated since {self.since}, answers until {self.until}. {instead}"


def _seconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
