"""People who sign in, and what they are for the whole platform."""

from __future__ import annotations

import uuid

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):
    """A person who signs in. `person` is the opaque id that audit lines carry instead of a name."""

    person = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    display_name = models.CharField(max_length=120, blank=True)

    viewing = ""
    """Slug of the tenant as which an admin looks at the portal now (`tenants.viewing`)."""

    class Meta(AbstractUser.Meta):
        pass

    @property
    def words(self) -> str:
        return self.display_name or self.username


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
