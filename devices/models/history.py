"""When Pods with devices reached each stage: the history behind "usually 40 seconds"."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from devices.models.claim import Claim


class StageTimes(models.Model):
    """One Pod's way through the stages with the devices of one ask.

    Times are the cluster's own stamps where it keeps any; those named in `observed` are the moments
    at which Berth first saw the stage reached. A stage that was not reached, or that nobody saw,
    has none.
    """

    claim = models.ForeignKey(Claim, on_delete=models.CASCADE, related_name="stage_times")
    pod_uid = models.CharField(max_length=64)
    pod = models.CharField(max_length=253)
    classes = ArrayField(models.CharField(max_length=253), help_text="Asked for, sorted.")
    path = models.CharField(max_length=8, default="dra")

    created_at = models.DateTimeField()
    generated_at = models.DateTimeField(null=True)
    allocated_at = models.DateTimeField(null=True)
    bound_at = models.DateTimeField(null=True)
    prepared_at = models.DateTimeField(null=True)
    running_at = models.DateTimeField(null=True)
    ready_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)
    observed = ArrayField(models.CharField(max_length=12), default=list)

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["claim", "pod_uid"], name="one_way_a_pod"),
        ]
        indexes = [
            GinIndex(fields=["classes"], name="stage_times_by_class"),
            models.Index(fields=["created_at"], name="stage_times_by_age"),
            models.Index(
                fields=["claim"], condition=Q(released_at=None), name="stage_times_under_way"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pod} ({self.claim_id})"
