"""Codes for a device that is not given: what the allocator found, by device and by node."""

from __future__ import annotations

from devices.dra.codes.kinds import Class, Code, Who, table

CODES = table(
    Code(
        "NO_DEVICE_IN_CLASS",
        Class.NOT_RETRYABLE,
        Who.PLATFORM,
        "No published device belongs to the class.",
        "Check that the driver runs and publishes what the class expects.",
    ),
    Code(
        "NO_DEVICE_MATCHES_SELECTOR",
        Class.NOT_RETRYABLE,
        Who.TENANT,
        "No device of the class has what is asked for.",
        "Relax the condition that excludes them all.",
        told="None of {total} devices of the class has {clause}.",
    ),
    Code(
        "NOT_ENOUGH_ON_ONE_NODE",
        Class.RETRYABLE,
        Who.TENANT,
        "Enough devices are free, but not on one node.",
        "Ask for fewer at once, or wait until one node has them free.",
    ),
    Code(
        "TOO_FEW_MATCH",
        Class.NOT_RETRYABLE,
        Who.TENANT,
        "Fewer devices match than are asked for, free or not.",
        "Ask for fewer, or relax a condition.",
        told="Only {left} devices match, and {need} are asked for.",
    ),
    Code(
        "NOT_TOGETHER_ON_ONE_NODE",
        Class.RETRYABLE,
        Who.TENANT,
        "Each part can be had, but no node has all of them together.",
        "Ask for the parts that belong together only, or wait until one node has them free.",
    ),
    Code(
        "ALL_DEVICES_NOT_FREE",
        Class.RETRYABLE,
        Who.TENANT,
        "Every matching device is asked for, and one of them is not free.",
        "Wait for it, or ask for a number of devices.",
    ),
    Code(
        "DEVICE_TAINTED",
        Class.RETRYABLE,
        Who.PLATFORM,
        "The devices that match are tainted.",
        "Wait until the taint is lifted, or tolerate it.",
    ),
    Code(
        "COUNTERS_TAKEN",
        Class.RETRYABLE,
        Who.NOBODY,
        "Other partitions of the same hardware are in use.",
        "It is free when their holders end.",
    ),
    Code(
        "CAPACITY_TAKEN",
        Class.RETRYABLE,
        Who.NOBODY,
        "Too little is left of the devices that are shared.",
        "Ask for less, or wait until other shares are given back.",
    ),
    Code(
        "CAPACITY_NOT_OFFERED",
        Class.NOT_RETRYABLE,
        Who.TENANT,
        "No matching device offers that amount.",
        "Ask for an amount that a device allows.",
    ),
    Code(
        "SEARCH_TOO_LONG",
        Class.NOT_RETRYABLE,
        Who.TENANT,
        "The scheduler gives up before it has tried every choice.",
        "Ask for fewer devices at once, or with simpler constraints.",
    ),
    Code(
        "SELECTOR_NOT_MODELLED",
        Class.UNKNOWN,
        Who.NOBODY,
        "A selector uses what the preview cannot compute.",
        "Submit it: the scheduler can answer.",
    ),
    Code(
        "ATTRIBUTE_UNSUPPORTED",
        Class.NOT_RETRYABLE,
        Who.PLATFORM,
        "A device publishes an attribute that the cluster cannot read.",
        "Turn the feature on, or let the driver publish it otherwise.",
    ),
    Code(
        "POOL_OBSOLETE",
        Class.RETRYABLE,
        Who.NOBODY,
        "A newer generation of the pool leaves this node out.",
        "The driver is replacing its slices; it usually takes seconds.",
    ),
    Code(
        "REQUEST_UNSUPPORTED",
        Class.NOT_RETRYABLE,
        Who.TENANT,
        "The request has a form that this cluster does not know.",
        "Ask in a form that it knows.",
    ),
    Code(
        "NODE_UNKNOWN",
        Class.UNKNOWN,
        Who.PLATFORM,
        "Slices name a node that does not exist.",
        "Find out whether the node is gone for good.",
    ),
)
