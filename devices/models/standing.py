"""How far the cluster agrees with what a tenant may have: one row a tenant, one a namespace."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from tenants.models import Tenant, TenantNamespace

LEASE = timedelta(seconds=60)


class TenantStanding(models.Model):
    """When a tenant's namespaces were last looked at, and the lease of the turn that does."""

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="standing")
    looked_at = models.DateTimeField(null=True)
    lease = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True)
    woken = models.BooleanField(default=False, help_text="A turn came while another had the lease.")

    class Meta:
        indexes = [models.Index(fields=["looked_at"])]

    def __str__(self) -> str:
        return f"standing of {self.tenant_id}"

    def take_lease(self, holder: str, now: datetime) -> bool:
        """True where this turn may act; else the one at work is told to call the next."""
        if self._lease(holder, now):
            return True
        TenantStanding.objects.filter(pk=self.pk).update(woken=True)
        return self._lease(holder, now)  # the other may have ended just before it could notice

    def _lease(self, holder: str, now: datetime) -> bool:
        free = Q(lease="") | Q(lease_until__lt=now)
        mine = TenantStanding.objects.filter(Q(pk=self.pk) & free)
        return bool(mine.update(lease=holder, lease_until=now + LEASE, woken=False))

    def drop_lease(self, holder: str, *, looked_at: datetime | None = None) -> bool:
        """Ends the lease; returns whether somebody came meanwhile and has to be called again."""
        mine = TenantStanding.objects.filter(pk=self.pk, lease=holder)
        ended: dict[str, object] = {"lease": "", "lease_until": None}
        if looked_at is not None:
            ended["looked_at"] = looked_at
        woken = mine.filter(woken=True).update(**ended)
        mine.update(**ended)
        return bool(woken)


class NamespaceStanding(models.Model):
    """What Berth last wrote to one namespace, and whether the cluster has it so."""

    class Origin(models.TextChoices):
        """Berth makes again only what it made itself."""

        ADOPTED = "adopted", "It was there"
        MADE = "made", "Berth made it"

    class State(models.TextChoices):
        IN_FORCE = "in force", "In force"
        MISSING = "missing", "Missing"
        REFUSED = "refused", "Refused"
        WAITING = "waiting", "Waiting for the cluster"

    namespace = models.OneToOneField(
        TenantNamespace, on_delete=models.CASCADE, related_name="standing"
    )
    origin = models.CharField(max_length=7, choices=Origin, blank=True)
    uid = models.CharField(max_length=64, blank=True, help_text="Of the namespace last seen.")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    code = models.CharField(max_length=48, blank=True)
    why = models.TextField(blank=True)
    intended = models.JSONField(
        default=dict, help_text="What a turn set out to write: kind to object."
    )
    applied = models.JSONField(
        default=dict, help_text="What the cluster was last seen to have: kind to object."
    )
    in_force_at = models.DateTimeField(null=True, help_text="When both last agreed.")
    repaired_at = models.DateTimeField(null=True, help_text="When others' changes were undone.")

    def __str__(self) -> str:
        return f"standing of namespace {self.namespace_id}"
