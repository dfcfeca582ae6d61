"""Judging clocks and certificates. Pure; `now` is in the look."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from devices.doctor.findings import Area, Finding, Section, Severity
from devices.doctor.seen import Seen, Unseen

#: More than this, and leases, tokens and figures' ages are wrong.
CLOCKS_APART: Final = timedelta(seconds=5)
SOON: Final = timedelta(days=21)


def clocks(seen: Seen) -> Section:
    """This machine's, PostgreSQL's and the API server's."""
    found = []
    apart = abs(seen.now - seen.database.clock)
    words = f"PostgreSQL is {apart.total_seconds():.1f} s apart"
    if apart > CLOCKS_APART:
        found.append(_clock_off("PostgreSQL", apart))
    if isinstance(seen.server_clock, Unseen):
        words += ", the API server's clock was not seen"
    else:
        # The API server stamps whole seconds.
        apart = max(timedelta(0), abs(seen.now - seen.server_clock) - timedelta(seconds=1))
        words += f", the API server {apart.total_seconds():.0f} s"
        if apart > CLOCKS_APART:
            found.append(_clock_off("API server", apart))
    return Section(Area.CLOCK, f"{words}.", tuple(found))


def _clock_off(whose: str, apart: timedelta) -> Finding:
    return Finding(
        "CLOCK_OFF",
        Severity.ERROR,
        whose,
        f"Its clock and this machine's are {apart.total_seconds():.0f} s apart: ages, leases and "
        "tokens are judged wrongly.",
        "Let both follow the same time server.",
    )


def certificates(seen: Seen) -> Section:
    """When each that somebody showed us is over."""
    found, ends = [], []
    for of, one in sorted(seen.certificates.items()):
        if isinstance(one, Unseen):
            found.append(
                Finding(
                    "CERTIFICATE_UNKNOWN", Severity.INFO, of, one.why, "Look at it by other means."
                )
            )
            continue
        ends.append(one.ends)
        left = one.ends - seen.now
        if left < SOON:
            over = left < timedelta(0)
            found.append(
                Finding(
                    "CERTIFICATE_EXPIRES",
                    Severity.ERROR if over else Severity.WARNING,
                    of,
                    f"It is over since {one.ends:%F}." if over else f"It is over on {one.ends:%F}.",
                    "Have it renewed.",
                )
            )
    words = f"The first is over on {min(ends):%F}." if ends else "None was seen."
    return Section(Area.CERTIFICATES, words, tuple(found))
