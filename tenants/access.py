"""The only way to a tenant. Strangers get 404: that a tenant exists is nobody else's business."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q
from django.http import Http404

from portal.approvals.delegations import in_force
from portal.approvals.rules import Decider, Rights
from tenants.models import ApiToken, Membership, PlatformRole, Tenant, User
from tenants.policy import (
    Act,
    PlatformAct,
    may,
    may_on_platform,
    require,
    require_on_platform,
    why_not,
    why_not_on_platform,
)


@dataclass(frozen=True, slots=True)
class Access:
    """A tenant as one person may use it; `scopes` is what their token allows, if it is a token."""

    tenant: Tenant
    role: str
    user: User
    scopes: frozenset[str] | None = None

    def may(self, act: Act) -> bool:
        return may(self.role, act, self.scopes)

    def why_not(self, act: Act) -> str:
        return why_not(self.role, act, self.scopes)

    def require(self, act: Act) -> None:
        """Raises `NotPermitted` (403) with who may."""
        require(self.role, act, self.scopes)

    def narrowed(self, scopes: frozenset[str] | None) -> Access:
        """The same through a token of these scopes; None is the person themselves."""
        return replace(self, scopes=scopes)


@dataclass(frozen=True, slots=True)
class PlatformAccess:
    """The platform as one person may use it."""

    user: User
    roles: frozenset[str]
    scopes: frozenset[str] | None = None

    def may(self, act: PlatformAct) -> bool:
        return may_on_platform(self.roles, act, self.scopes)

    def why_not(self, act: PlatformAct) -> str:
        return why_not_on_platform(self.roles, act, self.scopes)

    def require(self, act: PlatformAct) -> None:
        """Raises `NotPermitted` (403) with who may."""
        require_on_platform(self.roles, act, self.scopes)

    def narrowed(self, scopes: frozenset[str] | None) -> PlatformAccess:
        """The same through a token of these scopes; None is the person themselves."""
        return replace(self, scopes=scopes)

    @property
    def words(self) -> str:
        return " and ".join(sorted(self.roles))


def tenant_for(user: User | AnonymousUser, slug: str) -> Access:
    """The tenant with the caller's role, or 404 for everybody who is not a member of it.

    An admin who views the portal as this tenant (`tenants.viewing`) sees it as a viewer does.
    """
    if not isinstance(user, User):
        raise Http404
    if user.viewing == slug:
        tenant = Tenant.objects.filter(slug=slug).exclude(state=Tenant.State.CLOSED).first()
        if tenant is not None:
            return Access(tenant, Membership.Role.VIEWER, user)
    membership = (
        Membership.objects.select_related("tenant", "user")
        .filter(user_id=user.pk, tenant__slug=slug)
        .exclude(tenant__state=Tenant.State.CLOSED)
        .first()
    )
    if membership is None:
        raise Http404
    return Access(membership.tenant, membership.role, membership.user)


def tenant_through(token: ApiToken) -> Access:
    """The token's tenant for who reads through it: it has brought its person and tenant along.
    Who writes asks `tenant_for`: it may have waited since the token was found.
    """
    tenant = token.tenant
    if tenant is None or tenant.state == Tenant.State.CLOSED:
        raise Http404
    held = Membership.objects.filter(user=token.user_id, tenant=tenant.pk)
    role = held.values_list("role", flat=True).first()
    if role is None:
        raise Http404
    return Access(tenant, role, token.user)


def tenants_of(user: User) -> list[Access]:
    """Every tenant of a person, by name."""
    memberships = (
        Membership.objects.select_related("tenant")
        .filter(user=user)
        .exclude(tenant__state=Tenant.State.CLOSED)
        .order_by("tenant__name")
    )
    return [Access(membership.tenant, membership.role, user) for membership in memberships]


def closed_tenants_of(user: User) -> list[Tenant]:
    """Tenants that are closed and that a person owned to the end, by name: their receipts stay."""
    owned = Membership.objects.filter(
        user=user, role=Membership.Role.OWNER, tenant__state=Tenant.State.CLOSED
    )
    return [one.tenant for one in owned.select_related("tenant").order_by("tenant__name")]


def closed_tenant_for(user: User | AnonymousUser, slug: str) -> Tenant:
    """A closed tenant for who owned it to the end, or 404: to all others it is gone."""
    found = closed_tenants_of(user) if isinstance(user, User) else []
    tenant = next((one for one in found if one.slug == slug), None)
    if tenant is None:
        raise Http404
    return tenant


def platform_of(user: User) -> PlatformAccess:
    """What a person is for the platform; without any role too."""
    roles = PlatformRole.objects.filter(user=user).values_list("role", flat=True)
    return PlatformAccess(user, frozenset(roles))


def platform_access(user: User | AnonymousUser) -> PlatformAccess:
    """The platform, or 404 for whoever has no role there: its pages are nobody else's business."""
    access = platform_of(user) if isinstance(user, User) else None
    if access is None or not access.roles:
        raise Http404
    return access


def decider_of(user: User, now: datetime) -> Decider:
    """The person at the door of an approval: their rights, and those lent to them at `now`.

    A constant number of queries, however many tenants and lenders there are. Lenders without an
    active account lend nothing.
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
