"""Tenants, their namespaces and members."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models

from tenants.models.person import User

DNS_LABEL = RegexValidator(
    r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    "Use lower-case letters, digits and '-', at most 63 characters, as Kubernetes names allow.",
)


class Tenant(models.Model):
    """Who holds devices: a team, with members and namespaces of its own."""

    class State(models.TextChoices):
        ACTIVE = "active", "Active"
        CLOSING = "closing", "Closing"
        CLOSED = "closed", "Closed"

    class Priority(models.TextChoices):
        """What happens to held requests when a path is frozen (design: freezes and routes)."""

        CONTINUITY = "continuity", "Continuity"
        THROUGHPUT = "throughput", "Throughput"
        UTILISATION = "utilisation", "Utilisation"

    slug = models.SlugField(max_length=63, unique=True, validators=[DNS_LABEL])
    name = models.CharField(max_length=120)
    state = models.CharField(max_length=8, choices=State, default=State.ACTIVE)
    priority = models.CharField(max_length=12, choices=Priority, default=Priority.CONTINUITY)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class TenantNamespace(models.Model):
    """A namespace of the cluster that belongs to exactly one tenant."""

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="namespaces")
    name = models.CharField(max_length=63, unique=True, validators=[DNS_LABEL])
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """What a person is in a tenant."""

    class Role(models.TextChoices):
        VIEWER = "viewer", "Viewer"
        MEMBER = "member", "Member"
        OWNER = "owner", "Owner"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=6, choices=Role)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_role_per_tenant"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.tenant}"
