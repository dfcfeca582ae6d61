"""Claims that should not be as they are: held for nobody, or holding what another one holds.

They are written past the scheduler, as somebody with too many rights would. The claim controller
leaves a claim alone that was never reserved, so it stays until somebody deletes it.
"""

from __future__ import annotations

from typing import Any

from devices.cluster.gateway import Ref
from playground.errors import PlaygroundError
from playground.faults.parts import Ground, NodeParts, at

Obj = dict[str, Any]


def begin_claim_leaked(
    ground: Ground, *, node: str, claim: str, namespace: str, device_class: str, driver: str = ""
) -> str:
    """A claim holds an idle device of the node, and nobody uses it."""
    parts = at(ground, node)
    device = _idle(parts, driver)
    _hold(parts, claim, namespace, device_class, device)
    return f"{namespace}/{claim} holds {'/'.join(device)} for nobody"


def end_claim_leaked(ground: Ground, *, node: str, claim: str, namespace: str) -> str:
    """The claim is deleted."""
    _delete(at(ground, node), claim, namespace)
    return f"{namespace}/{claim} is deleted"


def begin_device_doubled(
    ground: Ground, *, node: str, claim: str, namespace: str, device_class: str, driver: str = ""
) -> str:
    """Two claims, CLAIM-a and CLAIM-b, hold the same idle device of the node."""
    parts = at(ground, node)
    device = _idle(parts, driver)
    for end in "ab":
        _hold(parts, f"{claim}-{end}", namespace, device_class, device)
    return f"{namespace}/{claim}-a and -b both hold {'/'.join(device)}"


def end_device_doubled(ground: Ground, *, node: str, claim: str, namespace: str) -> str:
    """Both are deleted."""
    for end in "ab":
        _delete(at(ground, node), f"{claim}-{end}", namespace)
    return f"{namespace}/{claim}-a and -b are deleted"


def _idle(parts: NodeParts, driver: str) -> tuple[str, str, str]:
    """Driver, pool and name of a device that no claim holds."""
    _, slices = parts.slices(driver)
    held = {
        (one["driver"], one["pool"], one["device"])
        for claim in parts.admin.list("ResourceClaim").items
        for one in _results(claim)
    }
    for slice_ in slices:
        spec = slice_["spec"]
        for device in spec.get("devices", ()):
            found = (spec["driver"], spec["pool"]["name"], device["name"])
            if found not in held:
                return found
    raise PlaygroundError("Every device of the node is in use.")


def _results(claim: Obj) -> list[Obj]:
    allocation = claim.get("status", {}).get("allocation") or {}
    return list(allocation.get("devices", {}).get("results", ()))


def _hold(
    parts: NodeParts, name: str, namespace: str, device_class: str, device: tuple[str, str, str]
) -> None:
    driver, pool, unit = device
    exactly = {"deviceClassName": device_class}
    parts.admin.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        }
    )
    result = {"request": "gpu", "driver": driver, "pool": pool, "device": unit}
    status = {"status": {"allocation": {"devices": {"results": [result]}}}}
    parts.admin.merge(Ref("ResourceClaim", name, namespace), status, subresource="status")


def _delete(parts: NodeParts, name: str, namespace: str) -> None:
    parts.admin.delete(Ref("ResourceClaim", name, namespace))
