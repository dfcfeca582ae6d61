"""Keys for programs."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models.person import User
from tenants.models.tenant import Tenant


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
