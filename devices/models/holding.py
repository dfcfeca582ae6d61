"""Who held which device when: the history behind a device's page."""

from __future__ import annotations

import pgtrigger
from django.db import models
from django.db.models import Q

HELD = [
    "driver", "pool", "device", "share", "amount", "node", "device_class", "namespace", "claim",
    "claim_uid", "tenant", "public_id", "since", "since_seen",
]  # fmt: skip


class Holding(models.Model):
    """One device, or one share of it, held by one claim of the cluster for a while.

    Written once and ended once; ended ones are kept for a while. The tenant is the one that owned
    the namespace when it was written: a namespace that changes hands takes no history along.
    """

    driver = models.CharField(max_length=63)
    pool = models.CharField(max_length=253)
    device = models.CharField(max_length=63)
    share = models.CharField(max_length=36, blank=True, help_text="Of a device that is shared.")
    amount = models.JSONField(default=dict, help_text="What of its capacity is taken.")
    node = models.CharField(max_length=253, blank=True)
    device_class = models.CharField(max_length=253, blank=True, help_text="That was asked for.")
    namespace = models.CharField(max_length=63)
    claim = models.CharField(max_length=253, help_text="The object's name in the cluster.")
    claim_uid = models.CharField(max_length=64)
    tenant = models.CharField(max_length=63, blank=True, help_text="Slug; empty: nobody's.")
    public_id = models.CharField(max_length=12, blank=True, help_text="Of the ask behind it.")
    since = models.DateTimeField()
    since_seen = models.BooleanField(help_text="The cluster has no stamp; Berth saw it then.")
    until = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["claim_uid", "driver", "pool", "device", "share"],
                condition=Q(until=None),
                name="held_once_at_a_time",
            ),
        ]
        indexes = [
            models.Index(fields=["driver", "pool", "device", "-id"], name="holdings_by_device"),
            models.Index(fields=["until"], condition=~Q(until=None), name="holdings_by_end"),
        ]
        triggers = [pgtrigger.ReadOnly(name="held_as_written", fields=HELD)]

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device} by {self.namespace}/{self.claim}"


class HoldingsRead(models.Model):
    """How far the mirror's claims have been read for the history; one row."""

    name = models.CharField(primary_key=True, max_length=20, default="claims")
    at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name}: {self.at}"
