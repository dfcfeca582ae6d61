"""Verbs on members of a tenant: invite, accept, change a role, remove, leave."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F
from django.http import Http404

from portal.audit.record import record
from portal.errors import Invalid, Refused
from tenants.access import Access
from tenants.models import GroupHeld, Invitation, Membership, Tenant, User
from tenants.policy import Act
from tenants.tokens import digest_of

LONGEST_INVITATION = timedelta(days=30)
ROLES = list(Membership.Role.values)


class LastOwner(Refused):
    """A tenant always has an owner; make another one first."""

    code = "LAST_OWNER"


class AlreadyMember(Refused):
    """The person has a role there; an owner can change it."""

    code = "ALREADY_MEMBER"


@dataclass(frozen=True, slots=True)
class NewInvitation:
    """A fresh invitation and, this one time, the text that proves it."""

    row: Invitation
    text: str


@transaction.atomic
def invite(
    *, access: Access, role: str, note: str, lasts: timedelta, now: datetime, request_id: str
) -> NewInvitation:
    """Makes an invitation for one person. Raises `NotPermitted`, `Invalid` (role, note, lasts)."""
    access.require(Act.MANAGE_MEMBERS)
    wrong = {}
    if access.tenant.state != Tenant.State.ACTIVE:  # such an invitation could never be accepted
        wrong["role"] = f"{access.tenant.name} is being closed; nobody new comes in."
    elif role not in ROLES:
        wrong["role"] = f"Choose from {', '.join(ROLES)}."
    if not note.strip():
        wrong["note"] = "Say for whom it is, so that you can take back the right one."
    if not timedelta(0) < lasts <= LONGEST_INVITATION:
        wrong["lasts"] = f"At most {LONGEST_INVITATION.days} days."
    if wrong:
        raise Invalid("Nobody was invited.", fields=wrong)
    prefix, secret = secrets.token_hex(5), secrets.token_urlsafe(24)
    row = Invitation.objects.create(
        tenant=access.tenant,
        role=role,
        note=note.strip(),
        prefix=prefix,
        digest=digest_of(secret),
        made_by=access.user,
        made_at=now,
        expires_at=now + lasts,
    )
    record(
        action="member.invited",
        subject=f"invitation {prefix}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=access.tenant.slug,
        facts={"role": role, "expires_at": row.expires_at.isoformat()},
    )
    return NewInvitation(row, f"{prefix}.{secret}")


def find_invitation(text: str, now: datetime) -> Invitation | None:
    """The invitation that this text proves and that is good now, or None.

    Unknown, used, expired and taken back look the same, as does one whose maker is no owner of an
    active tenant any more: what they may not do, their invitations may not do either.
    """
    prefix, _, secret = text.strip().partition(".")
    found = Invitation.objects.filter(prefix=prefix).first()
    same = hmac.compare_digest(found.digest if found else digest_of(""), digest_of(secret))
    return still_good(found.pk, now) if found is not None and same else None


def still_good(invitation_id: int, now: datetime) -> Invitation | None:
    """The invitation, where it can still be accepted."""
    return (
        Invitation.objects.select_related("tenant", "made_by")
        .filter(
            pk=invitation_id,
            accepted_at=None,
            revoked_at=None,
            expires_at__gt=now,
            tenant__state=Tenant.State.ACTIVE,
            tenant__memberships__user_id=F("made_by_id"),
            tenant__memberships__role=Membership.Role.OWNER,
        )
        .first()
    )


@transaction.atomic
def accept(*, user: User, invitation_id: int, now: datetime, request_id: str) -> Membership:
    """Makes `user` a member and uses the invitation up. Raises `AlreadyMember`, `Refused`."""
    row = Invitation.objects.select_for_update().filter(pk=invitation_id).first()
    if row is None or still_good(invitation_id, now) is None:
        raise Refused(
            "This invitation was used, taken back, or is too old; ask for a new one.",
            code="INVITATION_GONE",
        )
    held = Membership.objects.filter(tenant=row.tenant, user=user).first()
    if held is not None:
        raise AlreadyMember(f"You are {held.role} of {row.tenant.name} already.", role=held.role)
    membership = Membership.objects.create(tenant=row.tenant, user=user, role=row.role)
    row.accepted_at, row.accepted_by = now, user
    row.save(update_fields=["accepted_at", "accepted_by"])
    record(
        action="member.joined",
        subject=f"invitation {row.prefix}",
        request_id=request_id,
        at=now,
        person=user.person,
        tenant=row.tenant.slug,
        facts={"role": row.role, "invited_by": str(row.made_by.person)},
    )
    return membership


@transaction.atomic
def revoke_invitation(*, access: Access, prefix: str, now: datetime, request_id: str) -> None:
    """Takes an open invitation back; doing it twice is fine. Raises `NotPermitted`."""
    access.require(Act.MANAGE_MEMBERS)
    rows = Invitation.objects.filter(
        tenant=access.tenant, prefix=prefix, accepted_at=None, revoked_at=None
    )
    if rows.update(revoked_at=now):
        record(
            action="member.invitation_revoked",
            subject=f"invitation {prefix}",
            request_id=request_id,
            at=now,
            person=access.user.person,
            tenant=access.tenant.slug,
        )


@transaction.atomic
def revoke_all(tenant: Tenant, *, now: datetime, request_id: str) -> list[str]:
    """Takes back every open invitation to a tenant that is closed; returns their prefixes."""
    open_ones = Invitation.objects.filter(tenant=tenant, accepted_at=None, revoked_at=None)
    prefixes = list(open_ones.order_by("prefix").values_list("prefix", flat=True))
    Invitation.objects.filter(prefix__in=prefixes, accepted_at=None).update(revoked_at=now)
    for prefix in prefixes:
        record(
            action="member.invitation_revoked",
            subject=f"invitation {prefix}",
            request_id=request_id,
            at=now,
            tenant=tenant.slug,
        )
    return prefixes


@transaction.atomic
def change_role(
    *, access: Access, username: str, role: str, now: datetime, request_id: str
) -> Membership:
    """Gives a member another role. Raises `NotPermitted`, `Invalid` (role), `LastOwner`, 404."""
    access.require(Act.MANAGE_MEMBERS)
    if role not in ROLES:
        raise Invalid("Nothing was changed.", fields={"role": f"Choose from {', '.join(ROLES)}."})
    membership = _locked(access.tenant, username)
    before = membership.role
    if before == role:
        return membership
    if before == Membership.Role.OWNER:
        _another_owner(membership)
    membership.role = role
    membership.save(update_fields=["role"])
    # Decided by a person now, so it no longer goes with a group.
    GroupHeld.objects.filter(tenant=access.tenant, user=membership.user).delete()
    record(
        action="member.role_changed",
        subject=f"person {membership.user.person}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=access.tenant.slug,
        facts={"from": before, "to": role},
    )
    return membership


@transaction.atomic
def remove(*, access: Access, username: str, now: datetime, request_id: str) -> None:
    """Ends a membership; everybody may end their own. Raises `NotPermitted`, `LastOwner`, 404.

    What the member asked for stays with the tenant; their tokens for it reach nothing from now on.
    """
    if username != access.user.username or access.user.viewing:
        access.require(Act.MANAGE_MEMBERS)
    membership = _locked(access.tenant, username)
    if membership.role == Membership.Role.OWNER:
        _another_owner(membership)
    user, role = membership.user, membership.role
    membership.delete()
    GroupHeld.objects.filter(tenant=access.tenant, user=user).delete()
    record(
        action="member.left" if user == access.user else "member.removed",
        subject=f"person {user.person}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=access.tenant.slug,
        facts={"role": role},
    )


def _locked(tenant: Tenant, username: str) -> Membership:
    """The membership, with the tenant locked: of two owners who leave at once, one must stay."""
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    found = (
        Membership.objects.select_related("user", "tenant")
        .filter(tenant=tenant, user__username=username)
        .first()
    )
    if found is None:
        raise Http404
    return found


def _another_owner(membership: Membership) -> None:
    others = Membership.objects.filter(
        tenant=membership.tenant, role=Membership.Role.OWNER, user__is_active=True
    ).exclude(pk=membership.pk)
    if not others.exists():
        raise LastOwner(
            f"{membership.user.words} is the last owner of {membership.tenant.name}; "
            "make somebody else an owner first."
        )
