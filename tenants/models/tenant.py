"""Tenants, their namespaces and members."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from tenants.models.person import User

DNS_LABEL = RegexValidator(
    r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
    "Use lower-case letters, digits and '-', at most 63 characters, as Kubernetes names allow.",
)


PRIORITY_WORDS = {
    "continuity": "Held requests wait until their own path is open again. Nothing is proposed for "
    "eviction.",
    "throughput": "Held requests are sent at once by whichever path is free, and their owner is "
    "told. Nothing is proposed for eviction.",
    "utilisation": "Held requests are sent by whichever path is free; to make room, ending Pods "
    "that their owners marked as retryable may be proposed.",
}


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

        @property
        def words(self) -> str:
            """What it does, for the one who chooses."""
            return PRIORITY_WORDS[self.value]

    slug = models.SlugField(max_length=63, unique=True, validators=[DNS_LABEL])
    name = models.CharField(max_length=120)
    state = models.CharField(max_length=8, choices=State, default=State.ACTIVE)
    priority = models.CharField(max_length=12, choices=Priority, default=Priority.CONTINUITY)
    longest_days = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        help_text="How many days ahead the end of its claims may lie; empty: no end is needed.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Present(models.Manager["TenantNamespace"]):
    """Namespaces that a tenant has now; those that left stay for what refers to them."""

    def get_queryset(self) -> models.QuerySet[TenantNamespace]:
        return super().get_queryset().filter(left_at=None)


class TenantNamespace(models.Model):
    """A namespace of the cluster that belongs to exactly one tenant, as long as it does.

    `leaving_at` is the wish that it leaves the tenant, `left_at` when the cluster has confirmed
    that it carries nothing of Berth's any more. After that another tenant may have the name.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="namespaces")
    name = models.CharField(max_length=63, validators=[DNS_LABEL])
    created_at = models.DateTimeField(auto_now_add=True)
    adopted = models.BooleanField(
        default=False, help_text="It was there before; Berth never makes it."
    )
    leaving_at = models.DateTimeField(null=True, blank=True)
    left_at = models.DateTimeField(null=True, blank=True)

    objects = Present()
    ever = models.Manager()  # noqa: DJ012 - it is a manager, and must not be the first

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["name"], condition=Q(left_at=None), name="namespace_of_one_tenant"
            ),
        ]

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
