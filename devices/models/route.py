"""What the platform has set about the paths of new work, and what plugins' resources stand for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import pgtrigger
from django.db import models
from django.db.models import Q

from devices.models.claim import new_public_id
from devices.routing.routes import Path, Ruling


class RouteRuleQuerySet(models.QuerySet["RouteRule"]):
    """Questions that turns, pages and verbs ask."""

    def standing(self, now: datetime) -> RouteRuleQuerySet:
        """Rules in force. One whose time is over is not, also before the sweep has ended it."""
        begun = self.filter(ended_at=None, starts_at__lte=now)
        return begun.filter(Q(until=None) | Q(until__gt=now))

    def open(self) -> RouteRuleQuerySet:
        """Rules that are or will be in force, and those that the sweep has still to end."""
        return self.filter(ended_at=None)

    def about(self, classes: Iterable[str], tenant: str) -> RouteRuleQuerySet:
        """Rules that may concern an ask of a tenant for these classes."""
        return self.filter(device_class__in=list(classes), tenant__in=["", tenant])


class RouteRule(models.Model):
    """New work for a class takes this path, from then until then, for these tenants and templates.

    What was set, why and by whom never changes; a rule ends once, by a person or by its time. Where
    several concern an ask, `devices.routing.routes.ruling` says which counts.
    """

    class End(models.TextChoices):
        LIFTED = "lifted", "Lifted"
        EXPIRED = "expired", "Its time was over"

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    device_class = models.CharField(max_length=253)
    path = models.CharField(max_length=8, choices=[(path.value, path.words) for path in Path])
    tenant = models.SlugField(max_length=63, blank=True, help_text="Empty: all tenants.")
    template = models.SlugField(max_length=63, blank=True, help_text="Empty: whatever template.")
    reason = models.CharField(max_length=240)
    set_by = models.UUIDField(help_text="Opaque person id.")
    set_at = models.DateTimeField()
    starts_at = models.DateTimeField()
    until = models.DateTimeField(null=True, help_text="It ends by itself then; empty: never.")
    begun = models.BooleanField(default=False, help_text="Open asks were woken when it began.")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.UUIDField(null=True, help_text="Empty where its time was over.")
    end = models.CharField(max_length=7, choices=End, blank=True)
    request_id = models.CharField(max_length=64)

    objects = RouteRuleQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(
                fields=["device_class", "tenant"], condition=Q(ended_at=None), name="routes_set"
            )
        ]
        triggers = [
            pgtrigger.Protect(name="kept", operation=pgtrigger.Delete),
            pgtrigger.ReadOnly(
                name="as_it_was",
                exclude=["begun", "ended_at", "ended_by", "end"],
            ),
            pgtrigger.Protect(
                name="ends_once",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__ended_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"route of {self.words} ({self.public_id})"

    @property
    def words(self) -> str:
        """What it is about, in words."""
        whose = f" for {self.tenant}" if self.tenant else ""
        which = f" by {self.template}" if self.template else ""
        return f"{self.device_class}{whose}{which}"

    @property
    def way(self) -> str:
        """Its path, in words."""
        return Path(self.path).words

    def ruling(self) -> Ruling:
        """The rule as a value for the pure rules."""
        return Ruling(
            id=self.public_id,
            path=Path(self.path),
            device_class=self.device_class,
            reason=self.reason,
            set_at=self.set_at,
            tenant=self.tenant,
            template=self.template,
            until=self.until,
        )


class PluginResource(models.Model):
    """An extended resource of a device plugin, and the class that stands for it in a claim.

    For names that no DeviceClass says itself. `selector` is CEL that narrows the class, where one
    name means some of its devices only.
    """

    resource = models.CharField(max_length=253, unique=True)
    device_class = models.CharField(max_length=253)
    selector = models.TextField(blank=True)
    set_by = models.UUIDField(help_text="Opaque person id.")
    set_at = models.DateTimeField()

    class Meta:
        ordering = ["resource"]

    def __str__(self) -> str:
        return f"{self.resource} → {self.device_class}"
