"""What this cluster can do, as facts that each name their source; never guessed from the version.

The API server's own metric tells its gates (and only its own: not the scheduler's, the controller
manager's or a kubelet's), discovery tells its kinds, OpenAPI tells which fields its types have.
Where a source cannot be read, the fact is unknown and says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from devices.cluster.decoding import loads
from devices.cluster.gateway import ClusterError, Gateway, Rejected, Served
from devices.cluster.kinds import KINDS, RESOURCE


class State(StrEnum):
    """`absent`: this release does not have it, which is more than being off."""

    ON = "on"
    OFF = "off"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Source(StrEnum):
    """How a fact was read."""

    METRIC = "metric"
    DISCOVERY = "discovery"
    OPENAPI = "openapi"


@dataclass(frozen=True, slots=True)
class Fact:
    """One capability. `stage` is stable, beta, alpha, deprecated or empty; `detail` says more.

    `detail` of a kind: the version in which Berth uses it; of an unknown: why it could not be read.
    """

    name: str
    state: State
    source: Source
    stage: str = ""
    detail: str = ""

    def as_json(self) -> dict[str, str]:
        return asdict(self)


def facts_of(stored: Iterable[Mapping[str, str]]) -> dict[str, Fact]:
    """Facts by name, as they were stored; entries of an unknown form are left out."""
    found = {}
    for entry in stored:
        try:
            fact = Fact(
                name=entry["name"],
                state=State(entry["state"]),
                source=Source(entry["source"]),
                stage=entry.get("stage", ""),
                detail=entry.get("detail", ""),
            )
        except (KeyError, ValueError):
            continue
        found[fact.name] = fact
    return found


# Gates of the API server that change what DRA objects may say or who may write them
# (pkg/features/kube_features.go). A gate that a release does not list is absent there.
GATES = (
    "DynamicResourceAllocation",
    "DRAAdminAccess",
    "DRAConsumableCapacity",
    "DRADerivedAttributes",
    "DRADeviceBindingConditions",
    "DRADeviceCompatibilityGroups",
    "DRADeviceTaintRules",
    "DRADeviceTaints",
    "DRAExtendedResource",
    "DRAFractionalCapacityRange",
    "DRAListTypeAttributes",
    "DRANodeAllocatableResources",
    "DRAOptionalNodeOperations",
    "DRAPartitionableDevices",
    "DRAPartitionableDevicesType",
    "DRAPrioritizedList",
    "DRAResourceClaimDeviceStatus",
    "DRAResourceClaimGranularStatusAuthorization",
    "DRAResourcePoolStatus",
    "DRASchedulerFilterTimeout",
    "DRAWorkloadResourceClaims",
    "NodeDeclaredFeatures",
    "ResourceHealthStatus",
)

# Fields whose spelling or presence differs between the releases we support: (schema, field).
FIELDS = (
    ("Device", "nodeAllocatableResources"),
    ("Device", "nodeAllocatableResourceMappings"),
    ("Device", "consumesCounters"),
    ("Device", "allowMultipleAllocations"),
    ("Device", "bindingConditions"),
    ("Device", "taints"),
    ("ResourceSliceSpec", "sharedCounters"),
    ("ResourceSliceSpec", "perDeviceNodeSelection"),
    ("ResourceSliceSpec", "skipNodeOperations"),
    ("DeviceClassSpec", "extendedResourceName"),
    ("DeviceAttribute", "ints"),
)

_SAMPLE = re.compile(
    r'^kubernetes_feature_enabled\{name="([^"]+)",stage="([^"]*)"\} ([01])', re.MULTILINE
)
_AUDITED = re.compile(r"^apiserver_audit_event_total(?:\{[^}]*\})? (\S+)", re.MULTILINE)
#: A fact like a gate's: whether the API server keeps an audit log.
AUDIT_LOG = "AuditLog"
_DENIED = re.compile(
    r"^apiserver_validating_admission_policy_check_total\{([^}]*)\} (\S+)", re.MULTILINE
)
#: A fact whose detail is how many attempts Berth's policies denied since the API server started.
DENIED = "DeniedByPolicies"
_STAGES = {"": "stable", "BETA": "beta", "ALPHA": "alpha", "DEPRECATED": "deprecated"}


def read_capabilities(gateway: Gateway, served: Served) -> tuple[Fact, ...]:
    """All facts, by name. Raises ClusterErrors that may pass; a refusal makes facts unknown."""
    facts = (
        *_or_unknown(
            lambda: metric_facts(gateway.text("/metrics")),
            (*GATES, AUDIT_LOG, DENIED),
            Source.METRIC,
        ),
        *kind_facts(served),
        *_or_unknown(
            lambda: field_facts(loads(gateway.text(f"/openapi/v3/apis/{RESOURCE}/v1").encode())),
            [f"{schema}.{field}" for schema, field in FIELDS],
            Source.OPENAPI,
        ),
    )
    return tuple(sorted(facts, key=lambda fact: fact.name))


def metric_facts(metrics: str) -> Iterator[Fact]:
    """All facts that a `/metrics` page tells."""
    yield from gate_facts(metrics)
    yield audit_fact(metrics)
    yield denied_fact(metrics)


def denied_fact(metrics: str) -> Fact:
    """How many attempts Berth's own policies denied; one that was never asked has no sample."""
    denied = sum(
        float(value)
        for labels, value in _DENIED.findall(metrics)
        if 'enforcement_action="deny"' in labels and 'policy="berth-' in labels
    )
    return Fact(DENIED, State.ON, Source.METRIC, detail=f"{denied:.0f}")


def audit_fact(metrics: str) -> Fact:
    """Whether the API server ever wrote an audit event (`apiserver_audit_event_total`)."""
    found = _AUDITED.search(metrics)
    if found is None:
        return Fact(AUDIT_LOG, State.ABSENT, Source.METRIC)
    state = State.ON if float(found[1]) > 0 else State.OFF
    return Fact(AUDIT_LOG, state, Source.METRIC)


def gate_facts(metrics: str) -> Iterator[Fact]:
    """The metric `kubernetes_feature_enabled` of a `/metrics` page as facts about GATES."""
    found = {name: (stage, value) for name, stage, value in _SAMPLE.findall(metrics)}
    if not found:
        raise Rejected("the metric kubernetes_feature_enabled is not on the page")
    for name in GATES:
        if name not in found:
            yield Fact(name, State.ABSENT, Source.METRIC)
            continue
        stage, value = found[name]
        state = State.ON if value == "1" else State.OFF
        yield Fact(name, state, Source.METRIC, stage=_STAGES.get(stage, stage.lower()))


def kind_facts(served: Served) -> Iterator[Fact]:
    """Which kinds of the resource group are served, in which version Berth uses them."""
    for kind in KINDS.values():
        if kind.group != RESOURCE:
            continue
        versions = served.versions(kind.group, kind.name)
        best = next((version for version in kind.versions if version in versions), "")
        if best:
            stage = "alpha" if "alpha" in best else "beta" if "beta" in best else "stable"
            yield Fact(kind.name, State.ON, Source.DISCOVERY, stage=stage, detail=best)
        else:
            detail = (
                f"served as {', '.join(versions)}, which Berth does not know" if versions else ""
            )
            yield Fact(kind.name, State.ABSENT, Source.DISCOVERY, detail=detail)


def field_facts(openapi: Mapping[str, Any]) -> Iterator[Fact]:
    """Whether the API types have FIELDS. Having one says nothing about its gate being on."""
    schemas = openapi.get("components", {}).get("schemas", {})
    for schema, name in FIELDS:
        properties = schemas.get(f"io.k8s.api.resource.v1.{schema}", {}).get("properties", {})
        state = State.ON if name in properties else State.ABSENT
        yield Fact(f"{schema}.{name}", state, Source.OPENAPI)


def _or_unknown(
    read: Callable[[], Iterable[Fact]], names: Iterable[str], source: Source
) -> list[Fact]:
    try:
        return list(read())
    except ClusterError as error:
        if error.retry:
            raise
        return [Fact(name, State.UNKNOWN, source, detail=str(error)) for name in names]
