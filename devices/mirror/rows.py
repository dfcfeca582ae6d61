"""An object's bytes → its row of the mirror, or None where the mirror does not keep such an object.

Pure: no database. What people wrote into an object never makes this fail: what the fast decoder
refuses is stored in a readable form, with a note that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import msgspec

from devices.cluster.decoding import loads, readable
from devices.dra.names import CLAIM_LABEL, SYSTEM_NAMESPACE, TENANT_LABEL
from devices.mirror import shapes

REWRITTEN = "Parts that cannot be shown as they are were replaced (broken characters or nesting)."

Object = TypeVar("Object", bound=shapes.Thing)


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
    uses: tuple[str, ...] = ()
    owner_uid: str = ""
    raw: bytes | None = None
    small: bool = False
    kept: bool = True


PLAIN = Look()
_bookmarks = msgspec.json.Decoder(shapes.Thing)
UNWANTED = Look(kept=False)


class Reader:
    """Reads objects of one kind. `shape` is what is decoded, `look` what the columns hold."""

    def __init__(
        self,
        kind: str,
        shape: type[Object],
        look: Callable[[Object, bytes], Look],
        *,
        opaque: bool = False,
    ):
        self.kind = kind
        self._decode = msgspec.json.Decoder(shape).decode
        self._look: Callable[[Any, bytes], Look] = look
        self._opaque = opaque

    def read(self, raw: bytes, api_version: str = "") -> tuple[str, str, Row | None]:
        """(uid, resourceVersion, row); no row for an object that the mirror does not keep.

        `api_version` is the list's, where objects carry none. Raises ValueError for no JSON.
        """
        note = ""
        try:
            # Parameters for drivers, and their data, may hold numbers beyond a float: only decoding
            # shows them.
            if self._opaque and (b'"opaque"' in raw or b'"data"' in raw):
                msgspec.json.decode(raw)
            obj = self._decode(raw)
        except (msgspec.DecodeError, RecursionError):
            raw, note = readable(raw), REWRITTEN
            try:
                obj = self._decode(raw)
            except msgspec.DecodeError:  # a field of ours in an unknown form: the name is left
                row = _unread(self.kind, raw, api_version)
                return row.uid, row.resource_version, row
        meta: shapes.Meta = obj.metadata
        look = self._look(obj, raw)
        if not look.kept:
            return meta.uid, meta.resource_version, None
        labels = meta.labels or {}
        kept = look.raw
        if kept is None:
            kept = without(raw, "managedFields", meta.managed_fields)
        row = Row(
            uid=meta.uid,
            kind=self.kind,
            api_version=obj.api_version or api_version,
            namespace=meta.namespace,
            name=meta.name,
            resource_version=meta.resource_version,
            raw=kept,
            note=note,
            created_at=meta.creation_timestamp,
            deleting=meta.deletion_timestamp is not None,
            node=look.node,
            driver=look.driver,
            pool=look.pool,
            phase=_word(look.phase, 128),
            classes=list(look.classes),
            uses=list(look.uses),
            claim=labels.get(CLAIM_LABEL, ""),
            tenant=labels.get(TENANT_LABEL, ""),
            owner_uid=_word(look.owner_uid or _controller(meta), 64),
            small=look.small,
        )
        return meta.uid, meta.resource_version, row


def bookmark(raw: bytes) -> str:
    """The resourceVersion of a bookmark, which is an object of its kind with nothing in it."""
    return _bookmarks.decode(raw).metadata.resource_version


def _unread(kind: str, raw: bytes, api_version: str) -> Row:
    meta = loads(raw).get("metadata") or {}
    return _nameplate(
        uid=str(meta.get("uid")),
        kind=kind,
        api_version=api_version,
        namespace=str(meta.get("namespace") or ""),
        name=str(meta.get("name") or ""),
        resource_version=str(meta.get("resourceVersion") or ""),
        raw=raw,
        note="Its form is unknown to this Berth: only its name was read.",
        deleting=bool(meta.get("deletionTimestamp")),
    )


def bare(row: Row, why: str) -> Row:
    """The row of an object whose contents PostgreSQL refuses: who it is, and why no more."""
    meta = {"name": row.name, "namespace": row.namespace, "uid": row.uid}
    return _nameplate(
        uid=row.uid,
        kind=row.kind,
        api_version=row.api_version,
        namespace=row.namespace,
        name=row.name,
        resource_version=row.resource_version,
        raw=msgspec.json.encode({"metadata": meta}),
        note=_word(f"Its contents could not be stored: {why}", 200),
        deleting=row.deleting,
    )


def _nameplate(**fields: Any) -> Row:
    """A row that says who an object is and nothing else."""
    empty = {column: "" for column in COLUMNS}
    return Row(**{**empty, "created_at": None, "classes": [], "uses": [], **fields})


def _word(text: str, most: int) -> str:
    """Free text as a column: PostgreSQL's text has no NUL."""
    return text.replace("\0", "")[:most]


def _controller(meta: shapes.Meta) -> str:
    return next((owner.uid for owner in meta.owner_references or () if owner.controller), "")


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


# --- one look for each kind -----------------------------------------------------------------------


def look_plain(obj: shapes.Plain, raw: bytes) -> Look:
    """`phase` as the object says (Namespace, and kinds without one: empty)."""
    return Look(phase=obj.status.phase) if obj.status.phase else PLAIN


def look_slice(obj: shapes.Slice, raw: bytes) -> Look:
    spec = obj.spec
    return Look(node=spec.node_name, driver=spec.driver, pool=spec.pool.name)


def look_rule(obj: shapes.Rule, raw: bytes) -> Look:
    selector = obj.spec.device_selector or shapes.RuleSelector()
    return Look(driver=selector.driver or "", pool=selector.pool or "")


def look_claim(obj: shapes.Claim, raw: bytes) -> Look:
    """`phase`: pending, allocated, or reserved (allocated, and some Pod counts on it)."""
    status = obj.status
    phase = "pending"
    if status.allocation is not None:
        phase = "reserved" if status.reserved_for else "allocated"
    return Look(node=_pinned(status.allocation), phase=phase, classes=_classes(obj.spec))


def look_template(obj: shapes.Template, raw: bytes) -> Look:
    return Look(classes=_classes(obj.spec.spec))


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
        return Look(node=spec.node_name, phase=phase, uses=_uses(obj))
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


def _classes(spec: shapes.ClaimSpec) -> tuple[str, ...]:
    names = set()
    for request in spec.devices.requests or ():
        for ask in (request.exactly, *(request.first_available or ())):
            if ask and ask.device_class_name:
                names.add(ask.device_class_name)
    return tuple(sorted(names))


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
