"""The only way to a tenant. Strangers get 404: that a tenant exists is nobody else's business."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.http import Http404

from portal.approvals.delegations import in_force
from portal.approvals.rules import Decider, Rights
from tenants.models import Membership, Tenant, User
from tenants.policy import Act, may, require, why_not


@dataclass(frozen=True, slots=True)
class Access:
    """A tenant as one person may use it."""

    tenant: Tenant
    role: str
    user: User

    def may(self, act: Act) -> bool:
        return may(self.role, act)

    def why_not(self, act: Act) -> str:
        return why_not(self.role, act)

    def require(self, act: Act) -> None:
        """Raises `NotPermitted` (403) with who may."""
        require(self.role, act)


def tenant_for(user: User | AnonymousUser, slug: str) -> Access:
    """The tenant with the caller's role, or 404 for everybody who is not a member of it."""
    membership = (
        Membership.objects.select_related("tenant", "user")
        .filter(user_id=user.pk, tenant__slug=slug)
        .exclude(tenant__state=Tenant.State.CLOSED)
        .first()
        if isinstance(user, User)
        else None
    )
    if membership is None:
        raise Http404
    return Access(membership.tenant, membership.role, membership.user)


def tenants_of(user: User) -> list[Access]:
    """Every tenant of a person, by name."""
    memberships = (
        Membership.objects.select_related("tenant")
        .filter(user=user)
        .exclude(tenant__state=Tenant.State.CLOSED)
        .order_by("tenant__name")
    )
    return [Access(membership.tenant, membership.role, user) for membership in memberships]


def decider_of(user: User, now: datetime) -> Decider:
    """The person at the door of an approval: their rights, and those lent to them at `now`.

    Three queries, however many tenants and lenders there are. Lenders without an active account
    lend nothing.
    """
    lenders = in_force(now).filter(borrower=user.person).values_list("lender", flat=True)
    people = User.objects.filter(Q(pk=user.pk) | Q(person__in=list(lenders)), is_active=True)
    rights: dict[UUID, Rights] = {}
    for one in people.prefetch_related("platform_roles", "memberships__tenant"):
        rights[one.person] = Rights(
            frozenset(held.role for held in one.platform_roles.all()),
            {
                held.tenant.slug: held.role
                for held in one.memberships.all()
                if held.tenant.state != Tenant.State.CLOSED
            },
        )
    own = rights.pop(user.person, Rights())
    return Decider(user.person, own, rights)
