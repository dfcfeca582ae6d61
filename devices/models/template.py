"""Claim templates and their versions: what tenants may ask for."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from devices.dra.template import Template, read_template


def check_content(content: Any) -> None:
    """Django's validator for a version's JSON."""
    try:
        read_template(content)
    except (ValueError, TypeError) as error:
        raise ValidationError(f"Not a template: {error}") from error


class ClaimTemplate(models.Model):
    """A thing that people can ask for, under a name that stays while versions come and go."""

    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=80)
    words = models.CharField(max_length=240)
    icon = models.CharField(max_length=24, default="device")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class TemplateVersion(models.Model):
    """One version's content. It never changes once it is approved; a change is a new version."""

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"
        IN_REVIEW = "in review", "In review"
        APPROVED = "approved", "Approved"
        RETIRED = "retired", "Retired"

    template = models.ForeignKey(ClaimTemplate, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=9, choices=State, default=State.DRAFT)
    content = models.JSONField(validators=[check_content])
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["template__name", "-number"]
        constraints = [
            models.UniqueConstraint(fields=["template", "number"], name="version_once"),
            models.UniqueConstraint(
                fields=["template"],
                condition=models.Q(state="approved"),
                name="one_approved_version",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.template} v{self.number}"

    def read(self) -> Template:
        """The content as values; it was checked when it was stored."""
        return read_template(self.content)
