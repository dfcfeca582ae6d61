"""What a tenant may have, as a namespace carries it: labels, annotations, and a ResourceQuota.

The admission policies in `deploy/policies/` read these annotations, and Kubernetes itself counts
the quota's keys: both hold whoever goes round the portal. Pure: the same spec always gives the same
objects, pinned as YAML under `tests/golden/`. Must not look at the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from devices.dra.names import (
    CLASSES_ANNOTATION,
    EXTENDED_RESOURCES_ANNOTATION,
    FROZEN_ANNOTATION,
    FULL_CLAIMS_ANNOTATION,
    MANAGED_LABEL,
    POLICY_CONFIG_MAP,
    SYSTEM_NAMESPACE,
    TENANT_LABEL,
)
from devices.dra.quantity import read as read_quantity
from devices.dra.quantity import whole

Obj = dict[str, Any]

#: One quota in each namespace, so that its name says whose it is.
QUOTA_NAME: Final = "berth"
#: The implicit extended-resource name of a class (KEP-5004), for Pods that ask in `limits`.
IMPLICIT: Final = "deviceclass.resource.kubernetes.io/"
CLAIM_COUNT: Final = "count/resourceclaims.resource.k8s.io"
#: The part of a name behind the slash; a class with a longer name has no implicit resource.
LONGEST_NAME_PART: Final = 63
EVERY: Final = "*"
STRICT: Final = "!"
GUARDED_KEY: Final = "extended-resources"
LOCKED_KEY: Final = "frozen-changes"
#: Under this prefix only Berth writes.
PREFIX: Final = "berth.dev/"


@dataclass(frozen=True, slots=True)
class NamespaceSpec:
    """What one namespace of a tenant is to carry.

    `classes` and `extended_resources` are what may be asked for (`*` = everything), `frozen` what
    takes no new work (a trailing `!` is strict), `full_claims` names of claims without a free
    place (`*` = all of them: the tenant is being closed). `devices` pairs a limited class with how
    many may be asked for at a time, `explicit` a class with its extended-resource name; `claims` is
    the most ResourceClaims, None for no limit.
    """

    name: str
    tenant: str
    classes: tuple[str, ...] = ()
    extended_resources: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    full_claims: tuple[str, ...] = ()
    devices: tuple[tuple[str, int], ...] = ()
    explicit: tuple[tuple[str, str], ...] = ()
    claims: int | None = None


@dataclass(frozen=True, slots=True)
class Frozen:
    """One freeze as admission needs it: of a class, or (empty) of every class."""

    device_class: str = ""
    strict: bool = False


def namespace_patch(spec: NamespaceSpec) -> Obj:
    """The Namespace for server-side apply: only what Berth owns of it."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": spec.name,
            "labels": {MANAGED_LABEL: "true", TENANT_LABEL: spec.tenant},
            "annotations": {
                CLASSES_ANNOTATION: _listed(spec.classes),
                EXTENDED_RESOURCES_ANNOTATION: _listed(spec.extended_resources),
                FROZEN_ANNOTATION: _listed(spec.frozen),
                FULL_CLAIMS_ANNOTATION: _listed(spec.full_claims),
            },
        },
    }


def quota_object(spec: NamespaceSpec) -> Obj:
    """The namespace's ResourceQuota; with an empty `hard` where nothing is limited."""
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {
            "name": QUOTA_NAME,
            "namespace": spec.name,
            "labels": {MANAGED_LABEL: "true", TENANT_LABEL: spec.tenant},
        },
        "spec": {"hard": hard(spec)},
    }


def hard(spec: NamespaceSpec) -> dict[str, str]:
    """`spec.hard` of the quota, amounts spelled as the API server keeps them (1000 is "1k").

    A class is counted under up to three keys: claims by its own, Pods that ask by an extended
    resource by the names that lead to it. Kubernetes charges a claim to all of them and a Pod to
    the names only, and takes off what such a Pod was charged already from the claim that is made
    for it (its `resource_claims.go`), so that one amount is right for each.

    Worked example: 8 devices of `gpu`, whose extended resource is `example.com/gpu`, are
    `gpu.deviceclass.resource.k8s.io/devices: 8`, `requests.example.com/gpu: 8` and
    `requests.deviceclass.resource.kubernetes.io/gpu: 8`.
    """
    explicit = dict(spec.explicit)
    limits: dict[str, str] = {}
    for device_class, amount in spec.devices:
        limits[f"{device_class}.deviceclass.resource.k8s.io/devices"] = str(whole(amount))
        if len(device_class) <= LONGEST_NAME_PART:
            limits[f"requests.{IMPLICIT}{device_class}"] = str(whole(amount))
        if resource := explicit.get(device_class):
            limits[f"requests.{resource}"] = str(whole(amount))
    if spec.claims is not None:
        limits[CLAIM_COUNT] = str(whole(spec.claims))
    return dict(sorted(limits.items()))


def policy_config(explicit: Mapping[str, str], locks: Iterable[str] = ()) -> Obj:
    """The ConfigMap that the policies have as parameter: extended-resource names that are devices,
    and what must not change while driver changes are frozen.

    `explicit` maps classes to their extended-resource names, as the mirror has them; `locks` are
    lines of `closures.locks`.
    """
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": POLICY_CONFIG_MAP,
            "namespace": SYSTEM_NAMESPACE,
            "labels": {MANAGED_LABEL: "true"},
        },
        "data": {
            GUARDED_KEY: _listed(explicit.values()),
            LOCKED_KEY: ";".join(sorted(set(locks))),
        },
    }


def offered_names(classes: Iterable[str], explicit: Mapping[str, str]) -> tuple[str, ...]:
    """Explicit extended-resource names of the classes that may be asked for."""
    wanted = set(classes)
    if EVERY in wanted:
        return (EVERY,)
    return tuple(sorted({name for owner, name in explicit.items() if owner in wanted}))


def frozen_names(freezes: Iterable[Frozen], explicit: Mapping[str, str]) -> tuple[str, ...]:
    """What `berth.dev/frozen` lists: classes, and the names by which Pods ask for them.

    A freeze of every class is `*` and each explicit name, because a policy cannot know which of the
    other names are devices. Where two freezes meet, the strict one counts.
    """
    strictness: dict[str, bool] = {}
    for freeze in freezes:
        if freeze.device_class:
            names = [freeze.device_class]
            if len(freeze.device_class) <= LONGEST_NAME_PART:
                names.append(f"{IMPLICIT}{freeze.device_class}")
            if resource := explicit.get(freeze.device_class):
                names.append(resource)
        else:
            names = [EVERY, *explicit.values()]
        for name in names:
            strictness[name] = strictness.get(name, False) or freeze.strict
    return tuple(sorted(f"{name}{STRICT if strict else ''}" for name, strict in strictness.items()))


def full(pods: Mapping[str, int], most: Mapping[str, int]) -> tuple[str, ...]:
    """Names of shared claims that have as many Pods as their template allows, or more."""
    return tuple(sorted(name for name, limit in most.items() if pods.get(name, 0) >= limit))


def differences(wanted: Mapping[str, Any], found: Mapping[str, Any] | None) -> tuple[str, ...]:
    """What of `wanted` the cluster's object has otherwise, in words; empty where they agree.

    Only what is wanted is looked at, except for a quota's `hard`, which is Berth's as a whole.
    Amounts are compared as numbers: the API server may write "1000" as "1k".
    """
    if found is None:
        return ("it is gone",)
    said = [
        f"{place[:-1]} {key} is {has.get(key, 'missing')!r}, not {value!r}"
        for place in ("labels", "annotations")
        for has in [found["metadata"].get(place) or {}]
        for key, value in (wanted["metadata"].get(place) or {}).items()
        if has.get(key) != value
    ]
    if "spec" in wanted:
        said += _amounts(wanted["spec"]["hard"], (found.get("spec") or {}).get("hard") or {})
    if "data" in wanted:
        has = found.get("data") or {}
        said += [f"{key} differs" for key, value in wanted["data"].items() if has.get(key) != value]
    return tuple(said)


def carried(obj: Mapping[str, Any]) -> Obj:
    """What an object carries of Berth: who it is, its labels and annotations, a quota's `hard`."""
    metadata = obj["metadata"]
    found: Obj = {
        "uid": metadata["uid"],
        "labels": _own(metadata.get("labels")),
        "annotations": _own(metadata.get("annotations")),
        "finalizers": list(metadata.get("finalizers") or ()),
    }
    if "hard" in (obj.get("spec") or {}):
        found["hard"] = dict(obj["spec"]["hard"])
    return found


def without(found: Mapping[str, Any]) -> Obj:
    """The merge patch that takes off what `carried` found, of the object with that uid only."""
    return {
        "metadata": {
            "uid": found["uid"],
            "labels": dict.fromkeys(found["labels"]),
            "annotations": dict.fromkeys(found["annotations"]),
        }
    }


def _own(names: Mapping[str, str] | None) -> dict[str, str]:
    return {key: value for key, value in (names or {}).items() if key.startswith(PREFIX)}


def _amounts(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    said = []
    for key in sorted({*wanted, *found}):
        want, has = wanted.get(key), found.get(key)
        if want is None or has is None or read_quantity(want) != read_quantity(has):
            said.append(f"{key} is {has or 'not limited'}, not {want or 'unlimited'}")
    return said


def _listed(names: Iterable[str]) -> str:
    """Names as an annotation holds them: sorted, each once; `*` alone says everything."""
    return ",".join(sorted(set(names)))
