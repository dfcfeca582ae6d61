"""Codes for one device: why it cannot be given to anybody now."""

from __future__ import annotations

from devices.dra.codes.kinds import Class, Code, Who, table

CODES = table(
    Code(
        "DEVICE_TAINTED",
        Class.RETRYABLE,
        Who.PLATFORM,
        "A taint closes the device to new work.",
        "Whoever put the taint there lifts it; what runs on the device stays.",
    ),
    Code(
        "COUNTERS_TAKEN",
        Class.RETRYABLE,
        Who.NOBODY,
        "Other partitions of the same hardware are in use.",
        "It is free again when they are.",
    ),
    Code(
        "CAPACITY_TAKEN",
        Class.RETRYABLE,
        Who.NOBODY,
        "All of the device's capacity is given out in shares.",
        "It is free again when a share is given back.",
    ),
    Code(
        "NODE_UNKNOWN",
        Class.UNKNOWN,
        Who.PLATFORM,
        "The device belongs to a node that nobody has seen.",
        "Its slice goes away when the node's driver or the node itself does.",
    ),
)
