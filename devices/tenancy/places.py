"""One namespace of a tenant: what it should carry is looked at, written, and taken off again.

What others changed is put back, and said so in the audit. A namespace that Berth did not make is
never made again. The caller holds the lease of the tenant's turn, but no lock and no transaction:
everything here may run twice, or die at any line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from devices.cluster.gateway import ClusterError, Forbidden, Gateway, Missing, Ref
from devices.dra.names import TENANT_LABEL, Manager
from devices.dra.namespaces import (
    QUOTA_NAME,
    NamespaceSpec,
    carried,
    differences,
    hard,
    namespace_patch,
    quota_object,
    without,
)
from devices.models import NamespaceStanding
from devices.tenancy.namespaces import explicit_names, specs_of
from portal import news
from portal.audit.record import record, record_observed
from tenants.models import Tenant, TenantNamespace

Obj = dict[str, Any]
State = NamespaceStanding.State
Origin = NamespaceStanding.Origin

#: The request id of what nobody asked for by a request: a turn made it.
OWN_ACT: Final = "turn-of-a-tenant"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a namespace does not carry what it should: a code and a sentence."""

    state: str
    code: str
    why: str


def place_ready(place: TenantNamespace, *, gateway: Gateway, now: datetime) -> Trouble | None:
    """Sees to it that a namespace can take an object of its tenant's; the reason where it cannot.

    Where it is there and is the tenant's, nothing is written: the tenant's own turn keeps the rest.
    """
    found = gateway.get(Ref("Namespace", place.name))
    if found and _owner(found) == place.tenant.slug and not _leaving(found):
        return None
    (spec,) = (
        spec
        for spec in specs_of(place.tenant, explicit_names() or {}, now)
        if spec.name == place.name
    )
    return agree(place, spec, gateway, now)


def agree(
    place: TenantNamespace, spec: NamespaceSpec, gateway: Gateway, now: datetime
) -> Trouble | None:
    """One namespace: look, decide, write, record. Returns what keeps it from being in force."""
    standing, _ = NamespaceStanding.objects.get_or_create(namespace=place)
    try:
        found = _look(gateway, spec)
        trouble = _trouble(place, standing, spec, found)
        if trouble is None:
            _write(standing, spec, found, gateway, now)
    except ClusterError as error:
        trouble = said_by_cluster(error)
        _note(standing, trouble, spec.tenant)
        if trouble.state == State.WAITING:
            raise
        return trouble
    if trouble is not None:
        _note(standing, trouble, spec.tenant)
    return trouble


def said_by_cluster(error: ClusterError) -> Trouble:
    """An error of the cluster as trouble: `waiting` where trying again can help."""
    if isinstance(error, Forbidden):
        return Trouble(State.WAITING, "RIGHTS_MISSING", str(error))
    if error.retry:
        return Trouble(State.WAITING, "CLUSTER_UNREACHABLE", str(error))
    return Trouble(State.REFUSED, "REFUSED_BY_CLUSTER", error.message)


def take_off(place: TenantNamespace, *, gateway: Gateway, now: datetime) -> Trouble | None:
    """Takes Berth's quota and names off a namespace that leaves its tenant; what keeps them on.

    What was there is written down before it is taken, so that a receipt can name it whoever dies in
    between. The namespace itself and all else in it stay. What is labelled as another tenant's, or
    is gone, is left as it is. Raises `ClusterError` as `agree` does.
    """
    standing, _ = NamespaceStanding.objects.get_or_create(namespace=place)
    ref, quota_ref = Ref("Namespace", place.name), Ref("ResourceQuota", QUOTA_NAME, place.name)
    try:
        found = _of_berth(place, standing, gateway)
        if found:
            taken = {**found, **standing.taken_off}
            NamespaceStanding.objects.filter(pk=standing.pk).update(taken_off=taken)
            standing.taken_off = taken
        if quota := found.get("ResourceQuota"):
            gateway.delete(quota_ref, uid=quota["uid"])
        if namespace := found.get("Namespace"):
            with contextlib.suppress(Missing):  # it went between the look and this
                gateway.merge(ref, without(namespace))
        left = _of_berth(place, standing, gateway) if found else {}
    except ClusterError as error:
        trouble = said_by_cluster(error)
        _note(standing, trouble, place.tenant.slug)
        if trouble.state == State.WAITING:
            raise
        return trouble
    if left:
        trouble = Trouble(State.WAITING, "FINALIZER", _kept_by(place.name, left))
        _note(standing, trouble, place.tenant.slug)
        return trouble
    _left(place, standing, now)
    return None


def _of_berth(
    place: TenantNamespace, standing: NamespaceStanding, gateway: Gateway
) -> dict[str, Obj]:
    """What the namespace carries of Berth for this tenant, by kind; empty where nothing.

    What lost its label is known by what was applied; what has another tenant's is theirs.
    """
    namespace = gateway.get(Ref("Namespace", place.name))
    if namespace is None:
        return {}
    quota = gateway.get(Ref("ResourceQuota", QUOTA_NAME, place.name))
    found: dict[str, Obj] = {}
    for kind, obj in (("ResourceQuota", quota), ("Namespace", namespace)):
        if obj is None:
            continue
        mine = _owner(obj) == place.tenant.slug or (not _owner(obj) and kind in standing.applied)
        names = carried(obj)
        if mine and (kind == "ResourceQuota" or names["labels"] or names["annotations"]):
            found[kind] = names
    return found


def _kept_by(name: str, left: Mapping[str, Obj]) -> str:
    """Why something of Berth's is still there after it was taken off."""
    finalizers = sorted({one for obj in left.values() for one in obj["finalizers"]})
    if finalizers:
        return (
            f"The quota of {name} is deleted, and kept by {', '.join(finalizers)}. Whoever put "
            "that on it must take it off."
        )
    return f"Berth's {' and '.join(sorted(left))} of {name} came back; it is taken off again."


@transaction.atomic
def _left(place: TenantNamespace, standing: NamespaceStanding, now: datetime) -> None:
    """Records that the namespace is its tenant's no more."""
    if not TenantNamespace.objects.filter(pk=place.pk).update(left_at=now):
        return
    place.shares.all().delete()
    NamespaceStanding.objects.filter(pk=standing.pk).update(
        state=State.IN_FORCE, code="", why="", applied={}, intended={}
    )
    record(
        action="namespace.left",
        subject=f"Namespace {place.name}",
        request_id=OWN_ACT,
        at=now,
        tenant=place.tenant.slug,
        facts={"taken_off": sorted(standing.taken_off)},
    )
    transaction.on_commit(
        lambda: news.publish(["standing", "tenant"], tenant=place.tenant.slug), robust=True
    )


def _look(gateway: Gateway, spec: NamespaceSpec) -> dict[str, Obj | None]:
    namespace = gateway.get(Ref("Namespace", spec.name))
    quota = gateway.get(Ref("ResourceQuota", QUOTA_NAME, spec.name)) if namespace else None
    return {"Namespace": namespace, "ResourceQuota": quota}


def _trouble(
    place: TenantNamespace,
    standing: NamespaceStanding,
    spec: NamespaceSpec,
    found: Mapping[str, Obj | None],
) -> Trouble | None:
    """Why nothing may be written, if so."""
    namespace = found["Namespace"]
    if namespace is None:
        if place.tenant.state != Tenant.State.ACTIVE:
            return Trouble(
                State.MISSING,
                "NAMESPACE_MISSING",
                f"The namespace {spec.name} is no longer there, and its tenant is being closed.",
            )
        if place.adopted or standing.origin == Origin.ADOPTED:
            return Trouble(
                State.MISSING,
                "NAMESPACE_MISSING",
                f"The namespace {spec.name} is no longer there. Berth did not make it, so it does "
                "not make it again: create it, or take it from the tenant.",
            )
        return None
    if _leaving(namespace):
        return Trouble(
            State.MISSING,
            "NAMESPACE_MISSING",
            f"The namespace {spec.name} is being deleted; nothing new can be put into it.",
        )
    owner = _owner(namespace)
    if owner not in ("", spec.tenant):
        return Trouble(
            State.REFUSED,
            "NAMESPACE_OF_ANOTHER",
            f"The namespace {spec.name} is labelled as another tenant's. Berth does not overrule "
            "that.",
        )
    return None


def _write(
    standing: NamespaceStanding,
    spec: NamespaceSpec,
    found: Mapping[str, Obj | None],
    gateway: Gateway,
    now: datetime,
) -> None:
    wanted = {"Namespace": namespace_patch(spec)}
    if hard(spec) or found["ResourceQuota"] or "ResourceQuota" in standing.applied:
        wanted["ResourceQuota"] = quota_object(spec)
    strange = _changed_by_others(standing, found)
    made = found["Namespace"] is None
    written = [kind for kind, obj in wanted.items() if differences(obj, found[kind])]
    if written:
        # Said before it is done: whoever dies in between must not take its own work for others'.
        NamespaceStanding.objects.filter(pk=standing.pk).update(intended=wanted)
    uid = (found["Namespace"] or {}).get("metadata", {}).get("uid", "")
    for kind in written:
        # Under these names only Berth writes, so its values win.
        taken = gateway.apply(wanted[kind], manager=Manager.TENANT, force=True)
        uid = taken["metadata"]["uid"] if kind == "Namespace" else uid
    sightings = {
        _origin(kind, found[kind], standing, now): (kind, seen) for kind, seen in strange.items()
    }
    _in_force(standing, spec, wanted, sightings, uid=uid, made=made, now=now)
    if written:
        news.publish(["standing"], tenant=spec.tenant)


def _changed_by_others(
    standing: NamespaceStanding, found: Mapping[str, Obj | None]
) -> dict[str, tuple[str, ...]]:
    """By kind, what is otherwise than Berth last saw it and last set out to write it."""
    strange = {}
    for kind, applied in standing.applied.items():
        otherwise = differences(applied, found[kind])
        meant = standing.intended.get(kind)
        if otherwise and (meant is None or differences(meant, found[kind])):
            strange[kind] = otherwise
    return strange


@transaction.atomic
def _in_force(
    standing: NamespaceStanding,
    spec: NamespaceSpec,
    wanted: Mapping[str, Obj],
    sightings: Mapping[str, tuple[str, tuple[str, ...]]],
    *,
    uid: str,
    made: bool,
    now: datetime,
) -> None:
    """Records that the cluster has it, and (by where it was seen) what others had done to it."""
    fields: dict[str, Any] = {
        "uid": uid,
        "state": State.IN_FORCE,
        "code": "",
        "why": "",
        "applied": wanted,
        "intended": {},
        "in_force_at": now,
    }
    if made or not standing.origin:
        fields["origin"] = Origin.MADE if made else Origin.ADOPTED
    if sightings:
        fields["repaired_at"] = now
    NamespaceStanding.objects.filter(pk=standing.pk).update(**fields)
    if made:
        record(
            action="namespace.made",
            subject=f"Namespace {spec.name}",
            request_id=OWN_ACT,
            at=now,
            tenant=spec.tenant,
        )
    for origin, (kind, seen) in sightings.items():
        name = spec.name if kind == "Namespace" else f"{spec.name}/{QUOTA_NAME}"
        record_observed(
            action="cluster.repaired",
            subject=f"{kind} {name}",
            origin=origin,
            at=now,
            tenant=spec.tenant,
            facts={"seen": list(seen)},
        )


def _origin(kind: str, found: Obj | None, standing: NamespaceStanding, now: datetime) -> str:
    """Which sighting this is: an object in one version, or its absence after it was last there."""
    if found is None:
        last = (standing.in_force_at or now).isoformat()
        return f"{standing.uid}/{kind}/{last}/gone"
    metadata = found["metadata"]
    return f"{metadata['uid']}/{metadata['resourceVersion']}/repaired"


def _note(standing: NamespaceStanding, trouble: Trouble, slug: str) -> None:
    told = {"state": trouble.state, "code": trouble.code, "why": trouble.why}
    rows = NamespaceStanding.objects.filter(pk=standing.pk)
    if rows.exclude(**told).update(**told):
        news.publish(["standing"], tenant=slug)


def _owner(obj: Obj) -> str:
    """The tenant whose label it carries."""
    return str((obj["metadata"].get("labels") or {}).get(TENANT_LABEL, ""))


def _leaving(namespace: Obj) -> bool:
    return bool(namespace["metadata"].get("deletionTimestamp"))
