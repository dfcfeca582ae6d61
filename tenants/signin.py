"""What a sign-in with the company's account does: roles follow the groups of this moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from portal.audit.record import record
from tenants.groups import Change, highest, turn
from tenants.models import GroupHeld, GroupRole, Membership, PlatformRole, Tenant, User
from tenants.roles import is_last_admin, locked_roles

MOST_GROUPS = 2000


def groups_in(claims: Mapping[str, Any], claim: str) -> list[str]:
    """The groups that a provider names, from a claim that is a list or one name; else none."""
    found = claims.get(claim)
    names = [found] if isinstance(found, str) else found if isinstance(found, list) else []
    return sorted({name for name in names if isinstance(name, str)})[:MOST_GROUPS]


@transaction.atomic
def follow_groups(*, user: User, groups: Iterable[str], now: datetime, request_id: str) -> None:
    """Makes the roles that come from groups fit `groups`; each change is an audit line.

    Roles given by people stay. The last admin stays admin, and an audit line says so. A tenant may
    lose its last owner here: the provider's word counts, and an admin can make another one.
    """
    given = list(GroupRole.objects.filter(group__in=list(groups)).select_related("tenant"))
    _in_tenants(user, given, now, request_id)
    _on_platform(user, given, now, request_id)


def _in_tenants(user: User, given: list[GroupRole], now: datetime, request_id: str) -> None:
    memberships = Membership.objects.filter(user=user).select_related("tenant")
    has = {one.tenant.slug: one.role for one in memberships}
    held = {
        one.tenant.slug: one.role
        for one in GroupHeld.objects.filter(user=user).select_related("tenant")
        if one.tenant is not None
    }
    wanted = highest(
        (one.tenant.slug, one.role)
        for one in given
        if one.tenant is not None and one.tenant.state == Tenant.State.ACTIVE
    )
    done = turn(wanted=wanted, held=held, has=has)
    tenants = {one.slug: one for one in Tenant.objects.filter(slug__in=[*wanted, *held, *has])}
    for change in done.changes:
        here = Membership.objects.filter(user=user, tenant=tenants[change.place])
        if change.after is None:
            here.delete()
        elif change.before is None:
            Membership.objects.create(user=user, tenant=tenants[change.place], role=change.after)
        else:
            here.update(role=change.after)
    GroupHeld.objects.filter(user=user).exclude(tenant=None).delete()
    GroupHeld.objects.bulk_create(
        GroupHeld(user=user, tenant=tenants[place], role=role) for place, role in done.held.items()
    )
    for change in done.changes:
        _tell(user, change, "member.by_groups", now, request_id, tenant=change.place)


def _on_platform(user: User, given: list[GroupRole], now: datetime, request_id: str) -> None:
    has = {one.role: one.role for one in locked_roles().filter(user=user)}
    mine = GroupHeld.objects.filter(user=user, tenant=None)
    held = {one.role: one.role for one in mine}
    wanted = {one.role: one.role for one in given if one.tenant is None}
    admin = str(PlatformRole.Role.ADMIN)
    kept = admin in held and admin in has and admin not in wanted and is_last_admin(user)
    if kept:
        wanted[admin] = admin
    done = turn(wanted=wanted, held=held, has=has)
    for change in done.changes:
        if change.after is None:
            PlatformRole.objects.filter(user=user, role=change.place).delete()
        else:
            PlatformRole.objects.create(user=user, role=change.after)
    mine.delete()
    GroupHeld.objects.bulk_create(GroupHeld(user=user, role=role) for role in done.held)
    for change in done.changes:
        _tell(user, change, "platform_role.by_groups", now, request_id)
    if kept:
        _tell(user, Change(admin, admin, admin), "platform_role.kept", now, request_id)


def _tell(
    user: User, change: Change, action: str, now: datetime, request_id: str, *, tenant: str = ""
) -> None:
    record(
        action=action,
        subject=f"person {user.person}",
        request_id=request_id,
        at=now,
        person=user.person,
        tenant=tenant,
        facts={"from": change.before, "to": change.after},
    )
