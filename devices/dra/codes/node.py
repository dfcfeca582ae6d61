"""Codes for a Pod that is bound: getting devices ready, using them, giving them back."""

from __future__ import annotations

from datetime import timedelta

from devices.dra.codes.kinds import Class, Code, Who, table

_SOON = timedelta(minutes=2)

CODES = table(
    Code(
        "RUNNING",
        Class.INFORMATION,
        Who.NOBODY,
        "A Pod runs with the devices.",
        "Nothing to do.",
    ),
    Code(
        "PREPARING",
        Class.RETRYABLE,
        Who.NOBODY,
        "The devices are chosen; the node is getting them ready.",
        "It takes seconds.",
        _SOON,
    ),
    Code(
        "STARTING",
        Class.INFORMATION,
        Who.NOBODY,
        "The devices are ready; the containers are starting.",
        "Images are fetched, then the containers run.",
    ),
    Code(
        "NOT_RESERVED",
        Class.RETRYABLE,
        Who.NOBODY,
        "The devices are held, and no Pod uses them.",
        "Kubernetes gives them back within a minute.",
        timedelta(minutes=1),
    ),
    Code(
        "PREPARE_DRIVER_UNREACHABLE",
        Class.RETRYABLE,
        Who.NOBODY,
        "The driver on the node does not answer.",
        "The node keeps trying; if the driver stays away, somebody has to restart it.",
        timedelta(minutes=6),
    ),
    Code(
        "PREPARE_CALL_FAILED",
        Class.RETRYABLE,
        Who.PLATFORM,
        "The driver on the node answered with a failure or not in time.",
        "The node keeps trying; look at the driver's log if it does not pass.",
    ),
    Code(
        "PREPARE_CONFIG_REFUSED",
        Class.NOT_RETRYABLE,
        Who.PLATFORM,
        "The driver does not take the settings that the template sends it.",
        "Correct the settings in the template; the Pod and its claim have to be made again.",
    ),
    Code(
        "PREPARE_ALREADY_IN_USE",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The device is already prepared for another claim: it was given out twice.",
        "Find out which claim may keep it; making the Pod again only repeats it.",
    ),
    Code(
        "PREPARE_DEVICE_FAULT",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The driver cannot reach the hardware.",
        "Stop sending work to the device, and repair the node.",
    ),
    Code(
        "PREPARE_FAILED",
        Class.UNKNOWN,
        Who.PLATFORM,
        "The driver cannot get the devices ready, and says why in words that Berth lacks.",
        "The driver's own words say what it met; the node keeps trying.",
    ),
    Code(
        "PREPARE_CLAIM_UNREADABLE",
        Class.RETRYABLE,
        Who.PLATFORM,
        "The node cannot read the claim.",
        "It tries again; look at the node's rights and network if it does not pass.",
    ),
    Code(
        "PREPARE_NOT_RESERVED",
        Class.NOT_RETRYABLE,
        Who.TENANT,
        "The Pod was put on the node past the scheduler, so the claim is not reserved for it.",
        "Make the Pod again without naming a node.",
    ),
    Code(
        "PREPARE_LEFTOVER",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The node still holds an older claim of the same name.",
        "Let the node give it back; do not force the deletion of Pods.",
    ),
    Code(
        "PREPARE_BEING_UNPREPARED",
        Class.RETRYABLE,
        Who.NOBODY,
        "The node is still giving back the same claim for a Pod that ended.",
        "It tries again when that is done.",
    ),
    Code(
        "PREPARE_DRIVER_SKIPPED",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The driver answered for fewer or other claims than it was asked about.",
        "That is a fault of the driver: report it, and restart it.",
    ),
    Code(
        "CDI_DEVICES_MISSING",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The container runtime does not find the device's description, as after a reboot.",
        "Restart the driver on the node, then make the Pod again.",
    ),
    Code(
        "NODE_STATE_BROKEN",
        Class.RETRYABLE,
        Who.PLATFORM,
        "The node cannot keep its own notes about claims.",
        "It tries again; look at the node's disk and kubelet.",
    ),
    Code(
        "UNPREPARE_FAILED",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "The Pod cannot end: the driver that must give its devices back does not answer.",
        "Bring the driver back. Deleting the Pod by force would leak the devices.",
    ),
    Code(
        "DEVICE_NOT_READY",
        Class.RETRYABLE,
        Who.PLATFORM,
        "The driver says that some of the devices are not ready.",
        "The node keeps trying; the driver's message says what it met.",
    ),
    Code(
        "DEVICE_UNHEALTHY",
        Class.NEEDS_CLEANUP,
        Who.PLATFORM,
        "A device that the Pod uses is reported as unhealthy.",
        "Save your work; the device has to be looked after.",
    ),
    Code(
        "EVICTED_BY_DEVICE_TAINT",
        Class.RETRYABLE,
        Who.PLATFORM,
        "The Pod is being ended because one of its devices was taken out of service.",
        "A Pod that a controller looks after is started again on other devices.",
    ),
    Code(
        "DRIVER_NOT_PUBLISHING",
        Class.RETRYABLE,
        Who.PLATFORM,
        "The node is there, but its driver publishes no devices.",
        "The Pod goes on when the driver returns; if it does not, the Pod has to be made again.",
        timedelta(minutes=3),
    ),
    Code(
        "ENDED",
        Class.INFORMATION,
        Who.NOBODY,
        "The Pod has ended.",
        "Kubernetes gives its devices back.",
    ),
)
