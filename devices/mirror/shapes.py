"""The few fields that the mirror's columns are made from, as structs of the fast decoder.

Everything else is skipped, not decoded. No field is required: an object that lacks one is stored
all the same.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, Raw, UnsetType

Maybe = Raw | UnsetType


class Shape(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """Base of all: JSON spelling, absent fields left out when written."""


class Owner(Shape):
    kind: str = ""
    uid: str = ""
    controller: bool = False


class Manager(Shape):
    """An entry of managedFields: who wrote which fields, and when."""

    manager: str = ""
    time: str = ""
    subresource: str = ""
    fields_v1: Maybe = UNSET


class Meta(Shape):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    owner_references: list[Owner] | None = None
    managed_fields: Maybe = UNSET


class Thing(Shape):
    """Base of whole objects; items of lists carry no apiVersion."""

    api_version: str = ""
    metadata: Meta = msgspec.field(default_factory=Meta)


class PhaseStatus(Shape):
    phase: str = ""


class Plain(Thing):
    """Any object; `status.phase` where it has one."""

    status: PhaseStatus = msgspec.field(default_factory=PhaseStatus)


class PoolName(Shape):
    name: str = ""


class SliceSpec(Shape):
    driver: str = ""
    pool: PoolName = msgspec.field(default_factory=PoolName)
    node_name: str = ""


class Slice(Thing):
    spec: SliceSpec = msgspec.field(default_factory=SliceSpec)


class RuleSelector(Shape):
    driver: str | None = None
    pool: str | None = None


class RuleSpec(Shape):
    device_selector: RuleSelector | None = None


class Rule(Thing):
    spec: RuleSpec = msgspec.field(default_factory=RuleSpec)


class Ask(Shape):
    device_class_name: str = ""
    allocation_mode: str = ""
    count: int | None = None


class DeviceRequest(Shape):
    exactly: Ask | None = None
    first_available: list[Ask] | None = None


class Devices(Shape):
    requests: list[DeviceRequest] | None = None


class ClaimSpec(Shape):
    devices: Devices = msgspec.field(default_factory=Devices)


class Match(Shape):
    key: str = ""
    values: list[str] | None = None


class Term(Shape):
    match_fields: list[Match] | None = None


class Selector(Shape):
    node_selector_terms: list[Term] | None = None


class Allocation(Shape):
    node_selector: Selector | None = None


class ClaimStatus(Shape):
    allocation: Allocation | None = None
    reserved_for: list[Owner] | None = None


class Claim(Thing):
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)
    status: ClaimStatus = msgspec.field(default_factory=ClaimStatus)


class TemplateSpec(Shape):
    spec: ClaimSpec = msgspec.field(default_factory=ClaimSpec)


class Template(Thing):
    spec: TemplateSpec = msgspec.field(default_factory=TemplateSpec)


class Container(Shape):
    """A container as far as its requests go; written back in this form for Pods kept small."""

    name: str = ""
    resources: Maybe = UNSET
    restart_policy: str = ""


class PodClaim(Shape):
    """An entry of a Pod's spec.resourceClaims or status.resourceClaimStatuses."""

    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSpec(Shape):
    node_name: str = ""
    priority: int | None = None
    containers: list[Container] = msgspec.field(default_factory=list)
    init_containers: list[Container] = msgspec.field(default_factory=list)
    resources: Maybe = UNSET
    overhead: Maybe = UNSET
    resource_claims: list[PodClaim] | None = None


class ContainerStatus(Shape):
    name: str = ""
    resources: Maybe = UNSET
    allocated_resources: Maybe = UNSET


class Condition(Shape):
    type: str = ""
    status: str = ""
    reason: str = ""


class PodStatus(Shape):
    phase: str = ""
    conditions: list[Condition] = msgspec.field(default_factory=list)
    container_statuses: list[ContainerStatus] = msgspec.field(default_factory=list)
    init_container_statuses: list[ContainerStatus] = msgspec.field(default_factory=list)
    resource_claim_statuses: list[PodClaim] | None = None
    extended_resource_claim_status: PodClaim | None = None
    resources: Maybe = UNSET
    allocated_resources: Maybe = UNSET


class Pod(Thing):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


class NodeStatus(Shape):
    conditions: list[Condition] = msgspec.field(default_factory=list)
    images: Maybe = UNSET


class Node(Thing):
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class PodTemplate(Shape):
    spec: PodSpec = msgspec.field(default_factory=PodSpec)


class JobSpec(Shape):
    template: PodTemplate = msgspec.field(default_factory=PodTemplate)


class Job(Thing):
    spec: JobSpec = msgspec.field(default_factory=JobSpec)


class Involved(Shape):
    kind: str = ""
    uid: str = ""


class Event(Thing):
    involved_object: Involved = msgspec.field(default_factory=Involved)
    reason: str = ""
