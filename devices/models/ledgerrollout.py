"""What people keep beside the ledger: rollouts of the accounting, objectives, upgrades, rights."""

from __future__ import annotations

import secrets

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q

from devices.dra.ledgerrollout import Phase

PHASES = [(one.value, one.value) for one in Phase]


def _public_id() -> str:
    return secrets.token_hex(4)


class LedgerRollout(models.Model):
    """One rollout; at most one is open. `floors` are the versions of slice pools at the stop: rows
    of driver, pool, epoch, generation, resourceVersion. `digest` is that of the log up to then.
    """

    public_id = models.CharField(max_length=8, unique=True, default=_public_id)
    canaries = ArrayField(models.CharField(max_length=253))
    soak = models.DurationField()
    phase = models.CharField(max_length=8, choices=PHASES, default=Phase.CANARY.value)
    since = models.DateTimeField(help_text="Since when it is in this phase.")
    why = models.TextField()
    waits = ArrayField(models.CharField(max_length=400), default=list)
    wide = models.BooleanField(default=False, help_text="It went beyond its canaries.")
    floors = models.JSONField(default=list)
    stopped_at = models.DateTimeField(null=True)
    digest = models.CharField(max_length=64, blank=True)
    lines = models.BigIntegerField(default=0, help_text="Lines of the log at the stop.")
    started_by = models.UUIDField(help_text="Opaque person id.")
    started_at = models.DateTimeField()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                models.Value(1),
                condition=~Q(phase=Phase.ENDED.value),
                name="ledger_rollout_one_open",
            )
        ]

    def __str__(self) -> str:
        return f"rollout {self.public_id}: {self.phase}"


class LedgerRolloutMove(models.Model):
    """One move of a rollout; without a person Berth made it."""

    rollout = models.ForeignKey(LedgerRollout, on_delete=models.CASCADE, related_name="moves")
    frm = models.CharField(max_length=8, choices=PHASES)
    to = models.CharField(max_length=8, choices=PHASES)
    at = models.DateTimeField()
    why = models.TextField()
    person = models.UUIDField(null=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.frm} → {self.to}"


class LedgerPolicy(models.Model):
    """Whether every Pod waits while a ledger cannot be relied on; one row. Off until an admin says
    so. `closed` are the slice pools closed now: driver, pool, node, code, and since when.
    """

    name = models.CharField(primary_key=True, max_length=16, default="ledger")
    closes = models.BooleanField(default=False)
    said_by = models.UUIDField(null=True, help_text="Opaque person id.")
    said_at = models.DateTimeField(null=True)
    closed = models.JSONField(default=list)
    answer = models.CharField(
        max_length=500, blank=True, help_text="What stood in its way when it was tried last."
    )

    def __str__(self) -> str:
        return "every Pod waits" if self.closes else "requests wait"

    @classmethod
    def current(cls) -> LedgerPolicy:
        """The row; what holds before anybody wrote one."""
        return cls.objects.first() or cls()


class LedgerObjectives(models.Model):
    """What capacity and pending Pods are held to; one row."""

    name = models.CharField(primary_key=True, max_length=16, default="ledger")
    most_charged = models.IntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(100)],
        help_text="Of what a node offers of CPU, memory or huge pages, in per cent.",
    )
    most_pending = models.IntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(10_080)],
        help_text="Minutes for which a Pod with devices may wait for want of node resources.",
    )
    said_by = models.UUIDField(help_text="Opaque person id.")
    said_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.most_charged} %, {self.most_pending} min"


class LedgerUpgrade(models.Model):
    """A change of the cluster's release, and what the ledger was before and after: how many lines
    of devices stood, how many of them Pod status still tells. `lost` are those that it does not:
    rows of pod, claim, node, resource, amount.
    """

    frm = models.CharField(max_length=32)
    to = models.CharField(max_length=32)
    at = models.DateTimeField()
    before = models.IntegerField(help_text="Lines of devices that stood.")
    settled_at = models.DateTimeField(null=True)
    after = models.IntegerField(default=0)
    told = models.IntegerField(default=0, help_text="Of those, told by Pod status.")
    lost = models.JSONField(default=list)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.frm} → {self.to}"

    @property
    def untold(self) -> int:
        """Lines that stand and that no Pod status tells any more."""
        return self.after - self.told


class DriverRights(models.Model):
    """What the last look at drivers' rights found; one row. Findings are rows of driver, account,
    word, right, why, remedy.
    """

    name = models.CharField(primary_key=True, max_length=16, default="ledger")
    at = models.DateTimeField()
    drivers = ArrayField(models.CharField(max_length=63), default=list)
    findings = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{len(self.findings)} findings of {len(self.drivers)} drivers"
