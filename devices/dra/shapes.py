"""Whether an object has the shape of its kind, for objects that no API server has checked.

What a cluster hands out has the right types already; a file that people have edited may not. Only
the fields that are read here are looked at, and any other field may be there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from devices.dra.reading import Raw

Amount = str | int | float
Amounts = dict[str, Amount]
Texts = dict[str, str]


class _Shape(msgspec.Struct, rename="camel"):
    """Fields are named as in the API; absent and null are the same."""


class Owner(_Shape):
    kind: str | None = None
    name: str | None = None
    uid: str | None = None
    controller: bool | None = None


class Meta(_Shape):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: Texts | None = None
    annotations: Texts | None = None
    owner_references: list[Owner] | None = None
    finalizers: list[str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    managed_fields: list[dict[str, Any]] | None = None


class Requirement(_Shape):
    key: str
    operator: str
    values: list[str] | None = None


class Term(_Shape):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeSelector(_Shape):
    node_selector_terms: list[Term] | None = None


class Taint(_Shape):
    key: str | None = None
    value: str | None = None
    effect: str | None = None
    time_added: str | None = None


class Toleration(_Shape):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None
    toleration_seconds: int | None = None


class Condition(_Shape):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: str | None = None


# --- slices ---


class Counters(_Shape):
    counter_set: str | None = None
    name: str | None = None
    counters: dict[str, dict[str, Amount]] | None = None
    compatibility_groups: list[str] | None = None


class Basic(_Shape):
    attributes: dict[str, Any] | None = None
    capacity: dict[str, Any] | None = None
    consumes_counters: list[Counters] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    taints: list[Taint] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class Device(Basic):
    name: str = ""
    basic: Basic | None = None


class Pool(_Shape):
    name: str
    resource_slice_count: int
    generation: int | None = None


class SliceSpec(_Shape):
    driver: str
    pool: Pool
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None
    shared_counters: list[Counters] | None = None
    partition_type_attribute: str | None = None
    skip_node_operations: list[str] | None = None


class ResourceSlice(_Shape):
    metadata: Meta
    spec: SliceSpec


# --- claims ---


class Selector(_Shape):
    cel: Texts | None = None


class Ask(_Shape):
    name: str | None = None
    device_class_name: str | None = None
    selectors: list[Selector] | None = None
    allocation_mode: str | None = None
    count: int | None = None
    admin_access: bool | None = None
    tolerations: list[Toleration] | None = None
    capacity: dict[str, Amounts | None] | None = None
    derived_attributes: list[Texts] | None = None


class Request(Ask):
    exactly: Ask | None = None
    first_available: list[Ask] | None = None


class Constraint(_Shape):
    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class ClaimDevices(_Shape):
    requests: list[Request] | None = None
    constraints: list[Constraint] | None = None
    config: list[dict[str, Any]] | None = None


class ClaimSpec(_Shape):
    devices: ClaimDevices | None = None


class Result(_Shape):
    driver: str
    pool: str
    device: str
    request: str | None = None
    admin_access: bool | None = None
    tolerations: list[Toleration] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    # Named as in the API, where two capitals follow each other.
    share_id: str | None = msgspec.field(default=None, name="shareID")
    consumed_capacity: Amounts | None = None


class AllocatedDevices(_Shape):
    results: list[Result] | None = None


class Allocation(_Shape):
    devices: AllocatedDevices | None = None
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class Consumer(_Shape):
    name: str | None = None
    uid: str | None = None
    resource: str | None = None
    api_group: str | None = None


class DeviceStatus(_Shape):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    share_id: str | None = msgspec.field(default=None, name="shareID")
    conditions: list[Condition] | None = None
    network_data: dict[str, Any] | None = None


class ClaimStatus(_Shape):
    allocation: Allocation | None = None
    reserved_for: list[Consumer] | None = None
    devices: list[DeviceStatus] | None = None


class ResourceClaim(_Shape):
    metadata: Meta
    spec: ClaimSpec | None = None
    status: ClaimStatus | None = None


class TemplateSpec(_Shape):
    spec: ClaimSpec | None = None


class ResourceClaimTemplate(_Shape):
    metadata: Meta
    spec: TemplateSpec | None = None


class ClassSpec(_Shape):
    selectors: list[Selector] | None = None
    extended_resource_name: str | None = None


class DeviceClass(_Shape):
    metadata: Meta
    spec: ClassSpec | None = None


class RuleSelector(_Shape):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class RuleSpec(_Shape):
    taint: Taint | None = None
    device_selector: RuleSelector | None = None


class DeviceTaintRule(_Shape):
    metadata: Meta
    spec: RuleSpec | None = None


# --- nodes and Pods ---


class NodeSpec(_Shape):
    taints: list[Taint] | None = None
    unschedulable: bool | None = None


class NodeStatus(_Shape):
    allocatable: Amounts | None = None
    capacity: Amounts | None = None
    conditions: list[Condition] | None = None
    declared_features: list[str] | None = None


class Node(_Shape):
    metadata: Meta
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class ClaimUse(_Shape):
    name: str
    request: str | None = None


class Resources(_Shape):
    requests: Amounts | None = None
    limits: Amounts | None = None
    claims: list[ClaimUse] | None = None


class Container(_Shape):
    name: str | None = None
    resources: Resources | None = None
    restart_policy: str | None = None


class PodClaim(_Shape):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class NodeAffinity(_Shape):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(_Shape):
    node_affinity: NodeAffinity | None = None


class PodSpec(_Shape):
    node_name: str | None = None
    priority: int | None = None
    scheduler_name: str | None = None
    resource_claims: list[PodClaim] | None = None
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: Resources | None = None
    overhead: Amounts | None = None
    node_selector: Texts | None = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    scheduling_gates: list[Texts] | None = None


class ContainerStatus(_Shape):
    name: str | None = None
    allocated_resources: Amounts | None = None
    resources: Resources | None = None


class ClaimMade(_Shape):
    name: str
    resource_claim_name: str | None = None


class ExtendedClaim(_Shape):
    resource_claim_name: str | None = None


class PodStatus(_Shape):
    phase: str | None = None
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resource_claim_statuses: list[ClaimMade] | None = None
    extended_resource_claim_status: ExtendedClaim | None = None
    node_allocatable_resource_claim_statuses: list[dict[str, Any]] | None = None


class Pod(_Shape):
    metadata: Meta
    spec: PodSpec | None = None
    status: PodStatus | None = None


SHAPES: Mapping[str, type[_Shape]] = {
    shape.__name__: shape
    for shape in (
        ResourceSlice,
        ResourceClaim,
        ResourceClaimTemplate,
        DeviceClass,
        DeviceTaintRule,
        Node,
        Pod,
    )
}


def wrong_shape(raw: Raw) -> str:
    """What is wrong with an object's shape, and where; empty for a sound one and for other kinds.

    ``spec.pool.generation: Expected `int | null`, got `str```.
    """
    shape = SHAPES.get(str(raw.get("kind")))
    if shape is None:
        return ""
    try:
        msgspec.convert(raw, shape)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$.")
        where = place.rstrip("`")
        return f"{where}: {text}" if where else text
    return ""
