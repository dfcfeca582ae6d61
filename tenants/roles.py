"""Verbs on platform roles: give and take; there is always an admin."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404

from portal.audit.record import record
from portal.errors import Invalid, Refused
from tenants.access import PlatformAccess
from tenants.models import GroupHeld, PlatformRole, User
from tenants.policy import PlatformAct

ROLES = list(PlatformRole.Role.values)


class LastAdmin(Refused):
    """The platform always has an admin; give the role to somebody else first."""

    code = "LAST_ADMIN"


@transaction.atomic
def give_role(
    *, access: PlatformAccess, username: str, role: str, now: datetime, request_id: str
) -> None:
    """Gives somebody a platform role; twice is fine. Raises `NotPermitted`, `Invalid`."""
    access.require(PlatformAct.GIVE_ROLES)
    user = User.objects.filter(username=username, is_active=True).first()
    wrong = {}
    if user is None:
        wrong["username"] = "Nobody is called that; people appear here after their first sign-in."
    if role not in ROLES:
        wrong["role"] = f"Choose from {', '.join(ROLES)}."
    if wrong or user is None:
        raise Invalid("Nothing was given.", fields=wrong)
    _, made = PlatformRole.objects.get_or_create(user=user, role=role)
    # Given by a person, so it no longer goes with a group.
    GroupHeld.objects.filter(user=user, tenant=None, role=role).delete()
    if made:
        record(
            action="platform_role.given",
            subject=f"person {user.person}",
            request_id=request_id,
            at=now,
            person=access.user.person,
            facts={"role": role},
        )


@transaction.atomic
def take_role(
    *, access: PlatformAccess, username: str, role: str, now: datetime, request_id: str
) -> None:
    """Takes a platform role away. Raises `NotPermitted`, `LastAdmin`, 404 where there is none."""
    access.require(PlatformAct.GIVE_ROLES)
    held = locked_roles().filter(user__username=username, role=role).first()
    if held is None:
        raise Http404
    if role == PlatformRole.Role.ADMIN and is_last_admin(held.user):
        raise LastAdmin(f"{held.user.words} is the last admin; give the role to somebody first.")
    user = held.user
    held.delete()
    GroupHeld.objects.filter(user=user, tenant=None, role=role).delete()
    record(
        action="platform_role.taken",
        subject=f"person {user.person}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={"role": role},
    )


def locked_roles() -> QuerySet[PlatformRole]:
    """All platform roles, their admins locked: of two admins who go at once, one must stay."""
    list(PlatformRole.objects.select_for_update().filter(role=PlatformRole.Role.ADMIN))
    return PlatformRole.objects.select_related("user")


def is_last_admin(user: User) -> bool:
    """Whether no other active person is admin."""
    others = PlatformRole.objects.filter(role=PlatformRole.Role.ADMIN, user__is_active=True)
    return not others.exclude(user=user).exists()
