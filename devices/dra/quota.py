"""What claims are charged to a device quota: by what they ask for when they are made, not by what
they get.

Source: ``pkg/quota/v1/evaluator/core/resource_claims.go``. Administrative access is free for
capacity and is charged all the same; a claim that is being deleted is charged until it is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from devices.dra.claims import (
    ALL,
    EXACT,
    MOST_DEVICES,
    Ask,
    Claim,
    ClaimSpec,
    read_claim_spec,
)
from devices.dra.holders import Origin, origin, owner_pod
from devices.dra.podrequests import container_requests
from devices.dra.quantity import ZERO, Quantity
from devices.dra.reading import Raw
from devices.dra.snapshot import Snapshot


def devices_asked(spec: ClaimSpec) -> Mapping[str, int]:
    """By class, how many devices a claim with this spec is charged. ``All`` counts as 32, the most
    that a claim can hold; of alternatives each class is charged its own worst one.
    """
    total: Counter[str] = Counter()
    for request in spec.requests:
        worst: dict[str, int] = {}
        for ask in request.asks:
            worst[ask.device_class] = max(worst.get(ask.device_class, 0), _count(ask))
        total.update(worst)
    return dict(total)


def rendered_devices(devices: Raw, *, times: int = 1) -> Mapping[str, int]:
    """By class, what `times` claims with this rendered ``spec.devices`` are charged.

    A template is charged nothing until Pods use it; an ask for up to n Pods at once counts n times
    from the start, because it must never be refused later what it was promised.
    """
    asked = devices_asked(read_claim_spec({"devices": devices}, "spec", []))
    return {device_class: count * times for device_class, count in asked.items()}


def capacity_asked(spec: ClaimSpec, device_class: str, capacity: str) -> Quantity | None:
    """How much of one consumable capacity of a class a claim asks for, of alternatives the worst.

    None where some request of the class does not say how much: the device's own default decides
    then, which differs by device (KEP-5075). Kubernetes has no quota for it.
    """
    total = ZERO
    for request in spec.requests:
        worst = ZERO
        for ask in request.asks:
            if ask.device_class != device_class:
                continue
            amount = (ask.capacity or {}).get(capacity)
            if amount is None:
                return None
            worst = max(worst, amount * _count(ask))
        total += worst
    return total


def namespace_devices(claims: Iterable[Claim]) -> Mapping[str, int]:
    """By class, what claims are charged together: ``<class>.deviceclass.resource.k8s.io/devices``.
    Annotations change nothing here, whoever wrote them.
    """
    total: Counter[str] = Counter()
    for claim in claims:
        total.update(devices_asked(claim.spec))
    return dict(total)


def extended_devices(snapshot: Snapshot, namespace: str) -> Mapping[str, int]:
    """By extended resource, what a namespace is charged (``requests.<name>``): what its Pods ask
    for, and its claims of the class that serves it, less what a claim's own Pod was charged.

    Only a claim that its Pod's status names is taken as made for that Pod.
    """
    served = {c.name: c.extended_resource for c in snapshot.classes.values() if c.extended_resource}
    total: Counter[str] = Counter()
    for pod in snapshot.pods.values():
        if pod.meta.namespace == namespace and not pod.finished:
            for resource, amount in container_requests(pod).items():
                if resource in served.values():
                    total[resource] += amount.rounded_up()
    for claim in snapshot.claims.values():
        if claim.meta.namespace != namespace:
            continue
        owner = owner_pod(claim, snapshot)
        paid = (
            container_requests(owner)
            if owner is not None and origin(claim, snapshot) is Origin.EXTENDED
            else {}
        )
        for device_class, count in devices_asked(claim.spec).items():
            resource = served.get(device_class, "")
            if resource:
                already = paid[resource].rounded_up() if resource in paid else 0
                total[resource] += max(count - already, 0)
    return dict(total)


def _count(ask: Ask) -> int:
    if ask.mode == ALL:
        return MOST_DEVICES
    return ask.count if ask.mode == EXACT else 0
