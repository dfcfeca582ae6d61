"""Grants: one tenant lets a namespace of another use a template."""

from __future__ import annotations

import secrets
from datetime import datetime

import pgtrigger
from django.db import models
from django.db.models import Q

from tenants.models.tenant import DNS_LABEL, Tenant

ID_LETTERS = "bcdfghjkmnpqrstvwxz23456789"


def new_grant_id() -> str:
    """Eight letters and digits that spell no word and are hard to misread."""
    return "".join(secrets.choice(ID_LETTERS) for _ in range(8))


class Grant(models.Model):
    """An offer of one tenant to a namespace, and what became of it.

    The giver names a namespace, never a tenant: an offer to one that does not exist looks the same
    as any other, and nobody learns from it who is there. The taker stands here once accepted.
    """

    class State(models.TextChoices):
        OFFERED = "offered", "Offered"
        ACCEPTED = "accepted", "Accepted"
        DECLINED = "declined", "Declined"
        REVOKED = "revoked", "Revoked"
        EXPIRED = "expired", "Expired"

    class Pays(models.TextChoices):
        GIVER = "giver", "The giver's limit"
        TAKER = "taker", "The taker's own limit"

    public_id = models.CharField(max_length=12, unique=True, default=new_grant_id, editable=False)
    giver = models.ForeignKey(Tenant, on_delete=models.PROTECT, related_name="grants_given")
    taker = models.ForeignKey(
        Tenant, on_delete=models.PROTECT, null=True, blank=True, related_name="grants_taken"
    )
    namespace = models.CharField(max_length=63, validators=[DNS_LABEL])
    template = models.SlugField(max_length=63, help_text="Slug of the template that may be used.")
    device_class = models.CharField(max_length=253, help_text="The class that is lent.")
    count = models.PositiveIntegerField(help_text="Devices at the same time, at most.")
    pays = models.CharField(max_length=5, choices=Pays, default=Pays.GIVER)
    ends_at = models.DateTimeField()
    words = models.CharField(max_length=240, blank=True, help_text="What it is for.")
    state = models.CharField(max_length=8, choices=State, default=State.OFFERED)
    offered_by = models.UUIDField(help_text="Opaque person id.")
    offered_at = models.DateTimeField()
    decided_by = models.UUIDField(null=True, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    ended_by = models.UUIDField(null=True, blank=True, help_text="Empty where its time was over.")
    ended_at = models.DateTimeField(null=True, blank=True)
    revision = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["namespace"]),
            models.Index(
                fields=["ends_at"],
                condition=Q(state__in=["offered", "accepted"]),
                name="grants_that_end",
            ),
        ]
        constraints = [
            models.CheckConstraint(condition=Q(count__gte=1), name="grant_of_something"),
            models.CheckConstraint(
                condition=~Q(state="accepted") | Q(taker__isnull=False), name="accepted_by_somebody"
            ),
        ]
        triggers = [
            pgtrigger.FSM(
                name="grant_moves",
                field="state",
                transitions=[
                    ("offered", "accepted"),
                    ("offered", "declined"),
                    ("offered", "revoked"),
                    ("offered", "expired"),
                    ("accepted", "revoked"),
                    ("accepted", "expired"),
                ],
            ),
            pgtrigger.ReadOnly(
                name="same_terms",
                fields=[
                    "public_id",
                    "giver",
                    "namespace",
                    "template",
                    "device_class",
                    "count",
                    "pays",
                    "ends_at",
                ],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.public_id} {self.template} for {self.namespace}"

    def usable(self, now: datetime) -> bool:
        """Whether something new may be asked for with it."""
        return self.state == self.State.ACCEPTED and now < self.ends_at

    @property
    def giver_pays(self) -> bool:
        """Whether it is the giver's limit that is used."""
        return self.pays == self.Pays.GIVER
