"""Verbs of the platform on tenants: make one, rename it, choose what happens to waiting asks."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.core.exceptions import ValidationError
from django.db import transaction

from portal import news
from portal.audit.record import record
from portal.errors import Invalid, Refused
from tenants.access import PlatformAccess
from tenants.budget import lock
from tenants.models import Membership, Tenant, User
from tenants.models.tenant import DNS_LABEL
from tenants.policy import PlatformAct

LONGEST_NAME: Final = 120


class TenantOver(Refused):
    """The tenant is closed; nothing of it can be changed any more."""

    code = "TENANT_CLOSED"
    http_status = 409


@transaction.atomic
def make_tenant(
    *,
    access: PlatformAccess,
    slug: str,
    name: str,
    owner: str,
    priority: str,
    request_id: str,
    now: datetime,
) -> Tenant:
    """Makes a tenant with its first owner (a user name); it may use nothing yet.

    Raises `NotPermitted`, `Invalid` (slug, name, owner, priority).
    """
    access.require(PlatformAct.RUN_TENANTS)
    user = User.objects.filter(username=owner.strip(), is_active=True).first()
    wrong = _wrong(name, priority)
    if why := _wrong_slug(slug):
        wrong["slug"] = why
    if user is None:
        wrong["owner"] = "Nobody is called that; people appear here after their first sign-in."
    if wrong or user is None:
        raise Invalid("No tenant was made.", fields=wrong)
    tenant = Tenant.objects.create(slug=slug, name=name.strip(), priority=priority)
    Membership.objects.create(tenant=tenant, user=user, role=Membership.Role.OWNER)
    record(
        action="tenant.made",
        subject=f"tenant {slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=slug,
        facts={"name": tenant.name, "owner": str(user.person), "priority": priority},
    )
    return tenant


@transaction.atomic
def change_tenant(
    *,
    access: PlatformAccess,
    tenant: Tenant,
    name: str | None = None,
    priority: str | None = None,
    request_id: str,
    now: datetime,
) -> Tenant:
    """Renames it, or sets its priority policy; None leaves a thing as it is. Its slug stays.

    Raises `NotPermitted`, `TenantOver`, `Invalid` (name, priority).
    """
    access.require(PlatformAct.RUN_TENANTS)
    tenant = lock(tenant)[tenant.pk]
    if tenant.state == Tenant.State.CLOSED:
        raise TenantOver(f"{tenant.name} is closed.")
    wanted = {
        "name": tenant.name if name is None else name.strip(),
        "priority": tenant.priority if priority is None else priority,
    }
    if wrong := _wrong(**wanted):
        raise Invalid("Nothing was changed.", fields=wrong)
    changed = {key: value for key, value in wanted.items() if getattr(tenant, key) != value}
    if not changed:
        return tenant
    before = {key: getattr(tenant, key) for key in changed}
    for key, value in changed.items():
        setattr(tenant, key, value)
    tenant.save(update_fields=list(changed))
    record(
        action="tenant.changed",
        subject=f"tenant {tenant.slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=tenant.slug,
        facts={"before": before, "after": changed},
    )
    slug = tenant.slug
    transaction.on_commit(lambda: news.publish(["tenant"], tenant=slug), robust=True)
    return tenant


def _wrong(name: str, priority: str) -> dict[str, str]:
    wrong = {}
    if not 0 < len(name.strip()) <= LONGEST_NAME:
        wrong["name"] = f"Give it a name of at most {LONGEST_NAME} characters."
    if priority not in Tenant.Priority.values:
        wrong["priority"] = f"Choose one of {', '.join(Tenant.Priority.values)}."
    return wrong


def _wrong_slug(slug: str) -> str:
    try:
        DNS_LABEL(slug)
    except ValidationError as error:
        return str(error.messages[0])
    if Tenant.objects.filter(slug=slug).exists():
        return "There is, or was, a tenant of that short name; names are not given twice."
    return ""
