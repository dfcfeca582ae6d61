"""When Pods with devices reached each stage: the history behind "usually 40 seconds"."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from devices.models.claim import Claim
from tenants.models import Tenant


class StageTimes(models.Model):
    """One Pod's way through the stages with the devices of one ask.

    Times are the cluster's own stamps where it keeps any; those named in `observed` are the moments
    at which Berth first saw the stage reached. A stage that was not reached, or that nobody saw,
    has none.
    """

    claim = models.ForeignKey(Claim, on_delete=models.CASCADE, related_name="stage_times")
    tenant = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="+")
    pod_uid = models.CharField(max_length=64)
    pod = models.CharField(max_length=253)
    classes = ArrayField(models.CharField(max_length=253), help_text="Asked for, sorted.")
    path = models.CharField(max_length=8, default="claim", help_text="A `devices.routing` Path.")
    node = models.CharField(max_length=253, blank=True)
    node_pool = models.CharField(
        max_length=63, blank=True, help_text="Slug of the node pool when it was bound; empty: none."
    )
    job = models.CharField(max_length=64, blank=True, help_text="Uid of the Job that made it.")
    ended = models.CharField(
        max_length=9, blank=True, help_text="Phase in which it ended; empty: not yet."
    )
    retries = models.PositiveIntegerField(
        default=0, help_text="Preparations that failed and that the kubelet tried again."
    )
    devices = models.JSONField(
        default=dict, help_text="How many of each class it asked for; empty where that is open."
    )

    created_at = models.DateTimeField()
    generated_at = models.DateTimeField(null=True)
    allocated_at = models.DateTimeField(null=True)
    bound_at = models.DateTimeField(null=True)
    prepared_at = models.DateTimeField(null=True)
    running_at = models.DateTimeField(null=True)
    ready_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)
    unhealthy_at = models.DateTimeField(
        null=True, help_text="When Berth first saw the kubelet call one of its devices unhealthy."
    )
    observed = ArrayField(models.CharField(max_length=12), default=list)

    class Meta:
        ordering = ["created_at", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["claim", "pod_uid"], name="one_way_a_pod"),
        ]
        indexes = [
            GinIndex(fields=["classes"], name="stage_times_by_class"),
            models.Index(fields=["created_at"], name="stage_times_by_age"),
            models.Index(fields=["tenant", "created_at"], name="stage_times_by_tenant"),
            models.Index(
                fields=["claim"], condition=Q(released_at=None), name="stage_times_under_way"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pod} ({self.claim_id})"
