"""What the platform says of features that no API tells: the gates of the scheduler and others."""

from __future__ import annotations

from django.db import models


class AssumedGate(models.Model):
    """One feature gate of one component, as somebody of the platform says it is set.

    Without a row the default of the cluster's release is assumed. Pages show both as *assumed*.
    """

    class Component(models.TextChoices):
        SCHEDULER = "scheduler", "kube-scheduler"
        CONTROLLERS = "controllers", "kube-controller-manager"
        KUBELET = "kubelet", "kubelet"

    component = models.CharField(max_length=11, choices=Component)
    gate = models.CharField(max_length=63)
    on = models.BooleanField()
    note = models.CharField(max_length=240, blank=True, help_text="How they know.")
    said_by = models.UUIDField(help_text="Opaque person id.")
    said_at = models.DateTimeField()

    class Meta:
        ordering = ["gate", "component"]
        constraints = [
            models.UniqueConstraint(fields=["component", "gate"], name="gate_assumed_once"),
        ]

    def __str__(self) -> str:
        return f"{self.component} {self.gate}={'on' if self.on else 'off'}"
