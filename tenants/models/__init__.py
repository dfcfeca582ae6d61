"""Tables of the first floor: people, tenants, tokens, limits, grants."""

from __future__ import annotations

from tenants.models.accountlink import AccountLink
from tenants.models.grant import Grant
from tenants.models.group import GroupHeld, GroupRole
from tenants.models.invitation import Invitation
from tenants.models.limit import BudgetLine, Limit, LimitWish, Share
from tenants.models.person import PlatformRole, User
from tenants.models.tenant import DNS_LABEL, Membership, Tenant, TenantNamespace
from tenants.models.token import ApiToken

__all__ = [
    "DNS_LABEL",
    "AccountLink",
    "ApiToken",
    "BudgetLine",
    "Grant",
    "GroupHeld",
    "GroupRole",
    "Invitation",
    "Limit",
    "LimitWish",
    "Membership",
    "PlatformRole",
    "Share",
    "Tenant",
    "TenantNamespace",
    "User",
]
