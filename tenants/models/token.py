"""Keys for programs."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models.person import User
from tenants.models.tenant import Tenant


class ApiToken(models.Model):
    """A key for programs: one tenant or the platform, scoped, expiring; kept as a digest only."""

    class Scope(models.TextChoices):
        READ = "read", "Read"
        REQUEST = "request", "Ask and release"
        OPERATE = "operate", "Limits, grants, freezes"
        ADMIN = "admin", "Members, roles, tenants"
        SIGNAL = "signal", "Tell of training runs"

    tenant = models.ForeignKey(
        Tenant,
        on_delete=models.CASCADE,
        related_name="tokens",
        null=True,
        blank=True,
        help_text="None: for the platform.",
    )
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=16, choices=Scope))
    networks = ArrayField(
        models.CharField(max_length=49),
        default=list,
        blank=True,
        help_text="CIDR ranges it may be used from; none: from everywhere.",
    )
    dry_run_first = models.BooleanField(
        default=False, help_text="Acts only after a dry run of the same request."
    )
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    last_used_from = models.GenericIPAddressField(null=True)
    last_refused_at = models.DateTimeField(null=True, help_text="From an address outside of them.")
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def where(self) -> str:
        """What it reaches, in words."""
        return self.tenant.name if self.tenant else "the platform"
