"""Codes about places that are closed because preparations fail there."""

from __future__ import annotations

from devices.dra.codes.kinds import Class, Code, Who, table

CODES = table(
    Code(
        "ISOLATION_PROPOSED",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "Devices cannot be got ready in one place far more often than elsewhere.",
        "Look at what closing it would touch, then close it or say why not.",
    ),
    Code(
        "DEVICES_ISOLATED",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "Devices are closed to new work because they could not be got ready.",
        "Repair the place; it opens by itself when a trial Pod runs, or when you open it.",
    ),
    Code(
        "ISOLATION_SHARE_REACHED",
        Class.NOT_RETRYABLE,
        Who.PLATFORM,
        "Closing it would close more of the pool than may be closed.",
        "Open what works again, or let an admin allow a larger share.",
    ),
)
