"""Tables of the first floor: people, tenants, tokens."""

from __future__ import annotations

from tenants.models.group import GroupHeld, GroupRole
from tenants.models.invitation import Invitation
from tenants.models.person import PlatformRole, User
from tenants.models.tenant import DNS_LABEL, Membership, Tenant, TenantNamespace
from tenants.models.token import ApiToken

__all__ = [
    "DNS_LABEL",
    "ApiToken",
    "GroupHeld",
    "GroupRole",
    "Invitation",
    "Membership",
    "PlatformRole",
    "Tenant",
    "TenantNamespace",
    "User",
]
