"""Verbs on the map from groups to roles; it takes effect at each person's next sign-in."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.http import Http404

from portal.audit.record import record
from portal.errors import Invalid
from tenants.access import PlatformAccess
from tenants.models import GroupRole, Tenant
from tenants.models.group import PLATFORM_ROLES, TENANT_ROLES
from tenants.policy import PlatformAct


@transaction.atomic
def map_group(
    *, access: PlatformAccess, group: str, slug: str, role: str, now: datetime, request_id: str
) -> GroupRole:
    """`group` gives `role` in the tenant `slug`, or on the platform where that is empty.

    Twice is fine. Raises `NotPermitted` and `Invalid` (group, tenant, role).
    """
    access.require(PlatformAct.MAP_GROUPS)
    tenant = Tenant.objects.filter(slug=slug, state=Tenant.State.ACTIVE).first() if slug else None
    known = TENANT_ROLES if slug else PLATFORM_ROLES
    wrong = {}
    if not group.strip():
        wrong["group"] = "Write the group's name as the provider does."
    if slug and tenant is None:
        wrong["tenant"] = "There is no such active tenant."
    if role not in known:
        wrong["role"] = f"Choose from {', '.join(known)}."
    if wrong:
        raise Invalid("Nothing was changed.", fields=wrong)
    row, made = GroupRole.objects.get_or_create(group=group.strip(), tenant=tenant, role=role)
    if made:
        record(
            action="group.mapped",
            subject=f"group {row.group}",
            request_id=request_id,
            at=now,
            person=access.user.person,
            tenant=slug,
            facts={"role": role},
        )
    return row


@transaction.atomic
def unmap_group(*, access: PlatformAccess, pk: int, now: datetime, request_id: str) -> None:
    """The group gives that role no more. Raises `NotPermitted`, 404."""
    access.require(PlatformAct.MAP_GROUPS)
    row = GroupRole.objects.select_related("tenant").filter(pk=pk).first()
    if row is None:
        raise Http404
    row.delete()
    record(
        action="group.unmapped",
        subject=f"group {row.group}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=row.tenant.slug if row.tenant else "",
        facts={"role": row.role},
    )
