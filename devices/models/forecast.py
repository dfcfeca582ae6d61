"""What was foretold of an ask when it was made, and what came of it."""

from __future__ import annotations

import pgtrigger
from django.db import models
from django.db.models import Q

from devices.models.claim import Claim

TOLD = ["claim", "made_at", "seen_at", "fate", "code", "nodes", "release"]


class Forecast(models.Model):
    """One forecast for one ask. What was told never changes; the outcome is written once."""

    class Outcome(models.TextChoices):
        OPEN = "open"
        RIGHT = "right"
        WRONG = "wrong"
        NOT_COMPARED = "not compared"

    claim = models.OneToOneField(Claim, on_delete=models.CASCADE, related_name="forecast")
    made_at = models.DateTimeField()
    seen_at = models.DateTimeField(null=True, help_text="The moment that the mirror showed.")
    fate = models.CharField(max_length=32, help_text="A value of devices.forecasts.whatif.Fate.")
    code = models.CharField(max_length=48, blank=True)
    nodes = models.PositiveIntegerField(default=0, help_text="On how many nodes it would fit.")
    release = models.CharField(max_length=16, blank=True)

    outcome = models.CharField(max_length=12, choices=Outcome, default=Outcome.OPEN)
    outcome_at = models.DateTimeField(null=True)
    outcome_code = models.CharField(max_length=48, blank=True)
    took = models.FloatField(null=True, help_text="Seconds from the Pod to its allocation.")
    why = models.CharField(max_length=160, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["made_at"], condition=Q(outcome="open"), name="forecasts_open"),
            models.Index(fields=["outcome_at"], name="forecasts_by_outcome"),
        ]
        triggers = [
            pgtrigger.ReadOnly(name="told_once", fields=TOLD),
            pgtrigger.FSM(
                name="judged_once",
                field="outcome",
                transitions=[("open", "right"), ("open", "wrong"), ("open", "not compared")],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.claim_id}: {self.fate}"
