"""Who holds a claim: each of its consumers, found by uid, and what that makes of the claim.

Consumers are matched by uid and never by name: a Pod that was made anew under an old name is
another Pod.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from devices.dra.claims import (
    EXTENDED_ANNOTATION,
    MOST_CONSUMERS,
    POD_CLAIM_ANNOTATION,
    Claim,
    Consumer,
)
from devices.dra.pods import Pod
from devices.dra.snapshot import Snapshot


class Presence(StrEnum):
    """What became of a consumer."""

    PRESENT = "present"
    ENDED = "ended"
    """The Pod is there and uses nothing any more; its reservation goes soon."""
    REPLACED = "replaced"
    """Another Pod has its name now; the consumer itself is gone."""
    GONE = "gone"
    NOT_A_POD = "not a Pod"
    """A Pod group or something else that nobody can look up here."""

    @property
    def absent(self) -> bool:
        """Whether the consumer no longer exists."""
        return self in (Presence.GONE, Presence.REPLACED)


@dataclass(frozen=True, slots=True)
class Holder:
    """One consumer of a claim; ``pod`` is None where no such Pod is there."""

    consumer: Consumer
    presence: Presence
    pod: Pod | None = None


class Hold(StrEnum):
    """Whether a claim holds devices, and for whom; from its own object and the Pods there are."""

    PENDING = "pending"
    ALLOCATED = "allocated, not reserved"
    IN_USE = "in use"
    STALE = "reserved for nobody who exists"
    DELETING = "deleting"


class Origin(StrEnum):
    """Who made a claim."""

    PERSON = "somebody"
    TEMPLATE = "made for a Pod from a template"
    EXTENDED = "made by the scheduler"
    PRETENDED = "says it was made by the scheduler"


def pods_by_uid(snapshot: Snapshot) -> Mapping[str, Pod]:
    """Every Pod of the snapshot by its uid."""
    return snapshot.once("pods by uid", lambda s: {p.meta.uid: p for p in s.pods.values()})


def holders(claim: Claim, snapshot: Snapshot) -> tuple[Holder, ...]:
    """The consumers that a claim is reserved for, in its own order."""
    by_uid = pods_by_uid(snapshot)
    return tuple(_holder(claim, consumer, by_uid, snapshot) for consumer in claim.reserved_for)


def hold(claim: Claim, held_by: tuple[Holder, ...]) -> Hold:
    """Where the claim stands. Deleting comes first: nobody new gets such a claim."""
    if claim.meta.deleted is not None:
        return Hold.DELETING
    if claim.allocation is None:
        return Hold.PENDING
    if not held_by:
        return Hold.ALLOCATED
    return Hold.STALE if all(h.presence.absent for h in held_by) else Hold.IN_USE


def full(claim: Claim) -> bool:
    """Whether the claim has as many consumers as Kubernetes allows."""
    return len(claim.reserved_for) >= MOST_CONSUMERS


def origin(claim: Claim, snapshot: Snapshot) -> Origin:
    """Who made the claim. Tenants can write annotations and owners, so a claim counts as made by
    the scheduler only where its Pod's status names exactly this claim.
    """
    if claim.meta.annotations.get(EXTENDED_ANNOTATION) == "true":
        owner = owner_pod(claim, snapshot)
        believed = owner is not None and owner.extended_claim == claim.meta.name
        return Origin.EXTENDED if believed else Origin.PRETENDED
    generated = POD_CLAIM_ANNOTATION in claim.meta.annotations and _controller(claim) is not None
    return Origin.TEMPLATE if generated else Origin.PERSON


def owner_pod(claim: Claim, snapshot: Snapshot) -> Pod | None:
    """The Pod that controls the claim, where it is there."""
    uid = _controller(claim)
    pod = pods_by_uid(snapshot).get(uid) if uid else None
    return pod if pod is not None and pod.meta.namespace == claim.meta.namespace else None


def claims_of(pod: Pod, snapshot: Snapshot) -> dict[str, Claim | None]:
    """The claims that a Pod uses, by the Pod's own name for each (see `used_claims`)."""
    return used_claims(pod, lambda name: snapshot.claims.get((pod.meta.namespace, name)))


def used_claims(pod: Pod, find: Callable[[str], Claim | None]) -> dict[str, Claim | None]:
    """The claims that a Pod uses, by the Pod's own name for each (None: not there yet), with the
    one that the scheduler made for its extended resources under an empty name. An entry for which
    no claim was needed is left out. ``find`` gives a claim of the Pod's namespace by name.
    """
    found: dict[str, Claim | None] = {}
    for entry in pod.claims:
        name: str | None = entry.claim
        if not name:
            if entry.name in pod.generated and pod.generated[entry.name] is None:
                continue
            name = pod.generated.get(entry.name)
        found[entry.name] = find(name) if name else None
    if pod.extended_claim:
        found[""] = find(pod.extended_claim)
    return found


def _holder(
    claim: Claim, consumer: Consumer, by_uid: Mapping[str, Pod], snapshot: Snapshot
) -> Holder:
    if consumer.api_group or consumer.resource != "pods":
        return Holder(consumer, Presence.NOT_A_POD)
    pod = by_uid.get(consumer.uid)
    if pod is not None:
        return Holder(consumer, Presence.ENDED if pod.finished else Presence.PRESENT, pod)
    namesake = (claim.meta.namespace, consumer.name) in snapshot.pods
    return Holder(consumer, Presence.REPLACED if namesake else Presence.GONE)


def _controller(claim: Claim) -> str | None:
    for owner in claim.meta.owners:
        if owner.controller and owner.kind == "Pod":
            return owner.uid
    return None
