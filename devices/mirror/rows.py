"""What the mirror's columns hold of an object, kind by kind, and what of its bytes is kept.

Pure: no database. `reader.py` makes rows of this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import msgspec

from devices.cluster.decoding import loads
from devices.dra.claims import ALL, EXACT, MOST_DEVICES
from devices.dra.names import CLAIM_LABEL, SYSTEM_NAMESPACE
from devices.mirror import shapes

#: What a column of whole numbers can hold; no cluster has so many devices.
_MOST = 2**63 - 1


class Row(NamedTuple):
    """The columns that come from the object, in the order in which they are written."""

    uid: str
    kind: str
    api_version: str
    namespace: str
    name: str
    resource_version: str
    raw: bytes
    note: str
    created_at: datetime | None
    deleting: bool
    node: str
    driver: str
    pool: str
    phase: str
    classes: list[str]
    counts: list[int]
    uses: list[str]
    claim: str
    tenant: str
    owner_uid: str
    small: bool = False
    """No column: a Pod that is no news to anybody."""


COLUMNS = Row._fields[:-1]


@dataclass(frozen=True, slots=True)
class Look:
    """What a look found beside the metadata. `raw` replaces the object's bytes, if given."""

    node: str = ""
    driver: str = ""
    pool: str = ""
    phase: str = ""
    classes: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    uses: tuple[str, ...] = ()
    owner_uid: str = ""
    raw: bytes | None = None
    small: bool = False
    kept: bool = True


PLAIN = Look()
UNWANTED = Look(kept=False)


def without(raw: bytes, key: str, value: shapes.Maybe) -> bytes:
    """JSON text without one member, whose value `value` was cut out of the same text.

    Inside strings a quotation mark is escaped, so `"key":` can only be a key; that it is the right
    one of several is known by its value.
    """
    if value is msgspec.UNSET:
        return raw
    member = b'"' + key.encode() + b'":' + bytes(value)
    start = raw.find(member)
    if start < 0:  # spaces after the colon: not the API server's way of writing, so keep it
        return raw
    end = start + len(member)
    if raw[start - 1 : start] == b",":
        start -= 1
    elif raw[end : end + 1] == b",":
        end += 1
    return raw[:start] + raw[end:]


#: The part of a Pod's status that says what its claims cost of the node.
_CHARGED = b"f:nodeAllocatableResourceClaimStatuses"
_managers = msgspec.json.Decoder(list[shapes.Manager])


def with_managers(raw: bytes, managed: shapes.Maybe, field: bytes = b"") -> bytes:
    """JSON text that keeps of `managedFields` (cut out of the same text) only who wrote and when,
    of those that wrote `field`; without the member where there is none.
    """
    if managed is msgspec.UNSET:
        return raw
    told = bytes(managed)
    found = [
        shapes.Manager(one.manager, one.time, one.subresource)
        for one in (_managers.decode(managed) if field in told else ())
        if field in (b"" if one.fields_v1 is msgspec.UNSET else bytes(one.fields_v1))
    ]
    if not found:
        return without(raw, "managedFields", managed)
    member = b'"managedFields":'
    return raw.replace(member + told, member + msgspec.json.encode(found), 1)


def look_plain(obj: shapes.Plain, raw: bytes) -> Look:
    """`phase` as the object says (Namespace, and kinds without one: empty)."""
    return Look(phase=obj.status.phase) if obj.status.phase else PLAIN


def look_slice(obj: shapes.Slice, raw: bytes) -> Look:
    """With who wrote it: a node's ledger names the writer of what it rests on."""
    spec = obj.spec
    kept = with_managers(raw, obj.metadata.managed_fields)
    return Look(node=spec.node_name, driver=spec.driver, pool=spec.pool.name, raw=kept)


def look_rule(obj: shapes.Rule, raw: bytes) -> Look:
    selector = obj.spec.device_selector or shapes.RuleSelector()
    return Look(driver=selector.driver or "", pool=selector.pool or "")


def look_claim(obj: shapes.Claim, raw: bytes) -> Look:
    """`phase`: pending, allocated, or reserved (allocated, and some Pod counts on it)."""
    status = obj.status
    phase = "pending"
    if status.allocation is not None:
        phase = "reserved" if status.reserved_for else "allocated"
    classes, counts = _charged(obj.spec)
    return Look(node=_pinned(status.allocation), phase=phase, classes=classes, counts=counts)


def look_template(obj: shapes.Template, raw: bytes) -> Look:
    classes, counts = _charged(obj.spec.spec)
    return Look(classes=classes, counts=counts)


def look_pod(obj: shapes.Pod, raw: bytes) -> Look:
    """Whole where it uses a device or belongs to a DaemonSet or to Berth, else what it occupies.

    Drivers and plugins are DaemonSets; which of them matter changes with the node pools, so all of
    their Pods are kept whole.
    """
    spec, phase = obj.spec, obj.status.phase
    owners = obj.metadata.owner_references or ()
    if (
        uses_devices(spec)
        or obj.metadata.namespace == SYSTEM_NAMESPACE
        or CLAIM_LABEL in (obj.metadata.labels or {})
        or any(owner.controller and owner.kind == "DaemonSet" for owner in owners)
    ):
        kept = with_managers(raw, obj.metadata.managed_fields, _CHARGED)
        return Look(node=spec.node_name, phase=phase, uses=_uses(obj), raw=kept)
    return Look(node=spec.node_name, phase=phase, raw=slim_pod(obj), small=True)


def look_node(obj: shapes.Node, raw: bytes) -> Look:
    """`phase`: Ready, NotReady, or Unknown (its kubelet has gone silent)."""
    ready = next((c.status for c in obj.status.conditions if c.type == "Ready"), "Unknown")
    phase = {"True": "Ready", "False": "NotReady"}.get(ready, "Unknown")
    kept = without(raw, "managedFields", obj.metadata.managed_fields)
    kept = without(kept, "images", obj.status.images)
    return Look(node=obj.metadata.name, phase=phase, raw=kept)


def look_lease(obj: shapes.Plain, raw: bytes) -> Look:
    return Look(node=obj.metadata.name)


def look_job(obj: shapes.Job, raw: bytes) -> Look:
    return PLAIN if uses_devices(obj.spec.template.spec) else UNWANTED


def look_event(obj: shapes.Event, raw: bytes, about: Iterable[str]) -> Look:
    if obj.involved_object.kind not in about:
        return UNWANTED
    return Look(phase=obj.reason, owner_uid=obj.involved_object.uid)


def _charged(spec: shapes.ClaimSpec) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Classes, sorted, and how many devices of each a quota is charged for such a claim: the same
    sum as `devices.dra.quota.devices_asked`, over what the fast decoder read.
    """
    total: dict[str, int] = {}
    for request in spec.devices.requests or ():
        worst: dict[str, int] = {}
        for ask in request.first_available or (request.exactly,):
            if ask is not None and ask.device_class_name:
                name = ask.device_class_name
                worst[name] = max(worst.get(name, 0), _devices(ask))
        for name, count in worst.items():
            total[name] = min(total.get(name, 0) + count, _MOST)
    names = sorted(total)
    return tuple(names), tuple(total[name] for name in names)


def _devices(ask: shapes.Ask) -> int:
    mode = ask.allocation_mode or EXACT
    if mode == ALL:
        return MOST_DEVICES
    return (1 if ask.count is None else ask.count) if mode == EXACT else 0


def _pinned(allocation: shapes.Allocation | None) -> str:
    """The one node on which an allocated claim can be used; empty where there are several."""
    if allocation is None or allocation.node_selector is None:
        return ""
    terms = allocation.node_selector.node_selector_terms or ()
    if len(terms) != 1:
        return ""
    for field in terms[0].match_fields or ():
        if field.key == "metadata.name" and len(field.values or ()) == 1:
            return (field.values or [""])[0]
    return ""


def uses_devices(spec: shapes.PodSpec) -> bool:
    """True for a Pod that asks for a device: by claim, or by an extended resource.

    Source: k8s.io/component-helpers `IsExtendedResourceName`; the implicit names of classes,
    `deviceclass.resource.kubernetes.io/…`, are the exception under kubernetes.io (KEP-5004).
    """
    if spec.resource_claims:
        return True
    return any(
        _is_device(name)
        for container in (*spec.containers, *spec.init_containers)
        if container.resources is not msgspec.UNSET and b"/" in bytes(container.resources)
        for amounts in (loads(bytes(container.resources)) or {}).values()
        if isinstance(amounts, dict)
        for name in amounts
    )


def _uses(pod: shapes.Pod) -> tuple[str, ...]:
    """Names of the claims and templates that a Pod refers to, and of the claims made for it."""
    status = pod.status
    made = [*(status.resource_claim_statuses or ()), status.extended_resource_claim_status]
    names = set()
    for entry in (*(pod.spec.resource_claims or ()), *made):
        if entry is not None:
            names |= {entry.resource_claim_name, entry.resource_claim_template_name}
    return tuple(sorted(name for name in names if name))


def _is_device(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    if not slash:
        return False
    return domain == "deviceclass.resource.kubernetes.io" or not (
        domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    )


def slim_pod(pod: shapes.Pod) -> bytes:
    """A Pod reduced to who it is, where it is, and what its requests are computed from.

    That is: name, controller, node, phase, priority; resources of containers, init containers
    and sidecars (restartPolicy Always), of the whole Pod, its overhead; and what a resize in place
    left in the status. Source: k8s.io/component-helpers `resource.PodRequests`.
    """
    meta = pod.metadata
    small = shapes.Pod(
        metadata=shapes.Meta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
            deletion_timestamp=meta.deletion_timestamp,
            owner_references=[o for o in meta.owner_references or () if o.controller] or None,
        ),
        spec=shapes.PodSpec(
            node_name=pod.spec.node_name,
            priority=pod.spec.priority,
            containers=pod.spec.containers,
            init_containers=pod.spec.init_containers,
            resources=pod.spec.resources,
            overhead=pod.spec.overhead,
        ),
        status=shapes.PodStatus(
            phase=pod.status.phase,
            conditions=[c for c in pod.status.conditions if c.type.startswith("PodResize")],
            container_statuses=pod.status.container_statuses,
            init_container_statuses=pod.status.init_container_statuses,
            resources=pod.status.resources,
            allocated_resources=pod.status.allocated_resources,
        ),
    )
    return msgspec.json.encode(small)
