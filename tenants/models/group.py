"""Groups of the company's sign-in: which role each gives, and what a person holds by them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from tenants.models.person import User
from tenants.models.tenant import Tenant

TENANT_ROLES = ["viewer", "member", "owner"]
PLATFORM_ROLES = ["auditor", "operator", "approver", "admin"]
ROLES = [(role, role) for role in TENANT_ROLES + PLATFORM_ROLES]
FITS = Q(tenant=None, role__in=PLATFORM_ROLES) | (~Q(tenant=None) & Q(role__in=TENANT_ROLES))


class GroupRole(models.Model):
    """A group gives a role in one tenant, or (without a tenant) on the platform."""

    group = models.CharField(max_length=200, help_text="As the provider's groups claim writes it.")
    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="groups", null=True, blank=True
    )
    role = models.CharField(max_length=8, choices=ROLES)

    class Meta:
        ordering = ["group", "role"]
        constraints = [
            models.UniqueConstraint(
                fields=["group", "tenant", "role"], name="group_role_once", nulls_distinct=False
            ),
            models.CheckConstraint(condition=FITS, name="group_role_fits"),
        ]

    def __str__(self) -> str:
        return f"{self.group} gives {self.role} of {self.tenant or 'the platform'}"


class GroupHeld(models.Model):
    """A role that a person holds because of their groups, so that it can go with the group."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="held_by_groups")
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, null=True, related_name="+")
    role = models.CharField(max_length=8, choices=ROLES)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "tenant", "role"], name="held_once", nulls_distinct=False
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.role} of {self.tenant or 'the platform'} by groups"
