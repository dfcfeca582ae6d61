"""Translated manifests put to the API server, and what it said to each object."""

from __future__ import annotations

from django.db import models

from devices.models.claim import new_public_id
from tenants.models import Tenant


class Proof(models.Model):
    """What one person wants to know about a translation. A worker asks; page and API read.

    The objects are somebody's manifests and may hold what is nobody's business: they are dropped as
    soon as there is an answer.
    """

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE, related_name="+")
    asked_by = models.UUIDField(help_text="Opaque person id; nobody else reads the answer.")
    asked_at = models.DateTimeField()
    request_id = models.CharField(max_length=64)
    questions = models.JSONField(help_text="What each is, whether from before, and the object.")
    answers = models.JSONField(default=list, help_text="By question: accepted, code and words.")
    answered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["asked_at"], name="proofs_by_age")]

    def __str__(self) -> str:
        return f"proof {self.public_id}"

    @property
    def topic(self) -> str:
        """What its page listens for."""
        return f"proof-{self.public_id}"
