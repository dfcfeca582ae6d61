"""Turns of tenants: namespaces carry what their tenant may have, whoever changes them.

A turn may run twice or die at any line; it holds a lease but no lock and no transaction while it
talks to the cluster. It states how labels, annotations and quota should be, repairs what others
changed, and says so in the audit. A namespace that Berth did not make is never made again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Q

from devices.cluster.gateway import ClusterError, Gateway, Ref
from devices.dra.closures import locks
from devices.dra.names import POLICY_CONFIG_MAP, SYSTEM_NAMESPACE, Manager
from devices.dra.namespaces import differences, policy_config
from devices.models import Freeze, NodePool, TenantStanding
from devices.models.standing import LEASE
from devices.tenancy import closing
from devices.tenancy.namespaces import explicit_names, specs_of
from devices.tenancy.places import agree, take_off
from portal.audit.record import record_observed
from portal.outbox import lines as outbox
from tenants.allowance import TURN_TENANT
from tenants.models import Tenant


def turn(slug: str, *, gateway: Gateway, now: datetime) -> bool:
    """Brings every namespace of a tenant to what the tenant may have, and its closing on.

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
        try:
            _agree_all(tenant, explicit, gateway, now)
            closing.advance(tenant, explicit, gateway=gateway, now=now)
        except ClusterError as error:
            closing.note_error(tenant, error, now)
            raise
        outbox.settle(TURN_TENANT, slug, through=through)
    finally:
        if standing.drop_lease(holder, looked_at=looked_at):
            outbox.hint(TURN_TENANT, slug)
    return True


def turn_policy(*, gateway: Gateway, now: datetime) -> bool:
    """Keeps the policies' parameter: the extended-resource names that lead to devices.

    So too what must not change while driver changes are frozen. Whenever it is written the audit
    says what differed: Berth's own changes of it are as rare as those of classes and freezes.
    Returns False where the mirror does not know the classes yet: an empty list would open every
    name.
    """
    explicit = explicit_names()
    if explicit is None:
        return False
    wanted = policy_config(explicit, locks_of(now))
    found = gateway.get(Ref("ConfigMap", POLICY_CONFIG_MAP, SYSTEM_NAMESPACE))
    if seen := differences(wanted, found):
        written = gateway.apply(wanted, manager=Manager.TENANT, force=True)["metadata"]
        with transaction.atomic():
            record_observed(
                action="cluster.parameter_written",
                subject=f"ConfigMap {SYSTEM_NAMESPACE}/{POLICY_CONFIG_MAP}",
                origin=f"{written['uid']}/{written['resourceVersion']}/written",
                at=now,
                facts={"seen": list(seen)},
            )
    return True


def locks_of(now: datetime) -> list[str]:
    """What the freezes of driver changes keep as it is, as the policy reads it; two queries."""
    frozen = Freeze.objects.standing(now).filter(scope=Freeze.Scope.CHANGE)
    pools = NodePool.objects.filter(slug__in=list(frozen.values_list("target", flat=True)))
    return [
        line
        for pool in pools
        for line in locks(
            selector=pool.selector,
            sets=[*pool.plugin_sets, *pool.driver_sets],
            device_class=pool.device_class,
            switches=[pool.plugin_label, pool.driver_label],
        )
    ]


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


# --- one tenant -----------------------------------------------------------------------------------


def _agree_all(
    tenant: Tenant, explicit: Mapping[str, str], gateway: Gateway, now: datetime
) -> None:
    places = {place.name: place for place in tenant.namespaces.select_related("tenant")}
    works: list[Callable[[], object]] = [
        partial(agree, places[spec.name], spec, gateway, now)
        for spec in specs_of(tenant, explicit, now)
    ]
    works += [
        partial(take_off, place, gateway=gateway, now=now)
        for place in places.values()
        if place.leaving_at
    ]
    raised: ClusterError | None = None
    for work in works:
        try:
            work()
        except ClusterError as error:
            raised = raised or error
    if raised is not None:
        raise raised
