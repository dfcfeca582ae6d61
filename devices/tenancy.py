"""Turns of tenants: namespaces carry what their tenant may have, whoever changes them.

A turn may run twice or die at any line; it holds a lease but no lock and no transaction while it
talks to the cluster. It states how labels, annotations and quota should be, repairs what others
changed, and says so in the audit. A namespace that Berth did not make is never made again.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q

from devices.cluster.gateway import ClusterError, Forbidden, Gateway, Ref
from devices.dra.names import POLICY_CONFIG_MAP, SYSTEM_NAMESPACE, TENANT_LABEL, Manager
from devices.dra.namespaces import (
    QUOTA_NAME,
    NamespaceSpec,
    differences,
    hard,
    namespace_patch,
    policy_config,
    quota_object,
)
from devices.models import NamespaceStanding, TenantStanding
from devices.models.standing import LEASE
from devices.namespaces import explicit_names, specs_of
from portal import news
from portal.audit.record import record, record_observed
from portal.outbox import lines as outbox
from tenants.allowance import TURN_TENANT
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


def turn(slug: str, *, gateway: Gateway, now: datetime) -> bool:
    """Brings every namespace of a tenant to what the tenant may have.

    Returns False where another turn is at work, or where the mirror does not know the device
    classes yet; the outbox line stays then. Raises the first `ClusterError` with `retry` or of
    missing rights, after all namespaces were tried; what is wrong stands on their rows.
    """
    tenant = Tenant.objects.filter(slug=slug).exclude(state=Tenant.State.CLOSED).first()
    if tenant is None:
        outbox.settle(TURN_TENANT, slug, through=outbox.newest(TURN_TENANT, slug))
        return True
    standing, _ = TenantStanding.objects.get_or_create(tenant=tenant)
    holder = secrets.token_hex(8)
    if not standing.take_lease(holder, now):
        outbox.not_later_than(TURN_TENANT, slug, due=now + LEASE)
        return False
    looked_at = None
    try:
        # Read after the lease is held: what was wished before it must be seen by this turn.
        through = outbox.newest(TURN_TENANT, slug)
        explicit = explicit_names()
        if explicit is None:
            return False
        looked_at = now
        _agree_all(tenant, explicit, gateway, now)
        outbox.settle(TURN_TENANT, slug, through=through)
    finally:
        if standing.drop_lease(holder, looked_at=looked_at):
            outbox.hint(TURN_TENANT, slug)
    return True


def turn_policy(*, gateway: Gateway, now: datetime) -> bool:
    """Keeps the policies' parameter: the extended-resource names that lead to devices.

    Returns False where the mirror does not know the classes yet: an empty list would open every
    name.
    """
    explicit = explicit_names()
    if explicit is None:
        return False
    wanted = policy_config(explicit)
    found = gateway.get(Ref("ConfigMap", POLICY_CONFIG_MAP, SYSTEM_NAMESPACE))
    if differences(wanted, found):
        gateway.apply(wanted, manager=Manager.TENANT, force=True)
    return True


def unseen(now: datetime, *, older_than: timedelta, at_most: int = 500) -> list[str]:
    """Slugs of tenants that no turn looked at for so long, oldest first."""
    rows = (
        Tenant.objects.exclude(state=Tenant.State.CLOSED)
        .filter(namespaces__isnull=False)
        .filter(Q(standing__looked_at=None) | Q(standing__looked_at__lt=now - older_than))
        .order_by("standing__looked_at")
        .values_list("slug", flat=True)
    )
    return list(dict.fromkeys(rows))[:at_most]


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
    return _agree(place, spec, gateway, now)


# --- one tenant -----------------------------------------------------------------------------------


def _agree_all(
    tenant: Tenant, explicit: Mapping[str, str], gateway: Gateway, now: datetime
) -> None:
    places = {place.name: place for place in tenant.namespaces.select_related("tenant")}
    raised: ClusterError | None = None
    for spec in specs_of(tenant, explicit, now):
        try:
            _agree(places[spec.name], spec, gateway, now)
        except ClusterError as error:
            raised = raised or error
    if raised is not None:
        raise raised


# --- one namespace --------------------------------------------------------------------------------


def _agree(
    place: TenantNamespace, spec: NamespaceSpec, gateway: Gateway, now: datetime
) -> Trouble | None:
    """One namespace: look, decide, write, record. Returns what keeps it from being in force."""
    standing, _ = NamespaceStanding.objects.get_or_create(namespace=place)
    try:
        found = _look(gateway, spec)
        trouble = _trouble(standing, spec, found)
        if trouble is None:
            _write(standing, spec, found, gateway, now)
    except ClusterError as error:
        waits = error.retry or isinstance(error, Forbidden)
        code = "RIGHTS_MISSING" if isinstance(error, Forbidden) else "CLUSTER_UNREACHABLE"
        trouble = (
            Trouble(State.WAITING, code, str(error))
            if waits
            else Trouble(State.REFUSED, "REFUSED_BY_CLUSTER", error.message)
        )
        _note(standing, trouble, spec)
        if waits:
            raise
        return trouble
    if trouble is not None:
        _note(standing, trouble, spec)
    return trouble


def _look(gateway: Gateway, spec: NamespaceSpec) -> dict[str, Obj | None]:
    namespace = gateway.get(Ref("Namespace", spec.name))
    quota = gateway.get(Ref("ResourceQuota", QUOTA_NAME, spec.name)) if namespace else None
    return {"Namespace": namespace, "ResourceQuota": quota}


def _trouble(
    standing: NamespaceStanding, spec: NamespaceSpec, found: Mapping[str, Obj | None]
) -> Trouble | None:
    """Why nothing may be written, if so."""
    namespace = found["Namespace"]
    if namespace is None:
        if standing.origin == Origin.ADOPTED:
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


def _note(standing: NamespaceStanding, trouble: Trouble, spec: NamespaceSpec) -> None:
    told = {"state": trouble.state, "code": trouble.code, "why": trouble.why}
    rows = NamespaceStanding.objects.filter(pk=standing.pk)
    if rows.exclude(**told).update(**told):
        news.publish(["standing"], tenant=spec.tenant)


def _owner(namespace: Obj) -> str:
    return str((namespace["metadata"].get("labels") or {}).get(TENANT_LABEL, ""))


def _leaving(namespace: Obj) -> bool:
    return bool(namespace["metadata"].get("deletionTimestamp"))
