"""Pods as devices see them: the claims they name, what they ask for, and where they may go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from devices.dra.meta import Meta, read_meta
from devices.dra.nodes import NodeTaint, Term, read_term
from devices.dra.quantity import Quantity
from devices.dra.reading import Raw, mapping, number, quantities, sequence, text

TERMINAL: Final = frozenset({"Succeeded", "Failed"})
#: Parts of a Pod's spec that keep it off nodes and that no rule here models; they are named.
UNMODELLED: Final = (
    ("spec.affinity.podAffinity", "Pod affinity"),
    ("spec.affinity.podAntiAffinity", "Pod anti-affinity"),
    ("spec.topologySpreadConstraints", "topology spread"),
    ("spec.schedulingGroup", "a Pod group"),
    ("spec.volumes.persistentVolumeClaim", "volumes"),
    ("spec.volumes.ephemeral", "volumes"),
    ("spec.volumes.csi", "volumes"),
    ("spec.containers.ports.hostPort", "host ports"),
)


@dataclass(frozen=True, slots=True)
class PodClaim:
    """One entry of spec.resourceClaims: a claim by name, or one made from a template."""

    name: str
    claim: str = ""
    template: str = ""


@dataclass(frozen=True, slots=True)
class Container:
    """One container's asks; ``claims`` are pairs of Pod claim name and request ("" for all)."""

    name: str
    init: bool = False
    sidecar: bool = False
    requests: Mapping[str, Quantity] = field(default_factory=dict)
    limits: Mapping[str, Quantity] = field(default_factory=dict)
    claims: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class NodeToleration:
    """A Pod's toleration of node taints (core/v1)."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: NodeTaint) -> bool:
        """As core/v1 ``ToleratesTaint``."""
        if (self.effect and self.effect != taint.effect) or (self.key and self.key != taint.key):
            return False
        match self.operator:
            case "Exists":
                return True
            case "" | "Equal":
                return self.value == taint.value
            case "Gt" | "Lt":  # NodeTaint comparison operators, alpha
                return _compares(self.operator, taint.value, self.value)
        return False


@dataclass(frozen=True, slots=True)
class Pod:
    """One Pod; ``raw`` is the whole object as it was read.

    ``generated`` maps Pod claim names to the claims made for them (None: none was needed).
    ``affinity`` are the required terms of node affinity; None where the Pod has none.
    ``extended_requests`` are pairs of container and extended resource that DRA serves.
    """

    meta: Meta
    node_name: str = ""
    phase: str = ""
    priority: int = 0
    scheduler: str = "default-scheduler"
    claims: tuple[PodClaim, ...] = ()
    generated: Mapping[str, str | None] = field(default_factory=dict)
    extended_claim: str = ""
    extended_requests: frozenset[tuple[str, str]] = frozenset()
    containers: tuple[Container, ...] = ()
    pod_requests: Mapping[str, Quantity] | None = None
    overhead: Mapping[str, Quantity] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    affinity: tuple[Term, ...] | None = None
    tolerations: tuple[NodeToleration, ...] = ()
    gates: tuple[str, ...] = ()
    unmodelled: tuple[str, ...] = ()
    raw: Raw = field(default_factory=dict, compare=False, repr=False)

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return (self.meta.namespace, self.meta.name)

    @property
    def finished(self) -> bool:
        """Whether it has ended and uses nothing any more."""
        return self.phase in TERMINAL

    def __str__(self) -> str:
        return f"{self.meta.namespace}/{self.meta.name}"


def read_pod(raw: Raw) -> Pod:
    """A core/v1 Pod, whole or reduced to what its requests are computed from."""
    spec, status = mapping(raw.get("spec"), "spec"), mapping(raw.get("status"), "status")
    resources = spec.get("resources")
    extended = mapping(
        status.get("extendedResourceClaimStatus"), "status.extendedResourceClaimStatus"
    )
    affinity = mapping(
        mapping(spec.get("affinity"), "spec.affinity").get("nodeAffinity"), "nodeAffinity"
    )
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return Pod(
        meta=read_meta(raw),
        node_name=spec.get("nodeName") or "",
        phase=status.get("phase") or "",
        priority=number(spec.get("priority") or 0, "spec.priority"),
        scheduler=spec.get("schedulerName") or "default-scheduler",
        claims=tuple(
            PodClaim(
                text(item.get("name"), "spec.resourceClaims.name"),
                item.get("resourceClaimName") or "",
                item.get("resourceClaimTemplateName") or "",
            )
            for item in sequence(spec.get("resourceClaims"), "spec.resourceClaims")
        ),
        generated={
            item.get("name") or "": item.get("resourceClaimName")
            for item in sequence(
                status.get("resourceClaimStatuses"), "status.resourceClaimStatuses"
            )
        },
        extended_claim=extended.get("resourceClaimName") or "",
        extended_requests=frozenset(
            (item.get("containerName") or "", item.get("resourceName") or "")
            for item in sequence(extended.get("requestMappings"), "requestMappings")
        ),
        containers=(
            *(
                _container(c, True)
                for c in sequence(spec.get("initContainers"), "spec.initContainers")
            ),
            *(_container(c, False) for c in sequence(spec.get("containers"), "spec.containers")),
        ),
        pod_requests=None
        if resources is None
        else quantities(
            mapping(resources, "spec.resources").get("requests"), "spec.resources.requests"
        ),
        overhead=quantities(spec.get("overhead"), "spec.overhead"),
        node_selector=dict(mapping(spec.get("nodeSelector"), "spec.nodeSelector")),
        affinity=None
        if required is None
        else tuple(
            read_term(term, "spec.affinity.nodeAffinity")
            for term in sequence(
                mapping(required, "nodeAffinity").get("nodeSelectorTerms"), "nodeAffinity"
            )
        ),
        tolerations=tuple(
            NodeToleration(
                item.get("key") or "",
                item.get("operator") or "Equal",
                item.get("value") or "",
                item.get("effect") or "",
            )
            for item in sequence(spec.get("tolerations"), "spec.tolerations")
        ),
        gates=tuple(
            item.get("name") or ""
            for item in sequence(spec.get("schedulingGates"), "spec.schedulingGates")
        ),
        unmodelled=tuple(
            dict.fromkeys(word for path, word in UNMODELLED if _has(raw, path.split(".")))
        ),
        raw=raw,
    )


def _container(raw: Raw, init: bool) -> Container:
    resources = mapping(raw.get("resources"), "resources")
    limits = quantities(resources.get("limits"), "resources.limits")
    return Container(
        name=raw.get("name") or "",
        init=init,
        sidecar=init and raw.get("restartPolicy") == "Always",
        # The API server fills requests from limits; a file that a person wrote may lack that.
        requests=limits | quantities(resources.get("requests"), "resources.requests"),
        limits=limits,
        claims=tuple(
            (item.get("name") or "", item.get("request") or "")
            for item in sequence(resources.get("claims"), "resources.claims")
        ),
    )


def _has(value: object, path: list[str]) -> bool:
    """Whether something stands at a path, through lists as well."""
    if not path:
        return bool(value)
    if isinstance(value, list | tuple):
        return any(_has(item, path) for item in value)
    return isinstance(value, Mapping) and _has(value.get(path[0]), path[1:])


def _compares(operator: str, found: str, wanted: str) -> bool:
    try:
        return int(found) > int(wanted) if operator == "Gt" else int(found) < int(wanted)
    except ValueError:
        return False
