"""What each namespace of a tenant should carry, read from limits, freezes and the mirror."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from devices import mirror
from devices.dra.namespaces import EVERY, Frozen, NamespaceSpec, frozen_names, full, offered_names
from devices.dra.objects import Shape
from devices.dra.snapshot import read_json
from devices.models import Claim, Freeze, Observed
from devices.tenancy.outside import outside_sums
from tenants.allowance import NamespaceAllowance, allowance
from tenants.models import Tenant

FINISHED: Final = ("Succeeded", "Failed")


def explicit_names() -> dict[str, str] | None:
    """Classes of the mirror and their extended-resource names; None while it does not know them."""
    if mirror.taken("DeviceClass") is None:
        return None
    classes = read_json(mirror.raw_objects("DeviceClass")).classes.values()
    return {found.name: found.extended_resource for found in classes if found.extended_resource}


def specs_of(tenant: Tenant, explicit: Mapping[str, str], now: datetime) -> Iterator[NamespaceSpec]:
    """One spec a namespace; `explicit` are classes and the extended resources that lead to them."""
    freezes = Freeze.objects.standing(now).of_tenant(tenant.slug)
    frozen = frozen_names(
        (
            Frozen(freeze.target if freeze.scope == Freeze.Scope.CLASS else "", freeze.strict)
            for freeze in freezes
        ),
        explicit,
    )
    closing = tenant.state != Tenant.State.ACTIVE
    full_claims = {} if closing else _full_claims(tenant)
    for allowed in allowance(tenant, outside=outside_sums(tenant, now)).namespaces:
        yield _spec(
            tenant.slug,
            allowed,
            explicit,
            frozen,
            (EVERY,) if closing else full_claims.get(allowed.name, ()),
        )


def _spec(
    slug: str,
    allowed: NamespaceAllowance,
    explicit: Mapping[str, str],
    frozen: tuple[str, ...],
    full_claims: tuple[str, ...],
) -> NamespaceSpec:
    return NamespaceSpec(
        name=allowed.name,
        tenant=slug,
        classes=allowed.device_classes,
        extended_resources=offered_names(allowed.device_classes, explicit),
        frozen=frozen,
        full_claims=full_claims,
        devices=tuple(sorted(allowed.devices.items())),
        explicit=tuple(sorted(explicit.items())),
        claims=allowed.claims,
    )


def _full_claims(tenant: Tenant) -> dict[str, tuple[str, ...]]:
    """By namespace, the shared claims that have as many Pods as their template allows.

    Counted from the mirror: every Pod that names the claim and has not finished.
    """
    most: dict[str, dict[str, int]] = {}
    shared = Claim.objects.of(tenant).open().filter(shape=Shape.CLAIM, released_at=None)
    for claim in shared.filter(version__content__has_key="pods").whole():
        limit = claim.version.read().pods
        if limit is not None:
            most.setdefault(claim.namespace.name, {})[claim.object_name] = limit
    if not most:
        return {}
    names = {name for limits in most.values() for name in limits}
    pods = Observed.objects.filter(
        kind="Pod", namespace__in=most, uses__overlap=sorted(names), gone_at=None
    ).exclude(phase__in=FINISHED)
    counted = Counter(
        (namespace, name)
        for namespace, uses in pods.values_list("namespace", "uses")
        for name in set(uses)
    )
    return {
        namespace: full({name: counted[namespace, name] for name in limits}, limits)
        for namespace, limits in most.items()
    }
