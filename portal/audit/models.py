"""Audit lines: append-only and hash-chained; they name people by their opaque person id."""

from __future__ import annotations

from typing import Any

import pgtrigger
from django.db import models


class AuditLine(models.Model):
    """One act. `number` has no gaps; `digest` covers the content and the digest before it."""

    number = models.PositiveBigIntegerField(primary_key=True)
    at = models.DateTimeField()
    person = models.UUIDField(null=True, help_text="Opaque person id; none for Berth's own acts.")
    tenant = models.SlugField(blank=True, help_text="The tenant concerned; empty for the platform.")
    action = models.CharField(max_length=64)
    subject = models.CharField(max_length=320, help_text="What was acted on, kind and name.")
    request_id = models.CharField(max_length=64)
    facts = models.JSONField(default=dict)
    source = models.CharField(
        max_length=8, blank=True, help_text="Empty: an act in Berth. cluster: seen in the cluster."
    )
    origin = models.CharField(
        max_length=160, blank=True, help_text="What was seen, so that it is written down once."
    )
    previous = models.CharField(max_length=64)
    digest = models.CharField(max_length=64, unique=True)

    class Meta:
        ordering = ["number"]
        indexes = [
            models.Index(fields=["tenant", "-number"]),
            models.Index(fields=["request_id"]),
            models.Index(fields=["person", "-number"], name="audit_by_person"),
            models.Index(fields=["action", "-number"], name="audit_by_action"),
            models.Index(fields=["subject", "-number"], name="audit_by_subject"),
            models.Index(fields=["at"], name="audit_by_time"),
            # Sightings are few among many acts.
            models.Index(
                fields=["-number"], condition=models.Q(source="cluster"), name="audit_seen"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["origin"], condition=~models.Q(origin=""), name="seen_once"
            ),
        ]
        triggers = [
            pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)
        ]

    def __str__(self) -> str:
        return f"{self.number} {self.action} {self.subject}"

    def content(self) -> dict[str, Any]:
        """What the digest covers, as JSON values. What is empty for Berth's own acts is left out,
        so that lines from before there were others still prove.
        """
        seen = {"source": self.source, "origin": self.origin} if self.source else {}
        return {
            "number": self.number,
            "at": self.at.isoformat(),
            "person": str(self.person) if self.person else None,
            "tenant": self.tenant,
            "action": self.action,
            "subject": self.subject,
            "request_id": self.request_id,
            "facts": self.facts,
            **seen,
        }
