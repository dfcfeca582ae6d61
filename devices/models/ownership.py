"""Who gave out the devices of each node, and since when; lines are ended, never changed."""

from __future__ import annotations

import pgtrigger
from django.db import models
from django.db.models import Q

from devices.dra.ownership import Owner

OWNERS = [(one.value, one.value) for one in Owner]
WRITTEN = [
    "node", "node_uid", "type", "owner", "before", "plugin", "published", "hardware", "since",
    "who", "why",
]  # fmt: skip


class OwnershipLine(models.Model):
    """One type of device on one node, from when its owner or its numbers became so.

    Nodes are known by uid: a new one under an old name has a history of its own. `who` is "the
    cluster" for what was only seen, else what of Berth did it.
    """

    node = models.CharField(max_length=253)
    node_uid = models.CharField(max_length=64, blank=True, help_text="Empty: no Node object.")
    type = models.CharField(max_length=253)
    owner = models.CharField(max_length=8, choices=OWNERS)
    before = models.CharField(max_length=8, choices=OWNERS, blank=True)
    plugin = models.IntegerField(null=True, help_text="What a plugin offers; null: not known.")
    published = models.IntegerField(help_text="What slices offer.")
    hardware = models.IntegerField(null=True, help_text="Pieces of hardware; null: not known.")
    since = models.DateTimeField()
    until = models.DateTimeField(null=True)
    who = models.CharField(max_length=80, default="the cluster")
    why = models.CharField(max_length=240, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["node", "node_uid", "type"],
                condition=Q(until=None),
                name="owned_once_at_a_time",
            )
        ]
        indexes = [
            models.Index(fields=["node", "type", "-id"], name="ownership_by_node"),
            models.Index(fields=["owner"], condition=Q(until=None), name="ownership_by_owner"),
        ]
        triggers = [
            pgtrigger.ReadOnly(name="owned_as_written", fields=WRITTEN),
            pgtrigger.Protect(name="ownership_kept", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return f"{self.type} on {self.node}: {self.owner}"
