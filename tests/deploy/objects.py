"""Small objects that a tenant may try, one builder a noun."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]
RESOURCE = "resource.k8s.io/v1"
IMPLICIT = "deviceclass.resource.kubernetes.io/"


def request(*classes: str, **more: Any) -> Obj:
    """A request for one class, or for the first available of several."""
    if len(classes) == 1:
        return {"name": "r", "exactly": {"deviceClassName": classes[0], **more}}
    alternatives = [
        {"name": f"a{number}", "deviceClassName": name} for number, name in enumerate(classes)
    ]
    return {"name": "r", "firstAvailable": alternatives}


def claim(name: str, *requests: Obj, **metadata: Any) -> Obj:
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": list(requests)}},
    }


def template(name: str, *requests: Obj, of_claims: Obj | None = None, **metadata: Any) -> Obj:
    spec: Obj = {"spec": {"devices": {"requests": list(requests)}}}
    if of_claims is not None:
        spec["metadata"] = of_claims
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def pod(
    name: str,
    *,
    limits: Obj | None = None,
    init_limits: Obj | None = None,
    claims: dict[str, str] | None = None,
    templates: dict[str, str] | None = None,
    metadata: Obj | None = None,
    **spec: Any,
) -> Obj:
    """A Pod; `claims` and `templates` map its own names for claims to objects."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **(metadata or {})},
        "spec": pod_spec(limits, init_limits, claims or {}, templates or {}) | spec,
    }


def pod_spec(
    limits: Obj | None = None,
    init_limits: Obj | None = None,
    claims: dict[str, str] | None = None,
    templates: dict[str, str] | None = None,
) -> Obj:
    main: Obj = {"name": "main", "image": "example.com/none", "resources": {}}
    if limits:
        main["resources"]["limits"] = limits
    references = [{"name": own, "resourceClaimName": to} for own, to in (claims or {}).items()]
    references += [
        {"name": own, "resourceClaimTemplateName": to} for own, to in (templates or {}).items()
    ]
    spec: Obj = {"containers": [main], "terminationGracePeriodSeconds": 0}
    if references:
        main["resources"]["claims"] = [{"name": one["name"]} for one in references]
        spec["resourceClaims"] = references
    if init_limits:
        first = {"name": "first", "image": "example.com/none", "resources": {"limits": init_limits}}
        spec["initContainers"] = [first]
    return spec


def deployment(name: str, **spec: Any) -> Obj:
    """One replica of a Pod."""
    return _workload("Deployment", name, pod_spec(**spec), replicas=1)


def daemonset(name: str, **spec: Any) -> Obj:
    """A Pod on each node, or where `spec` says; `spec` are fields of the Pod."""
    return _workload("DaemonSet", name, pod_spec() | spec)


def _workload(kind: str, name: str, pod: Obj, **spec: Any) -> Obj:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def device_class(name: str, *, driver: str, extended: str = "") -> Obj:
    spec: Obj = {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}
    if extended:
        spec["extendedResourceName"] = extended
    return {"kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def resource_slice(name: str, *, driver: str, node: str = "", owner: Obj | None = None) -> Obj:
    """A slice of one node, or (without one) of all."""
    where: Obj = {"nodeName": node} if node else {"allNodes": True}
    metadata: Obj = {"name": name}
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"],
            }
        ]
    return {
        "apiVersion": RESOURCE,
        "kind": "ResourceSlice",
        "metadata": metadata,
        "spec": {
            "driver": driver,
            **where,
            "pool": {"name": node or "everywhere", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"d{number}"} for number in range(4)],
        },
    }
