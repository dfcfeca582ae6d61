"""Closings of tenants: who asked, how far each is, what it waits for, and its receipt."""

from __future__ import annotations

import pgtrigger
from django.db import models
from django.db.models import Q

from devices.dra.closing import OVER, UNDER_WAY, Phase, moves, revocable
from devices.models.claim import new_public_id
from tenants.models import Tenant

PHASES = [(str(phase), str(phase)) for phase in Phase]


class ClosureQuerySet(models.QuerySet["Closure"]):
    """Questions that turns, pages and verbs ask."""

    def unfinished(self) -> ClosureQuerySet:
        """Asked for or under way; at most one of each tenant."""
        return self.exclude(phase__in=OVER)

    def under_way(self) -> ClosureQuerySet:
        return self.filter(phase__in=UNDER_WAY)


class Closure(models.Model):
    """One closing of a tenant. Why and by whom never changes; once over, nothing does."""

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="closures")
    reason = models.CharField(max_length=240)
    asked_by = models.UUIDField(help_text="Opaque person id: an owner, or the admin who began it.")
    asked_at = models.DateTimeField()
    approval = models.BigIntegerField(null=True, help_text="What an owner asked for is decided by.")
    request_id = models.CharField(max_length=64)
    deadline = models.DateTimeField(
        null=True, help_text="When somebody should look; nothing is done by itself then."
    )
    late_at = models.DateTimeField(null=True, help_text="When its deadline was found to be over.")

    phase = models.CharField(max_length=10, choices=PHASES, default=Phase.STOPPING)
    began_by = models.UUIDField(null=True, help_text="Empty while an owner only asks.")
    began_at = models.DateTimeField(null=True)
    shut_at = models.DateTimeField(null=True, help_text="When nothing new could begin any more.")
    empty_at = models.DateTimeField(null=True, help_text="When no Pod used a device any more.")
    reclaimed_at = models.DateTimeField(null=True, help_text="When the last claim was gone.")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.UUIDField(null=True, help_text="Who cancelled it.")

    blockers = models.JSONField(default=list, help_text="What it waits for: code, subject, why.")
    looked_at = models.DateTimeField(null=True)
    bonds = models.JSONField(null=True, help_text="Grants, tokens and the like that it ended.")
    receipt = models.JSONField(null=True)
    digest = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the receipt.")
    revision = models.PositiveIntegerField(default=1)

    objects = ClosureQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["tenant"], condition=Q(ended_at=None), name="one_closing_at_a_time"
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None, phase__in=[str(one) for one in Phase if one not in OVER])
                | Q(ended_at__isnull=False, phase__in=[str(one) for one in sorted(OVER)]),
                name="closing_over_has_its_end",
            ),
            models.CheckConstraint(
                condition=~Q(phase="closed") | (Q(receipt__isnull=False) & ~Q(digest="")),
                name="closed_with_a_receipt",
            ),
        ]
        triggers = [
            pgtrigger.FSM(
                name="closing_moves",
                field="phase",
                transitions=[(str(before), str(after)) for before, after in moves()],
            ),
            pgtrigger.ReadOnly(
                name="asked_once",
                fields=["public_id", "tenant", "reason", "asked_by", "asked_at", "request_id"],
            ),
            pgtrigger.Protect(name="kept", operation=pgtrigger.Delete),
            pgtrigger.Protect(
                name="over_once",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__ended_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"closing of {self.tenant_id} ({self.phase})"

    @property
    def over(self) -> bool:
        return self.phase in OVER

    @property
    def under_way(self) -> bool:
        return self.phase in UNDER_WAY

    @property
    def revocable(self) -> bool:
        """Whether it can still be cancelled."""
        return revocable(Phase(self.phase))
