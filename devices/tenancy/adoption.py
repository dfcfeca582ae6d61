"""Verbs of the platform on a tenant's namespaces: have one made, adopt one that is there, let go.

What is in a namespace is read from the mirror and shown before it is adopted. Adopting makes
nothing again: the tenant's turn puts labels, annotations and a quota on it, and what was there
counts as outside. A namespace that leaves stays as it is, without Berth's names.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.http import Http404

from devices import mirror
from devices.dra.adoption import Allowed, Clash, Survey, reserved, survey
from devices.dra.namespaces import offered_names
from devices.models import Claim, Observed
from devices.tenancy.namespaces import explicit_names
from devices.tenancy.spending import budget_of
from portal import news
from portal.audit.record import record
from portal.errors import Invalid, Refused
from tenants.access import PlatformAccess
from tenants.allowance import promise_turn
from tenants.budget import lock, plain
from tenants.limits import CLAIMS, Measure, What, devices_of
from tenants.models import Grant, Tenant, TenantNamespace
from tenants.models.tenant import DNS_LABEL
from tenants.policy import PlatformAct

LOOKED_AT: Final = ("ResourceClaim", "ResourceClaimTemplate", "ResourceQuota", "Pod")
#: Objects of one namespace that a survey looks at; more are counted, not looked at.
MOST: Final = 5000


class ClusterNotSeen(Refused):
    """Berth has not seen the cluster yet, so it cannot say what is in the namespace."""

    code = "CLUSTER_NOT_SEEN"
    http_status = 503


class NotAdoptable(Refused):
    """The namespace cannot become this tenant's; facts say why."""

    code = "NAMESPACE_NOT_ADOPTABLE"
    http_status = 409


class TenantNotActive(Refused):
    """The tenant is being closed or is closed."""

    code = "TENANT_CLOSING"
    http_status = 409


class NamespaceInUse(Refused):
    """Asks or grants are for this namespace; release or end them first."""

    code = "NAMESPACE_IN_USE"
    http_status = 409


def survey_of(tenant: Tenant, name: str, now: datetime) -> Survey:
    """What is in a namespace, and what adopting it would mean for it and for the tenant's limits.

    From the mirror, in a constant number of queries. Raises `ClusterNotSeen`.
    """
    explicit = explicit_names()
    if explicit is None or mirror.taken("Namespace", *LOOKED_AT) is None:
        raise ClusterNotSeen(
            "Berth has not read the cluster yet. Try again when the page says that it is live."
        )
    row = mirror.find("Namespace", name)
    rows = Observed.objects.filter(kind__in=LOOKED_AT, namespace=name, gone_at=None)
    allowed = _allowed(tenant, explicit)
    found = survey(
        name,
        row.obj if row else None,
        (one.obj for one in rows.order_by("kind", "name")[:MOST]),
        tenant=tenant.slug,
        allowed=allowed,
    )
    held = TenantNamespace.objects.filter(name=name).select_related("tenant").first()
    stops = list(found.stops)
    if held is not None:
        whose = "already this tenant's" if held.tenant_id == tenant.pk else held.tenant.name + "'s"
        stops.append(Clash("NAMESPACE_TAKEN", f"Namespace {name}", f"It is {whose}."))
    clashes = [*found.clashes, *_over(tenant, found, now)]
    return Survey(name, found.things, tuple(clashes), tuple(stops), found.devices, found.claims)


@transaction.atomic
def add_namespace(
    *,
    access: PlatformAccess,
    tenant: Tenant,
    name: str,
    adopt: bool,
    request_id: str,
    now: datetime,
) -> TenantNamespace:
    """Gives a tenant a namespace: a new one, made by its next turn, or (`adopt`) one that is there.

    Raises `NotPermitted`, `TenantNotActive`, `ClusterNotSeen`, `NotAdoptable`, `Invalid` (name).
    """
    access.require(PlatformAct.RUN_TENANTS)
    tenant = lock(tenant)[tenant.pk]
    if tenant.state != Tenant.State.ACTIVE:
        raise TenantNotActive(f"{tenant.name} is {tenant.state}; it gets no new namespace.")
    if why := _wrong_name(name):
        raise Invalid("No namespace was added.", fields={"name": why})
    facts: dict[str, object] = {}
    if adopt:
        seen = survey_of(tenant, name, now)
        if seen.stops:
            first = seen.stops[0]
            raise NotAdoptable(f"{name} was not adopted. {first.why}", reason=first.code)
        facts = {"found": seen.counts, "clashes": len(seen.clashes)}
    elif why := _there_already(name):
        raise Invalid("No namespace was added.", fields={"name": why})
    try:
        with transaction.atomic():
            place = TenantNamespace.objects.create(tenant=tenant, name=name, adopted=adopt)
    except IntegrityError as taken:
        why = "A tenant has this namespace already."
        raise Invalid("No namespace was added.", fields={"name": why}) from taken
    promise_turn(tenant, request_id=request_id, now=now)
    record(
        action="namespace.adopted" if adopt else "namespace.added",
        subject=f"Namespace {name}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=tenant.slug,
        facts=facts,
    )
    _tell(tenant)
    return place


@transaction.atomic
def remove_namespace(
    *, access: PlatformAccess, tenant: Tenant, name: str, request_id: str, now: datetime
) -> TenantNamespace:
    """Lets a namespace leave its tenant: Berth's quota and names go, all else stays.

    Removing twice is fine while it is on its way. Raises `NotPermitted`, `TenantNotActive`,
    `NamespaceInUse`; 404 where it is not this tenant's.
    """
    access.require(PlatformAct.RUN_TENANTS)
    tenant = lock(tenant)[tenant.pk]
    place = tenant.namespaces.filter(name=name).first()
    if place is None:
        raise Http404
    if tenant.state != Tenant.State.ACTIVE:
        raise TenantNotActive(f"{tenant.name} is being closed; its namespaces leave with it.")
    if place.leaving_at is not None:
        return place
    asks = Claim.objects.of(tenant).open().filter(namespace=place)
    lent = Grant.objects.filter(taker=tenant, namespace=name, state=Grant.State.ACCEPTED)
    claims, grants = asks.count(), lent.count()
    if claims or grants:
        raise NamespaceInUse(
            f"{name} was not taken from {tenant.name}: {_counted(claims, 'open claim')} and "
            f"{_counted(grants, 'grant')} are for it. Release the claims and end the grants first.",
            claims=list(asks.order_by("pk").values_list("public_id", flat=True)[:20]),
            grants=list(lent.values_list("public_id", flat=True)[:20]),
        )
    place.leaving_at = now
    place.save(update_fields=["leaving_at"])
    promise_turn(tenant, request_id=request_id, now=now)
    record(
        action="namespace.removed",
        subject=f"Namespace {name}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=tenant.slug,
    )
    _tell(tenant)
    return place


def _allowed(tenant: Tenant, explicit: dict[str, str]) -> Allowed:
    """What a namespace that is not the tenant's yet would be allowed: it borrows nothing."""
    limited = tenant.limits.filter(measure=Measure.DEVICES).values_list("device_class", flat=True)
    classes = frozenset(limited)
    return Allowed(classes, frozenset(offered_names(classes, explicit)), explicit)


def _over(tenant: Tenant, found: Survey, now: datetime) -> Iterable[Clash]:
    """Limits of the tenant that what is there would overdraw; nothing is taken away for it."""
    asked: dict[What, Decimal] = {
        devices_of(name): Decimal(count) for name, count in (found.devices or {}).items()
    }
    asked[CLAIMS] = Decimal(found.claims)
    budget = budget_of(tenant, now)
    for refusal in budget.refusals({k: v for k, v in asked.items() if v}, found.name):
        if refusal.left is None:
            continue  # not allowed at all: said of each claim
        yield Clash(
            "OVERDRAWN",
            f"Limit of {refusal.what}",
            f"What is there takes {plain(refusal.asked)}, and {plain(refusal.left)} are left. It "
            "goes on; nothing new is accepted until it is below.",
        )


def _wrong_name(name: str) -> str:
    try:
        DNS_LABEL(name)
    except ValidationError as error:
        return str(error.messages[0])
    return "It belongs to Kubernetes or to Berth itself." if reserved(name) else ""


def _there_already(name: str) -> str:
    if TenantNamespace.objects.filter(name=name).exists():
        return "A tenant has this namespace already."
    if Observed.objects.filter(kind="Namespace", name=name).exists():
        return "The cluster has it already: look at what is in it, and adopt it."
    return ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _tell(tenant: Tenant) -> None:
    slug = tenant.slug
    transaction.on_commit(lambda: news.publish(["tenant", "standing"], tenant=slug), robust=True)
