"""Freezes: what takes no new work for now, by whom, why and until when."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import pgtrigger
from django.db import models
from django.db.models import Q

from devices.models.claim import new_public_id


class FreezeQuerySet(models.QuerySet["Freeze"]):
    """Questions that turns, pages and verbs ask."""

    def standing(self, now: datetime) -> FreezeQuerySet:
        """Freezes in force. One whose time is over is not, also before the sweep has ended it."""
        return self.filter(ended_at=None).filter(Q(until=None) | Q(until__gt=now))

    def over(self, now: datetime) -> FreezeQuerySet:
        """Freezes whose time is over and that nobody has ended yet."""
        return self.filter(ended_at=None, until__lte=now)

    def of_tenant(self, slug: str) -> FreezeQuerySet:
        """What concerns a tenant: its own freezes, those of any class, and those of all."""
        return self.exclude(Q(scope=Freeze.Scope.TENANT) & ~Q(target=slug))

    def touching(self, slug: str, classes: Iterable[str]) -> FreezeQuerySet:
        """Freezes that keep a request of this tenant for these classes back."""
        scopes = Freeze.Scope
        return self.filter(
            Q(scope=scopes.ALL)
            | Q(scope=scopes.TENANT, target=slug)
            | Q(scope=scopes.CLASS, target__in=list(classes))
        )


class Freeze(models.Model):
    """New work waits; what runs goes on. `strict` also stops replacements of what runs.

    What was frozen, why and by whom never changes; a freeze ends once, by a person or by its time.
    """

    class Scope(models.TextChoices):
        CLASS = "class", "One device class"
        TENANT = "tenant", "One tenant"
        ALL = "all", "Everything"

    class End(models.TextChoices):
        LIFTED = "lifted", "Lifted"
        EXPIRED = "expired", "Its time was over"

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    scope = models.CharField(max_length=6, choices=Scope)
    target = models.CharField(
        max_length=253, blank=True, help_text="The class's name, or the tenant's slug."
    )
    strict = models.BooleanField(default=False)
    reason = models.CharField(max_length=240)
    frozen_by = models.UUIDField(help_text="Opaque person id.")
    frozen_at = models.DateTimeField()
    until = models.DateTimeField(null=True, help_text="It ends by itself then; empty: never.")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.UUIDField(null=True, help_text="Empty where its time was over.")
    end = models.CharField(max_length=7, choices=End, blank=True)
    request_id = models.CharField(max_length=64)

    objects = FreezeQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["scope", "target"], condition=Q(ended_at=None), name="freezes_on")
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["scope", "target"], condition=Q(ended_at=None), name="frozen_once"
            ),
            models.CheckConstraint(
                condition=Q(scope="all", target="") | (~Q(scope="all") & ~Q(target="")),
                name="freeze_has_its_target",
            ),
        ]
        triggers = [
            pgtrigger.Protect(name="kept", operation=pgtrigger.Delete),
            pgtrigger.ReadOnly(
                name="as_it_was",
                fields=[
                    "public_id",
                    "scope",
                    "target",
                    "strict",
                    "reason",
                    "frozen_by",
                    "frozen_at",
                    "until",
                    "request_id",
                ],
            ),
            pgtrigger.Protect(
                name="ends_once",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__ended_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"freeze of {self.words} ({self.public_id})"

    @property
    def words(self) -> str:
        """What is frozen, in words."""
        if self.scope == self.Scope.ALL:
            return "everything"
        return f"{self.Scope(self.scope).value} {self.target}"
