"""The doctor's looks: who asked for one, and what came of it."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from devices.models.claim import new_public_id


class DoctorRun(models.Model):
    """One look, asked for by a person or by the clock (`asked_by` empty). A worker looks."""

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    asked_at = models.DateTimeField()
    asked_by = models.UUIDField(null=True, help_text="Opaque person id.")
    request_id = models.CharField(max_length=64, blank=True)
    looked_at = models.DateTimeField(null=True)
    report = models.JSONField(default=list, help_text="Sections as devices.doctor.findings.")
    failed = models.TextField(blank=True, help_text="Why there is no report.")

    class Meta:
        ordering = ["-pk"]
        constraints = [
            # Any number may ask at the same time; one look answers them all.
            models.UniqueConstraint(
                fields=["asked_by"],
                condition=Q(looked_at=None),
                nulls_distinct=False,
                name="one_open_look_each",
            )
        ]

    def __str__(self) -> str:
        return f"look {self.public_id}"
