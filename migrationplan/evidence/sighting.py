"""Writes down what only the mirror has, at the moments that matter: begun, called, turned, ended.

Objects are kept as the mirror has them, but for what may be a secret of their owners: values of
environment variables, commands and arguments of Pods.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.db.models import Q

from devices.fleet.nodepools import heard
from devices.models import NodePool, Observed
from migrationplan.evidence.bundle import canonical
from migrationplan.models import Exhibit, Move, Sighting

#: Nodes of one sighting; more are counted, not shown.
MOST_NODES: Final = 200
LEFT_OUT: Final = "(left out by Berth)"
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_BATCH: Final = 500
Obj = dict[str, Any]


def sight(
    pool: NodePool,
    moves: Sequence[Move],
    *,
    why: str,
    now: datetime,
    nodes: Sequence[str] = (),
) -> Sighting:
    """What the mirror shows now of the moves' nodes, and of `nodes`."""
    every = sorted({*nodes, *(move.node for move in moves)})
    shown = every[:MOST_NODES]
    seen = [_entry(row) for row in _rows(pool, shown, {move.node_uid for move in moves})]
    _keep(digest_and_body for _, digest_and_body in seen)
    ages = heard()
    return Sighting.objects.create(
        pool=pool,
        moves=sorted(move.public_id for move in moves),
        nodes=shown,
        at=now,
        heard={kind: ages[kind].isoformat() if kind in ages else None for kind in KINDS},
        why=why[:240],
        objects_seen=[entry for entry, _ in seen],
        left_out=len(every) - len(shown),
    )


KINDS: Final = (
    "Node", "ResourceSlice", "ResourceClaim", "Pod", "DaemonSet", "DeviceClass",
    "DeviceTaintRule", "Event",
)  # fmt: skip


def keep(bodies: Iterable[bytes]) -> list[str]:
    """Stores bytes as exhibits; their digests, in order."""
    pairs = [(hashlib.sha256(body).hexdigest(), body) for body in bodies]
    _keep(pairs)
    return [digest for digest, _ in pairs]


def _keep(pairs: Iterable[tuple[str, bytes]]) -> None:
    rows = [Exhibit(digest=digest, body=body) for digest, body in dict(pairs).items()]
    Exhibit.objects.bulk_create(rows, batch_size=_BATCH, ignore_conflicts=True)


def _entry(row: Observed) -> tuple[Obj, tuple[str, bytes]]:
    body = canonical(without_secrets(row.obj))
    digest = hashlib.sha256(body).hexdigest()
    entry = {
        "kind": row.kind,
        "namespace": row.namespace,
        "name": row.name,
        "uid": row.uid,
        "digest": digest,
    }
    return entry, (digest, body)


def _rows(pool: NodePool, nodes: list[str], uids: set[str]) -> Iterable[Observed]:
    """Rows of the mirror that tell about the nodes, by kind and name; Events about them last."""
    wanted = (
        Q(kind="Node", name__in=nodes)
        | Q(kind="ResourceSlice", node__in=nodes, driver=pool.driver)
        | Q(kind__in=["ResourceClaim", "Pod"], node__in=nodes)
        | Q(kind="DeviceClass", name=pool.device_class)
        | Q(kind="DeviceTaintRule", driver=pool.driver)
    )
    for one in (*pool.plugin_sets, *pool.driver_sets):
        namespace, _, name = one.partition("/")
        wanted |= Q(kind="DaemonSet", namespace=namespace, name=name)
    found = list(Observed.objects.filter(wanted).order_by("kind", "namespace", "name", "uid"))
    # Events name a Node by its name where its kubelet wrote them, and by uid elsewhere.
    about = {row.uid for row in found} | uids | set(nodes)
    events = Observed.objects.filter(kind="Event", owner_uid__in=sorted(about))
    return [*found, *events.order_by("namespace", "name", "uid")]


def without_secrets(obj: Obj) -> Obj:
    """A copy without what an owner may have hidden in it."""
    meta = dict(obj.get("metadata") or {})
    notes = {
        key: value for key, value in (meta.get("annotations") or {}).items() if key != _APPLIED
    }
    if "annotations" in meta:
        meta["annotations"] = notes
    found = {**obj, "metadata": meta}
    spec = obj.get("spec")
    if obj.get("kind") == "Pod" and isinstance(spec, Mapping):
        found["spec"] = _quiet_spec(spec)
    if obj.get("kind") == "DaemonSet" and isinstance(spec, Mapping):
        template = spec.get("template") or {}
        inner = template.get("spec") or {}
        found["spec"] = {**spec, "template": {**template, "spec": _quiet_spec(inner)}}
    return found


def _quiet_spec(spec: Mapping[str, Any]) -> Obj:
    quiet = dict(spec)
    for part in ("initContainers", "containers", "ephemeralContainers"):
        if isinstance(spec.get(part), list):
            quiet[part] = [_quiet(one) for one in spec[part]]
    return quiet


def _quiet(container: Mapping[str, Any]) -> Obj:
    found = dict(container)
    for part in ("command", "args"):
        if part in found:
            found[part] = [LEFT_OUT]
    if found.get("env"):
        found["env"] = [
            {**one, "value": LEFT_OUT} if "value" in one else one for one in found["env"]
        ]
    return found
