"""Codes for what a look over the whole cluster finds: leaks, owners, drift, ledger."""

from __future__ import annotations

from datetime import timedelta

from devices.dra.codes.kinds import Class, Code, Who, table

_MINUTE = timedelta(minutes=1)
#: A kubelet's restart makes slices dip for up to two or three minutes.
_DIP = timedelta(minutes=3)

CODES = table(
    # Leaks.
    Code(
        "LEAK_UNRESERVED",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A claim holds devices, and nobody uses it.",
        "The controller should have given them back: look at it, then release the claim.",
        _MINUTE,
    ),
    Code(
        "LEAK_RESERVED_BY_GONE_POD",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A claim holds devices for a Pod that no longer exists.",
        "Check that the node has given the device back, then drop the reservation.",
        timedelta(minutes=5),
    ),
    Code(
        "LEAK_RESERVED_BY_ENDED_POD",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A claim holds devices for Pods that have all ended.",
        "The controller should have dropped the reservation: look at it.",
        timedelta(minutes=5),
    ),
    Code(
        "LEAK_FINALIZER",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A claim is being deleted and cannot go: its devices are still held.",
        "Bring back the driver that must give them back. Never remove the finalizer by hand.",
        timedelta(minutes=5),
    ),
    Code(
        "LEAK_DOUBLE_ALLOCATION",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "One device is held by two claims that may not share it.",
        "Decide which claim keeps it; new work stays off the device until then.",
    ),
    Code(
        "LEAK_DEVICE_VANISHED",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A claim holds a device that its driver no longer publishes.",
        "Find out whether the device is broken; do not delete the claim while its Pod runs.",
        _DIP,
    ),
    Code(
        "LEAK_ORPHANED",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A claim holds a device of a node that no longer exists.",
        "Remove what is left of its Pods; then the claim can be released.",
        timedelta(minutes=5),
    ),
    Code(
        "LEAK_GENERATED_CLAIM",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A claim that was made for a Pod is still there, and the Pod is not.",
        "Kubernetes deletes it by itself; look at its controllers if it stays.",
        timedelta(minutes=5),
    ),
    Code(
        "INFO_DEVICE_NOT_PUBLISHED",
        Class.INFORMATION,
        Who.NOBODY,
        "A claim holds a device that its driver hides while it is used.",
        "Nothing to do.",
    ),
    Code(
        "CLAIM_PRETENDS_EXTENDED",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A claim says that the scheduler made it, and the Pod it names does not know it.",
        "Treat it as the tenant's own claim, and ask the tenant.",
    ),
    # Ownership.
    Code(
        "OWNER_CONFLICT",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A node offers the same devices twice: by a device plugin and by DRA.",
        "Keep new work off the node, then switch one of the two off.",
    ),
    Code(
        "OWNER_TWO_DRIVERS",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "Two drivers publish the same device.",
        "Switch one of the two drivers off on that node.",
    ),
    Code(
        "OWNER_SAME_DEVICE_TWICE",
        Class.INFORMATION,
        Who.NOBODY,
        "One driver publishes two views of one device; while one is used, the other is not free.",
        "Nothing to do.",
    ),
    # Drift.
    Code(
        "DRIFT_DRIVER_NOT_RUNNING",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The node should have devices, and its driver publishes no pool at all.",
        "Start the driver on the node.",
        _DIP,
    ),
    Code(
        "DRIFT_EMPTY_POOL",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The driver runs and publishes no device: it may have started before the hardware.",
        "Restart the driver on the node.",
        _DIP,
    ),
    Code(
        "DRIFT_DEVICES_MISSING",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The node publishes fewer devices than it should have.",
        "Look for a broken device on the node.",
        _DIP,
    ),
    Code(
        "DRIFT_DEVICES_TOO_MANY",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The node publishes more devices than it should have.",
        "Correct the node's inventory, or find out what is published twice.",
        _DIP,
    ),
    Code(
        "DRIFT_ALLOCATABLE_DIFFERS",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The device plugin offers another number of devices than the node should have.",
        "Look for a broken device on the node.",
        _DIP,
    ),
    Code(
        "DRIFT_POOL_INCOMPLETE",
        Class.RETRYABLE,
        Who.PLATFORM,
        "A pool is being published and is not complete.",
        "It takes seconds; longer than that is the driver's trouble.",
        _DIP,
    ),
    Code(
        "DRIFT_POOL_INVALID",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A pool contradicts itself, so nothing is given out of it.",
        "Tell the driver's owner; a tenant cannot mend it.",
    ),
    Code(
        "DRIFT_OLD_SLICES",
        Class.INFORMATION,
        Who.NOBODY,
        "Slices of an older generation are still there; they count for nothing.",
        "The driver removes them.",
    ),
    Code(
        "DRIFT_IDENTITY_CHANGED",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A device's name now means another piece of hardware.",
        "Freeze the node: a claim may point to hardware that it was never given.",
    ),
    Code(
        "DRIFT_RENAMED",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A device that is in use is still there, under another name.",
        "Freeze the node: its claim names a device that is not published any more.",
    ),
    Code(
        "DRIFT_CONFIGURATION",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "One driver publishes the same kind of device in two ways on different nodes.",
        "Give the driver one configuration; look for a feature that was off when it published.",
        _DIP,
    ),
    Code(
        "DRIFT_NOT_KNOWN",
        Class.UNKNOWN,
        Who.PLATFORM,
        "Nobody has said what the node should have.",
        "Record the node's inventory.",
    ),
    # Ledger.
    Code(
        "LEDGER_POD_STATUS_DIFFERS",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The Pod's status names another amount than its claims add up to.",
        "New claims on the node wait until they agree.",
    ),
    Code(
        "LEDGER_CLAIM_GONE",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A Pod is charged for a claim that no longer exists.",
        "It is charged until the Pod ends.",
    ),
    Code(
        "LEDGER_COUNTED_TWICE",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "Two Pods are charged for a claim that may serve one Pod only.",
        "It is counted once; find out which Pod should not have it.",
    ),
    Code(
        "LEDGER_UNKNOWN_SHAPE",
        Class.UNKNOWN,
        Who.PLATFORM,
        "A device costs something of its node in a way that Berth cannot read.",
        "The node's balance is unknown until a newer Berth reads it.",
    ),
    Code(
        "LEDGER_DEVICE_NOT_FOUND",
        Class.UNKNOWN,
        Who.PLATFORM,
        "A claim in use holds a device that nobody publishes, so what it costs is unknown.",
        "The node's balance is unknown until the device is published again.",
    ),
)
