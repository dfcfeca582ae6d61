"""What a Pod asks of its node by itself, without its devices, as the scheduler adds it up.

Source: ``k8s.io/component-helpers/resource`` ``PodRequests``, by which the scheduler's NodeInfo
counts: containers together, or the greediest moment of starting up, whichever is more; a budget of
the Pod as a whole takes the place of that sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from devices.dra.pods import Container, Pod
from devices.dra.quantity import ZERO, Quantity
from devices.dra.reading import Raw, Unreadable, quantities

Amounts = dict[str, Quantity]
#: Resources for which a Pod may have a budget as a whole.
_BUDGETED: Final = frozenset({"cpu", "memory"})
HUGEPAGES: Final = "hugepages-"


def pod_requests(pod: Pod) -> Amounts:
    """What the Pod asks for, by resource: containers, the budget over them, and the overhead of
    running it. Without devices.
    """
    return plus((container_requests(pod) | budget(pod), pod.overhead))


def budget(pod: Pod) -> Amounts:
    """The requests of the Pod as a whole, which take the place of its containers' sum."""
    found = pod.pod_requests or {}
    return {name: amount for name, amount in found.items() if _may_be_budgeted(name)}


def container_requests(pod: Pod) -> Amounts:
    """What the containers need together, or while starting up, whichever is more of a resource.

    While a container is being resized in place, what it was given and what it has count as well:
    the most of the three, resource by resource.
    """
    seen = _container_statuses(pod.raw)
    wanted = _together(pod, lambda container: container.requests)
    if not seen:
        return wanted
    given = _together(pod, lambda c: seen.get(c.name, {}).get("allocated") or c.requests)
    has = _together(
        pod,
        lambda c: (
            seen.get(c.name, {}).get("actual")
            or seen.get(c.name, {}).get("allocated")
            or c.requests
        ),
    )
    return most((given, has) if _never_fits(pod.raw) else (wanted, given, has))


def plus(lists: Iterable[Mapping[str, Quantity]]) -> Amounts:
    """Several lists of amounts, added resource by resource."""
    total: Amounts = {}
    for amounts in lists:
        for name, amount in amounts.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def most(lists: Iterable[Mapping[str, Quantity]]) -> Amounts:
    """The greatest amount of each resource."""
    total: Amounts = {}
    for amounts in lists:
        for name, amount in amounts.items():
            if name not in total or amount > total[name]:
                total[name] = amount
    return total


def _together(pod: Pod, of: Callable[[Container], Mapping[str, Quantity]]) -> Amounts:
    """Containers and sidecars summed; an init container runs beside the sidecars before it."""
    running = plus(of(c) for c in pod.containers if not c.init or c.sidecar)
    beside: Amounts = {}
    starting: list[Amounts] = []
    for container in pod.containers:
        if not container.init:
            continue
        if container.sidecar:
            beside = plus((beside, of(container)))
            starting.append(beside)
        else:
            starting.append(plus((of(container), beside)))
    return most((running, *starting))


def _may_be_budgeted(name: str) -> bool:
    return name in _BUDGETED or name.startswith(HUGEPAGES)


def _container_statuses(raw: Raw) -> dict[str, dict[str, Amounts]]:
    """By container, what it was given and what it has, where its status says so and both differ
    from nothing. Only Pods that were resized in place (or may be) say so.
    """
    status = raw.get("status")
    if not isinstance(status, Mapping):
        return {}
    found: dict[str, dict[str, Amounts]] = {}
    for part in ("initContainerStatuses", "containerStatuses"):
        for item in status.get(part) or ():
            allocated = item.get("allocatedResources")
            actual = (item.get("resources") or {}).get("requests")
            if allocated or actual:
                found[item.get("name") or ""] = {
                    "allocated": _amounts(allocated),
                    "actual": _amounts(actual),
                }
    return found


def _amounts(raw: object) -> Amounts:
    """Amounts of a status; ones that cannot be read are left to what the spec says."""
    try:
        return quantities(raw, "status.containerStatuses")
    except Unreadable:
        return {}


def _never_fits(raw: Raw) -> bool:
    """Whether the kubelet has said that the size that is wanted cannot be given."""
    status = raw.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    return any(
        c.get("type") == "PodResizePending" and c.get("reason") == "Infeasible"
        for c in conditions or ()
    )


def amount_of(amounts: Mapping[str, Quantity], resource: str) -> Quantity:
    """The amount of one resource, zero where none is asked for."""
    return amounts.get(resource, ZERO)
