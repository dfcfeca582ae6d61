"""What a tenant may have as values for the cluster: classes and quotas by namespace.

The first floor says who may have how much; `devices` makes the cluster say so too. A change here
promises a turn of the tenant, in the transaction of the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from portal.outbox import lines as outbox
from tenants.limits import ANY, ANY_CLASS, CLAIMS, ZERO, Limits, Line, Measure, hard
from tenants.models import BudgetLine, Grant, Tenant
from tenants.sums import limits_of, sums_of

TURN_TENANT: Final = "devices.tasks.turn_tenant"


@dataclass(frozen=True, slots=True)
class NamespaceAllowance:
    """What one namespace may have.

    `device_classes` are sorted names, `("*",)` is every class. `devices` has the number of devices
    for each class that is limited, `claims` the number of claims; None and absence are no limit.
    """

    name: str
    device_classes: tuple[str, ...]
    devices: Mapping[str, int]
    claims: int | None


@dataclass(frozen=True, slots=True)
class TenantAllowance:
    """What a tenant may have in each of its namespaces, sorted by name."""

    slug: str
    namespaces: tuple[NamespaceAllowance, ...]


def promise_turn(tenant: Tenant, *, request_id: str, now: datetime) -> None:
    """The cluster will follow what the tenant may have once this transaction is through."""
    outbox.promise(TURN_TENANT, tenant.slug, request_id=request_id, now=now)


def allowance(tenant: Tenant, *, outside: Iterable[Line] = ()) -> TenantAllowance:
    """What the cluster should let this tenant have; the same number of queries for any tenant.

    Namespaces that leave the tenant are not among them. `outside` are lines for what Berth did not
    make; with them the quotas of several namespaces that draw on one limit add up to it. A tenant
    that is closing may use no class; its quotas stay.
    """
    names = list(tenant.namespaces.filter(leaving_at=None).values_list("name", flat=True))
    limits, lines = limits_of(tenant), (*sums_of(tenant), *outside)
    borrowed: dict[tuple[str, str], Decimal] = {}
    grants = Grant.objects.filter(
        taker=tenant, state=Grant.State.ACCEPTED, pays=Grant.Pays.GIVER
    ).values_list("namespace", "device_class", "count")
    # What is still in use of a grant that has ended stays: running work is not stopped by quota.
    ended = (
        BudgetLine.objects.filter(
            given_back_at=None, measure=Measure.DEVICES.value, grant__taker=tenant
        )
        .exclude(grant__state=Grant.State.ACCEPTED)
        .filter(grant__pays=Grant.Pays.GIVER)
        .values_list("namespace", "device_class", "amount")
    )
    lent = [*((where, name, Decimal(count)) for where, name, count in grants), *ended]
    for namespace, device_class, amount in lent:
        at = (namespace, device_class)
        borrowed[at] = borrowed.get(at, ZERO) + amount
    open_to_new = tenant.state == Tenant.State.ACTIVE
    return TenantAllowance(
        tenant.slug,
        tuple(
            _namespace(
                name,
                limits,
                lines,
                {cls: amount for (where, cls), amount in borrowed.items() if where == name},
                open_to_new,
            )
            for name in names
        ),
    )


def _namespace(
    name: str,
    limits: Limits,
    lines: tuple[Line, ...],
    borrowed: Mapping[str, Decimal],
    open_to_new: bool,
) -> NamespaceAllowance:
    own = {what.device_class for what in limits if what.measure is Measure.DEVICES}
    classes = (ANY_CLASS,) if ANY in limits else tuple(sorted(own | set(borrowed)))
    devices = {}
    for what, bound in sorted(limits.items()):
        if what.measure is Measure.DEVICES and what != ANY:
            most = hard(bound, what, name, lines)
            if most is not None:
                devices[what.device_class] = int(most + borrowed.get(what.device_class, ZERO))
    if ANY not in limits:
        for device_class, amount in borrowed.items():
            if device_class not in own:
                devices[device_class] = int(amount)
    claims = hard(limits[CLAIMS], CLAIMS, name, lines) if CLAIMS in limits else None
    return NamespaceAllowance(
        name,
        classes if open_to_new else (),
        devices,
        None if claims is None else int(claims),
    )
