"""Questions to the API server: what it would say to objects, without keeping any of them."""

from __future__ import annotations

from django.db import models

from devices.models.claim import new_public_id


class DryRun(models.Model):
    """Objects put to the API server once, and its answer. A worker asks; pages and API read.

    `accepted` is None until there is an answer, and where nobody could get one; then `code` says
    why. `said` are the server's own words.
    """

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    about = models.CharField(max_length=200, help_text="What is tried, for people.")
    objects_json = models.JSONField(help_text="The objects, in the order in which they are put.")
    asked_by = models.UUIDField(help_text="Opaque person id; nobody else reads the answer.")
    asked_at = models.DateTimeField()
    request_id = models.CharField(max_length=64)
    tenant = models.SlugField(max_length=63, blank=True, help_text="Whose pages hear of it.")
    answered_at = models.DateTimeField(null=True)
    accepted = models.BooleanField(null=True)
    code = models.CharField(max_length=48, blank=True)
    said = models.TextField(blank=True)
    refused = models.CharField(max_length=320, blank=True, help_text="Kind and name, if one was.")

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["asked_at"], name="dry_runs_by_age")]

    def __str__(self) -> str:
        return f"dry run {self.public_id} of {self.about}"

    @property
    def topic(self) -> str:
        """What its page listens for."""
        return f"dry-run-{self.public_id}"
