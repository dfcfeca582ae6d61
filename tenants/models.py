"""Users, tenants, their namespaces and members, platform roles and API tokens."""

from __future__ import annotations

import uuid

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.core.validators import RegexValidator
from django.db import models

DNS_LABEL = RegexValidator(
    r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    "Use lower-case letters, digits and '-', at most 63 characters, as Kubernetes names allow.",
)


class User(AbstractUser):
    """A person who signs in. `person` is the opaque id that audit lines carry instead of a name."""

    person = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    display_name = models.CharField(max_length=120, blank=True)

    class Meta(AbstractUser.Meta):
        pass

    @property
    def words(self) -> str:
        return self.display_name or self.username


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


class PlatformRole(models.Model):
    """What a person is for the whole platform, beside any tenant."""

    class Role(models.TextChoices):
        AUDITOR = "auditor", "Auditor"
        OPERATOR = "operator", "Operator"
        APPROVER = "approver", "Approver"
        ADMIN = "admin", "Admin"

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="platform_roles")
    role = models.CharField(max_length=8, choices=Role)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "role"], name="platform_role_once"),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role}"


class ApiToken(models.Model):
    """A key for programs: bound to one tenant, scoped, expiring. Only its digest is kept."""

    class Scope(models.TextChoices):
        READ = "read", "Read"
        REQUEST = "request", "Ask and release"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="tokens")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope))
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
