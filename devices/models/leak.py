"""What the leak board remembers: findings, what people decided about them, and what came of it."""

from __future__ import annotations

import secrets

from django.contrib.postgres.fields import ArrayField
from django.db import models


def new_public_id() -> str:
    """Not guessable, and fit for an address."""
    return secrets.token_hex(6)


class LeakRow(models.Model):
    """One finding from when it was first seen until it is gone.

    It is *believed* once it lasted as long as its code has patience. `wanted_at` is a person's wish
    to have it cleaned away; `answer_code` and `answer` say what came of the last one.
    """

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id)
    key = models.CharField(max_length=64, help_text="Digest of the finding's key.")
    code = models.CharField(max_length=48)
    claims = ArrayField(models.CharField(max_length=320), help_text="Namespace/name of each.")
    uid = models.CharField(max_length=36, blank=True, help_text="Of the claim, where it is one.")
    tenant = models.SlugField(max_length=63, blank=True)
    devices = models.JSONField(default=list)
    proof = models.JSONField(default=list)
    node = models.CharField(max_length=253, blank=True)
    since = models.DateTimeField(null=True, help_text="By the cluster's own stamp.")
    first_seen_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    believed_at = models.DateTimeField(null=True)
    gone_at = models.DateTimeField(null=True)
    kept_by = models.UUIDField(null=True)
    kept_at = models.DateTimeField(null=True)
    kept_why = models.CharField(max_length=240, blank=True)
    wanted_by = models.UUIDField(null=True)
    wanted_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=240, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    answer_code = models.CharField(max_length=48, blank=True)
    answer = models.TextField(blank=True)
    answered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["first_seen_at", "pk"]
        indexes = [models.Index(fields=["gone_at", "first_seen_at"])]
        constraints = [
            models.UniqueConstraint(
                fields=["key"], condition=models.Q(gone_at=None), name="one_open_row_per_leak"
            )
        ]

    def __str__(self) -> str:
        return f"{self.code} {', '.join(self.claims)}"

    @property
    def waits(self) -> bool:
        """Whether a wish waits for its answer."""
        return self.wanted_at is not None and (
            self.answered_at is None or self.answered_at < self.wanted_at
        )
