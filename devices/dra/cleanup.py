"""What a person may have cleaned away, judged on objects read a moment ago. Pure.

The only act is to delete a claim, under preconditions (uid and resourceVersion): the controller
gives its devices back then. No status is ever written: whether devices are free is Kubernetes' own
business. A claim that a living Pod holds, or waits for, is never deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

from devices.dra.claims import Claim, DeviceKey
from devices.dra.holders import used_claims
from devices.dra.pods import Pod
from devices.dra.wording import some_of

#: Findings that end with their claim. The others need a decision that no program can take.
CLEANABLE: Final = frozenset(
    {
        "LEAK_UNRESERVED",
        "LEAK_RESERVED_BY_GONE_POD",
        "LEAK_RESERVED_BY_ENDED_POD",
        "LEAK_ORPHANED",
        "LEAK_GENERATED_CLAIM",
    }
)


@dataclass(frozen=True, slots=True)
class Deletion:
    """The one act: delete this claim, if it is still exactly this one."""

    namespace: str
    name: str
    uid: str
    version: str
    frees: tuple[DeviceKey, ...]


@dataclass(frozen=True, slots=True)
class Spared:
    """Why nothing is deleted: a stable code, and a sentence with names."""

    code: str
    words: str


def cleanup(
    code: str, uid: str, claim: Claim | None, version: str, pods: Iterable[Pod] | None
) -> Deletion | Spared:
    """What is to do about a finding of this code on the claim of this uid.

    ``claim`` and ``pods`` (all of its namespace) are read live, just before; None is what could
    not be read. ``version`` is the claim's resourceVersion.
    """
    if code not in CLEANABLE:
        return Spared("CLEANUP_NEEDS_DECISION", "Deleting a claim does not mend this.")
    if claim is None or claim.meta.uid != uid:
        return Spared("CLEANUP_GONE", "The claim is gone, or another one has its name.")
    if pods is None:
        return Spared("CLEANUP_NOT_SEEN", "Its Pods could not be read, so nobody knows.")
    living = [pod for pod in pods if not pod.finished]
    if users := users_of(claim, living):
        names = some_of([pod.meta.name for pod in users], 3)
        return Spared("CLEANUP_IN_USE", f"It is used by {names}.")
    if strangers := [one for one in claim.reserved_for if one.api_group or one.resource != "pods"]:
        kind = strangers[0].resource
        return Spared("CLEANUP_NOT_A_POD", f"It is reserved for one of the {kind}: nobody knows.")
    if claim.meta.deleted is not None:
        return Spared("CLEANUP_UNDER_WAY", "It is being deleted already.")
    results = claim.allocation.results if claim.allocation else ()
    frees = tuple(result.key for result in results if not result.admin)
    return Deletion(claim.meta.namespace, claim.meta.name, uid, version, frees)


def users_of(claim: Claim, living: Collection[Pod]) -> list[Pod]:
    """Living Pods that hold the claim, own it, or name it and only wait to be let in."""
    held_by = {consumer.uid for consumer in claim.reserved_for}
    owners = {owner.uid for owner in claim.meta.owners}

    def named(pod: Pod) -> bool:
        found = used_claims(pod, lambda name: claim if name == claim.meta.name else None)
        return pod.meta.namespace == claim.meta.namespace and any(found.values())

    return [
        pod for pod in living if pod.meta.uid in held_by or pod.meta.uid in owners or named(pod)
    ]
