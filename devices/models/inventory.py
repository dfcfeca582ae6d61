"""What nodes should have, in approved versions, and where they show something else."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from devices.dra.hysteresis import Memory
from devices.dra.inventories import Line
from devices.models.claim import new_public_id
from devices.models.nodepool import NodePool


class Inventory(models.Model):
    """One version of what the nodes of a node pool should have. Its lines never change; at most
    one version of a pool is approved, and one is in review.
    """

    class State(models.TextChoices):
        IN_REVIEW = "in review", "In review"
        APPROVED = "approved", "Approved"
        REPLACED = "replaced", "Replaced by a newer one"
        REFUSED = "refused", "Not approved"

    class Source(models.TextChoices):
        RECORDED = "recorded", "Recorded from the cluster"
        IMPORTED = "imported", "From a file"

    pool = models.ForeignKey(NodePool, on_delete=models.CASCADE, related_name="inventories")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=9, choices=State, default=State.IN_REVIEW)
    source = models.CharField(max_length=8, choices=Source)
    note = models.CharField(max_length=240)
    left_out = ArrayField(
        models.CharField(max_length=253), default=list, help_text="Nodes that showed nothing."
    )
    made_by = models.UUIDField()
    made_at = models.DateTimeField()
    approval = models.BigIntegerField(null=True)
    decided_at = models.DateTimeField(null=True)
    request_id = models.CharField(max_length=64)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["pool", "number"], name="inventory_numbers"),
            models.UniqueConstraint(
                fields=["pool", "state"],
                condition=Q(state__in=["in review", "approved"]),
                name="one_inventory_in_force",
            ),
        ]

    def __str__(self) -> str:
        return f"inventory {self.number} of {self.pool_id}"


class InventoryLine(models.Model):
    """So many devices of one model by one driver on one node."""

    inventory = models.ForeignKey(Inventory, on_delete=models.CASCADE, related_name="lines")
    node = models.CharField(max_length=253)
    driver = models.CharField(max_length=63)
    model = models.CharField(max_length=120, blank=True)
    count = models.PositiveIntegerField()
    devices = models.JSONField(default=dict, help_text="Marks of each device by its name.")

    class Meta:
        ordering = ["node", "driver", "model"]
        constraints = [
            models.UniqueConstraint(
                fields=["inventory", "node", "driver", "model"], name="inventoried_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.node}: {self.count} × {self.model or self.driver}"

    def value(self) -> Line:
        """As the rules take it."""
        marks = {name: tuple(found) for name, found in self.devices.items()}
        return Line(self.node, self.driver, self.model, self.count, marks)


class DriftLine(models.Model):
    """One finding from when it was first seen until it is over; it counts once it is believed."""

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id)
    key = models.CharField(max_length=64, help_text="Digest of the finding's key.")
    pool = models.ForeignKey(NodePool, on_delete=models.CASCADE, null=True, related_name="drifts")
    code = models.CharField(max_length=48)
    node = models.CharField(max_length=253, blank=True)
    driver = models.CharField(max_length=253)
    why = models.TextField(blank=True)
    expected = models.IntegerField(null=True)
    published = models.IntegerField(null=True)
    claims = models.JSONField(default=list)
    first_seen_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    believed_at = models.DateTimeField(null=True)
    gone_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["first_seen_at", "pk"]
        indexes = [models.Index(fields=["gone_at", "first_seen_at"], name="drifts_by_time")]
        constraints = [
            models.UniqueConstraint(
                fields=["key"], condition=Q(gone_at=None), name="one_open_row_per_drift"
            )
        ]

    def __str__(self) -> str:
        return f"{self.code} on {self.node}"

    @property
    def memory(self) -> Memory:
        """As the rules take it."""
        return Memory(self.first_seen_at, self.seen_at, self.believed_at is not None)


class PoolMark(models.Model):
    """How far each slice pool is: its newest generation ever seen in its present life.

    A life ends when no slice of it is left that was there before (a driver that starts anew).
    """

    driver = models.CharField(max_length=63)
    pool = models.CharField(max_length=253)
    generation = models.BigIntegerField()
    slices = ArrayField(models.CharField(max_length=253), default=list, help_text="By name.")
    back_at = models.DateTimeField(null=True, help_text="Since when it is older than it was.")
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["driver", "pool"], name="marked_once")]

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}: {self.generation}"
