"""One-time links by which a person sets the password of a local account."""

from __future__ import annotations

from django.db import models

from tenants.models.person import User


class AccountLink(models.Model):
    """Good once, until it expires, is taken back or a newer one is made. Its digest is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="account_links")
    prefix = models.CharField(max_length=12, unique=True)
    digest = models.CharField(max_length=64)
    made_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    made_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-made_at"]

    def __str__(self) -> str:
        return f"password link of {self.user}"
