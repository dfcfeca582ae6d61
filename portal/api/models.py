"""Answers kept for Idempotency-Key: the same question gets the same answer, done once."""

from __future__ import annotations

from django.db import models


class KeptAnswer(models.Model):
    """One idempotent request of one caller. The row is written in the transaction of the act."""

    caller = models.CharField(max_length=64, help_text="Token or person that sent the key.")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of method, path and body.")
    status = models.PositiveSmallIntegerField()
    body = models.JSONField()
    headers = models.JSONField(default=dict)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["caller", "key"], name="one_answer_per_key"),
        ]
        indexes = [models.Index(fields=["created_at"])]

    def __str__(self) -> str:
        return f"{self.caller} {self.key}"
