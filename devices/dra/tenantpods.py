"""Pods of a namespace that use devices, as closing a tenant and adopting a namespace look at them.

A Pod uses devices where it names claims, has some that were made for it, carries the label of an
ask, or asks for an extended resource that leads to devices. Pure.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from devices.dra.closing import Holder
from devices.dra.names import CLAIM_LABEL
from devices.dra.namespaces import IMPLICIT
from devices.dra.podends import expected_end
from devices.dra.pods import TERMINAL, Pod, read_pod
from devices.dra.reading import Raw, Unreadable

#: What stands for a Pod that this version cannot read: nobody knows, so it counts as a user.
UNREADABLE: Final = "?"


def holder(raw: Raw, guarded: Collection[str]) -> Holder | None:
    """The Pod as a closing waits for it; None where it has finished or uses no device.

    `guarded` are explicit extended-resource names that lead to devices.
    """
    meta = raw.get("metadata") or {}
    if (raw.get("status") or {}).get("phase") in TERMINAL:
        return None
    try:
        pod = read_pod(raw)
        uses = used(pod, guarded)
        ends_at = expected_end(pod)
    except Unreadable:
        uses, ends_at = frozenset({UNREADABLE}), None
    if not uses:
        return None
    return Holder(
        namespace=str(meta.get("namespace") or ""),
        name=str(meta.get("name") or ""),
        uses=uses,
        ends_at=ends_at,
        leaving=bool(meta.get("deletionTimestamp")),
    )


def used(pod: Pod, guarded: Collection[str]) -> frozenset[str]:
    """Names of claims, templates and extended resources that a Pod uses, and of the ask that its
    label names; empty where it uses no device.
    """
    named = {name for claim in pod.claims for name in (claim.claim, claim.template)}
    made = {name for name in (*pod.generated.values(), pod.extended_claim) if name}
    label = pod.meta.labels.get(CLAIM_LABEL, "")
    return frozenset({*named, *made, *resources(pod, guarded), label} - {""})


def resources(pod: Pod, guarded: Collection[str]) -> frozenset[str]:
    """The extended resources of devices that its containers ask for."""
    return frozenset(
        name
        for container in pod.containers
        for name in (*container.requests, *container.limits)
        if name in guarded or name.startswith(IMPLICIT)
    )
