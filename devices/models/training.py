"""What training platforms say about the runs on devices: the only record of useful work."""

from __future__ import annotations

import pgtrigger
from django.db import models
from django.db.models import Q

from devices.dra.training import Kind
from devices.models.claim import Claim
from tenants.models import Tenant

KINDS = [(kind.value, kind.value) for kind in Kind]


class TrainingSignal(models.Model):
    """One thing that a platform said about a run on the devices of one ask; never changed.

    `event_id` is the platform's own: the same is stored once a tenant, however often it is sent.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    claim = models.ForeignKey(Claim, on_delete=models.CASCADE, related_name="signals")
    event_id = models.CharField(max_length=100)
    pod = models.CharField(max_length=253, blank=True, help_text="Name; empty: all of its Pods.")
    run = models.CharField(max_length=120, blank=True, help_text="As the platform calls it.")
    kind = models.CharField(max_length=10, choices=KINDS)
    at = models.DateTimeField(help_text="By the platform's clock.")
    seconds = models.FloatField(null=True, help_text="Useful ones, since the last such report.")
    ok = models.BooleanField(default=True, help_text="Whether a run that finished did so well.")
    step = models.BigIntegerField(null=True, help_text="How far the run is, in its own count.")
    told_at = models.DateTimeField()
    told_by = models.UUIDField(help_text="Opaque person id of whose token it was.")

    class Meta:
        ordering = ["-at", "-pk"]
        constraints = [
            models.UniqueConstraint(fields=["tenant", "event_id"], name="signal_told_once"),
            models.CheckConstraint(
                condition=Q(seconds=None) | Q(seconds__gte=0), name="signal_seconds_count_up"
            ),
        ]
        indexes = [
            models.Index(fields=["claim", "at"], name="signals_of_a_claim"),
            models.Index(fields=["at"], name="signals_by_age"),
        ]
        triggers = [pgtrigger.Protect(name="told_as_it_was", operation=pgtrigger.Update)]

    def __str__(self) -> str:
        return f"{self.kind} at {self.at} ({self.claim_id})"
