"""Invitations: a secret that is shown once and makes whoever brings it a member."""

from __future__ import annotations

from django.db import models

from tenants.models.person import User
from tenants.models.tenant import Membership, Tenant


class Invitation(models.Model):
    """Good for one person, until it expires or is taken back. Only its digest is kept."""

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=6, choices=Membership.Role)
    note = models.CharField(max_length=80, help_text="For whom, in the inviter's words.")
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64)
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    accepted_by = models.ForeignKey(User, on_delete=models.SET_NULL, null=True, related_name="+")
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-made_at"]

    def __str__(self) -> str:
        return f"{self.role} of {self.tenant} for {self.note}"
