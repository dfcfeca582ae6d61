"""Frozen wishes → whole raw objects; with `snapshot.py` the only place that knows raw field names.

Must not look at the cluster: the same wish always gives the same objects, pinned as YAML under
`tests/golden/` and checked by the real API servers' dry run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from devices.dra.names import (
    CLAIM_LABEL,
    MANAGED_LABEL,
    REQUEST_ID_ANNOTATION,
    TENANT_LABEL,
)
from devices.dra.taints import Toleration

Obj = dict[str, Any]
API_VERSION = "resource.k8s.io/v1"


class Shape(StrEnum):
    """What is made in the cluster for one ask."""

    CLAIM = "claim"  # one ResourceClaim, which several Pods may share
    TEMPLATE = "template"  # a ResourceClaimTemplate: each Pod gets a claim of its own

    @property
    def kind(self) -> str:
        return "ResourceClaim" if self is Shape.CLAIM else "ResourceClaimTemplate"


@dataclass(frozen=True, slots=True)
class DeviceWish:
    """One request of a claim: `count` devices of a class that satisfy every CEL selector.

    `capacity` pairs a qualified capacity name with a quantity (consumable capacity, KEP-5075).
    With `alternatives` the first of them that works is taken, and all else stands there (KEP-4816).
    """

    name: str
    device_class: str = ""
    count: int = 1
    selectors: tuple[str, ...] = ()
    capacity: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    alternatives: tuple[DeviceWish, ...] = ()

    @property
    def asks(self) -> tuple[DeviceWish, ...]:
        """The request itself, or its alternatives in order."""
        return self.alternatives or (self,)


@dataclass(frozen=True, slots=True)
class MatchWish:
    """All devices of `requests` (empty: of the whole claim) share the value of one attribute, or,
    where `distinct`, no two of them do.
    """

    attribute: str
    requests: tuple[str, ...] = ()
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class ConfigWish:
    """Opaque configuration for a driver, for `requests` (empty: for all that are the driver's)."""

    driver: str
    parameters: Mapping[str, Any] = field(hash=False)
    requests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimWish:
    """Everything that one ask puts into the cluster.

    Where its Pods ask by extended resource, ``resources`` says by which names and for how many, and
    nothing is put there.
    """

    public_id: str
    tenant: str
    namespace: str
    name: str
    request_id: str
    shape: Shape
    devices: tuple[DeviceWish, ...]
    matches: tuple[MatchWish, ...] = ()
    configs: tuple[ConfigWish, ...] = ()
    resources: tuple[tuple[str, int], ...] = ()

    @property
    def device_classes(self) -> frozenset[str]:
        """Every class that it may get devices of."""
        return frozenset(ask.device_class for device in self.devices for ask in device.asks)


def claim_objects(wish: ClaimWish) -> list[Obj]:
    """The objects of one ask: a ResourceClaim, or a ResourceClaimTemplate."""
    annotations = {REQUEST_ID_ANNOTATION: wish.request_id}
    metadata = {
        "name": wish.name,
        "namespace": wish.namespace,
        "labels": _labels(wish),
        "annotations": annotations,
    }
    spec: Obj = {"devices": devices_spec(wish)}
    if wish.shape is Shape.TEMPLATE:
        # Labels of the template's metadata are what finds the claims that the controller makes.
        generated = {"labels": _labels(wish), "annotations": dict(annotations)}
        spec = {"metadata": generated, "spec": spec}
    return [
        {"apiVersion": API_VERSION, "kind": wish.shape.kind, "metadata": metadata, "spec": spec}
    ]


def devices_spec(wish: ClaimWish) -> Obj:
    """The `spec.devices` of a claim."""
    devices: Obj = {"requests": [_request(device) for device in wish.devices]}
    if wish.matches:
        devices["constraints"] = [_constraint(match) for match in wish.matches]
    if wish.configs:
        devices["config"] = [_config(config) for config in wish.configs]
    return devices


def pod_manifest(wish: ClaimWish, *, image: str, command: tuple[str, ...]) -> Obj:
    """A Pod that uses what was asked for; what people paste, Berth never creates it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{wish.name}-pod"[:63],
            "namespace": wish.namespace,
            "labels": {CLAIM_LABEL: wish.public_id},
        },
        "spec": {"restartPolicy": "Never", **pod_spec(wish, image=image, command=command)},
    }


def job_manifest(wish: ClaimWish, *, image: str, command: tuple[str, ...]) -> Obj:
    """A Job whose Pod uses what was asked for."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{wish.name}-job"[:63], "namespace": wish.namespace},
        "spec": {
            "backoffLimit": 2,
            "template": {
                "metadata": {"labels": {CLAIM_LABEL: wish.public_id}},
                "spec": {"restartPolicy": "Never", **pod_spec(wish, image=image, command=command)},
            },
        },
    }


def deployment_manifest(wish: ClaimWish, *, image: str, command: tuple[str, ...]) -> Obj:
    """A Deployment of one replica.

    `maxSurge: 0`: with an exact device quota a surge Pod would wait for the Pod that it replaces.
    """
    labels = {CLAIM_LABEL: wish.public_id}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"{wish.name}-deployment"[:63], "namespace": wish.namespace},
        "spec": {
            "replicas": 1,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": dict(labels)},
                "spec": pod_spec(wish, image=image, command=command),
            },
        },
    }


def pod_spec(wish: ClaimWish, *, image: str, command: tuple[str, ...]) -> Obj:
    """The part of a Pod's spec that ties it to the claim, with one container; that asks for its
    extended resources, where it is to have no claim.
    """
    container: Obj = {"name": "main", "image": image, "command": list(command)}
    if wish.resources:
        limits = {name: str(count) for name, count in wish.resources}
        return {"containers": [{**container, "resources": {"limits": limits}}]}
    reference = (
        {"resourceClaimName": wish.name}
        if wish.shape is Shape.CLAIM
        else {"resourceClaimTemplateName": wish.name}
    )
    return {
        "containers": [{**container, "resources": {"claims": [{"name": "devices"}]}}],
        "resourceClaims": [{"name": "devices", **reference}],
    }


def _labels(wish: ClaimWish) -> dict[str, str]:
    return {MANAGED_LABEL: "true", TENANT_LABEL: wish.tenant, CLAIM_LABEL: wish.public_id}


def _request(device: DeviceWish) -> Obj:
    if not device.alternatives:
        return {"name": device.name, "exactly": _ask(device)}
    first = [{"name": one.name, **_ask(one)} for one in device.alternatives]
    return {"name": device.name, "firstAvailable": first}


def _ask(device: DeviceWish) -> Obj:
    ask: Obj = {
        "deviceClassName": device.device_class,
        "allocationMode": "ExactCount",
        "count": device.count,
    }
    if device.selectors:
        ask["selectors"] = [{"cel": {"expression": text}} for text in device.selectors]
    if device.capacity:
        ask["capacity"] = {"requests": dict(device.capacity)}
    if device.tolerations:
        ask["tolerations"] = [_toleration(one) for one in device.tolerations]
    return ask


def _toleration(one: Toleration) -> Obj:
    fields = {"key": one.key, "operator": one.operator, "value": one.value, "effect": one.effect}
    toleration: Obj = {name: text for name, text in fields.items() if text}
    if one.seconds is not None:
        toleration["tolerationSeconds"] = one.seconds
    return toleration


def _constraint(match: MatchWish) -> Obj:
    constraint: Obj = {"distinctAttribute" if match.distinct else "matchAttribute": match.attribute}
    if match.requests:
        constraint["requests"] = list(match.requests)
    return constraint


def _config(config: ConfigWish) -> Obj:
    opaque = {"driver": config.driver, "parameters": dict(config.parameters)}
    return (
        {"requests": list(config.requests), "opaque": opaque}
        if config.requests
        else {"opaque": opaque}
    )
