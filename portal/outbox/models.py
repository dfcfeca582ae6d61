"""Outbox lines: work that was promised in a transaction and is not yet known to be done."""

from __future__ import annotations

from django.db import models


class OutboxLine(models.Model):
    """A task that must run for `key`. It stays until the task itself says that it is settled."""

    task = models.CharField(max_length=128)
    key = models.CharField(max_length=64)
    request_id = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    due_at = models.DateTimeField(help_text="When to send it again, unless it is settled before.")
    attempts = models.PositiveIntegerField(default=0)

    class Meta:
        indexes = [models.Index(fields=["due_at"]), models.Index(fields=["task", "key"])]

    def __str__(self) -> str:
        return f"{self.task}({self.key})"
