"""Claim templates and their versions: what tenants may ask for."""

from __future__ import annotations

from typing import Any

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import models

from devices.dra.templates import BadTemplate, Template, read_template, stored_template
from tenants.models import Tenant


def check_content(content: Any) -> None:
    """Django's validator for a version's JSON."""
    try:
        read_template(content)
    except BadTemplate as bad:
        raise ValidationError([f"Not a template: {one}" for one in bad.problems]) from bad


class ClaimTemplate(models.Model):
    """A thing that people can ask for, under a name that stays while versions come and go.

    Name, words and icon are those of the version that was approved last.
    """

    class Audience(models.TextChoices):
        ALL = "all", "Every tenant"
        LIMITS = "limits", "Tenants whose limits allow its classes"
        NAMED = "named", "Only the tenants named here"

    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=80)
    words = models.CharField(max_length=240)
    icon = models.CharField(max_length=24, default="device")
    audience = models.CharField(max_length=6, choices=Audience, default=Audience.ALL)
    tenants = models.ManyToManyField(
        Tenant, blank=True, related_name="+", help_text="Who sees it, where it is for named ones."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


CONTENT = ["template", "number", "name", "words", "icon", "text", "content"]


class KeptWhenReviewed(pgtrigger.ReadOnly):
    """The fields do not change unless the version is a draft, or becomes one again by it."""

    def get_condition(self, model: Any) -> Any:
        written = pgtrigger.Q(old__state="draft") | pgtrigger.Q(new__state="draft")
        return ~written & super().get_condition(model)


class TemplateVersion(models.Model):
    """One version's content. It never changes once it is approved; a change is a new version.

    `text` is what the author typed, comments and all; `content` is what it says. A version that
    nobody typed has none.
    """

    class State(models.TextChoices):
        DRAFT = "draft", "Draft"
        IN_REVIEW = "in review", "In review"
        APPROVED = "approved", "Approved"
        RETIRED = "retired", "Retired"

    OPEN = (State.DRAFT, State.IN_REVIEW)

    template = models.ForeignKey(ClaimTemplate, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=9, choices=State, default=State.DRAFT)
    name = models.CharField(max_length=80, blank=True, help_text="Empty: the template's.")
    words = models.CharField(max_length=240, blank=True)
    icon = models.CharField(max_length=24, blank=True)
    text = models.TextField(blank=True)
    content = models.JSONField(validators=[check_content])
    note = models.CharField(
        max_length=240, blank=True, help_text="What is new in it, for those who hold an older one."
    )
    authors = ArrayField(
        models.UUIDField(), default=list, help_text="Everybody who wrote in it; none may approve."
    )
    revision = models.PositiveIntegerField(default=1)
    changed_by = models.UUIDField(null=True)
    changed_at = models.DateTimeField(null=True)
    approval = models.PositiveBigIntegerField(null=True, help_text="The newest that was asked for.")
    approved_at = models.DateTimeField(null=True)
    retired_at = models.DateTimeField(null=True)
    retired_by = models.UUIDField(
        null=True, help_text="Empty where a newer version took its place."
    )
    successor = models.ForeignKey(
        ClaimTemplate, on_delete=models.PROTECT, null=True, related_name="+"
    )
    retired_words = models.CharField(
        max_length=240, blank=True, help_text="Why it was retired, for those who hold it."
    )
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
            models.UniqueConstraint(
                fields=["template"],
                condition=models.Q(state__in=["draft", "in review"]),
                name="one_open_version",
            ),
        ]
        triggers = [
            pgtrigger.FSM(
                name="life",
                field="state",
                transitions=[
                    ("draft", "in review"),
                    ("in review", "draft"),
                    ("in review", "approved"),
                    ("approved", "retired"),
                ],
            ),
            KeptWhenReviewed(name="kept_when_reviewed", fields=CONTENT),
            pgtrigger.Protect(
                name="kept",
                operation=pgtrigger.Delete,
                condition=~pgtrigger.Q(old__state="draft"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.template} v{self.number}"

    def read(self) -> Template:
        """The content as values; it was checked when it was stored."""
        return stored_template(self.content)

    @property
    def title(self) -> str:
        """Its own name, or the template's where it has none."""
        return self.name or self.template.name
