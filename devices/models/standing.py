"""How far the cluster agrees with what a tenant may have: one row a tenant, one a namespace."""

from __future__ import annotations

from datetime import timedelta

from django.db import models

from devices.models.lease import Leased
from tenants.models import Tenant, TenantNamespace

LEASE = timedelta(seconds=60)


class TenantStanding(Leased):
    """When a tenant's namespaces were last looked at, and the lease of the turn that does."""

    lease_time = LEASE

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="standing")

    class Meta:
        indexes = [models.Index(fields=["looked_at"])]

    def __str__(self) -> str:
        return f"standing of {self.tenant_id}"


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
    taken_off = models.JSONField(
        default=dict, help_text="What of Berth's was found when it left its tenant: kind to object."
    )
    in_force_at = models.DateTimeField(null=True, help_text="When both last agreed.")
    repaired_at = models.DateTimeField(null=True, help_text="When others' changes were undone.")

    def __str__(self) -> str:
        return f"standing of namespace {self.namespace_id}"
