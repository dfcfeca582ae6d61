"""Drills: what was rehearsed where, step by step, and how it ended."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from devices.models import NodePool
from devices.models.claim import new_public_id
from devices.models.lease import Leased
from migrationplan.drills.words import Kind, Result

KINDS = [(one.value, one.value) for one in Kind]
RESULTS = [(one.value, one.value) for one in Result]


class Drill(Leased):
    """One drill on a node of a pool. `position` is the step that is waited for, `baseline` how it
    was at the beginning, `attempt` a Pod of Berth's own that is still to be taken away.

    What began never changes, and a result is final.
    """

    lease_time: ClassVar[timedelta] = timedelta(seconds=60)

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    pool = models.ForeignKey(NodePool, on_delete=models.PROTECT, related_name="drills")
    kind = models.CharField(max_length=24, choices=KINDS)
    node = models.CharField(max_length=253)
    node_uid = models.CharField(max_length=64)
    begun_by = models.UUIDField()
    begun_at = models.DateTimeField()
    request_id = models.CharField(max_length=64)
    baseline = models.JSONField(default=dict)
    position = models.PositiveSmallIntegerField(default=0)
    since = models.DateTimeField()
    why = models.CharField(max_length=500, blank=True)
    evidence = ArrayField(models.CharField(max_length=400), default=list)
    attempt = models.CharField(max_length=63, blank=True)
    bundle = models.CharField(max_length=12, blank=True, help_text="Of the evidence collected.")
    wake_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    result = models.CharField(max_length=8, choices=RESULTS, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["node_uid"], condition=Q(ended_at=None), name="one_open_drill_per_node"
            ),
            models.CheckConstraint(
                condition=Q(ended_at=None, result="") | (~Q(ended_at=None) & ~Q(result="")),
                name="drill_ends_with_a_result",
            ),
        ]
        indexes = [
            models.Index(fields=["pool", "kind", "-ended_at"], name="drills_by_kind"),
            models.Index(fields=["wake_at"], condition=~Q(wake_at=None), name="drills_due"),
        ]
        triggers: ClassVar = [
            pgtrigger.Protect(name="drill_kept", operation=pgtrigger.Delete),
            pgtrigger.ReadOnly(
                name="drill_as_begun",
                fields=["pool", "kind", "node", "node_uid", "begun_by", "begun_at", "baseline"],
            ),
            pgtrigger.Protect(
                name="drill_result_final",
                operation=pgtrigger.Update,
                condition=pgtrigger.Q(old__ended_at__isnull=False)
                & (
                    pgtrigger.Q(old__result__df=pgtrigger.F("new__result"))
                    | pgtrigger.Q(old__ended_at__df=pgtrigger.F("new__ended_at"))
                    | pgtrigger.Q(old__why__df=pgtrigger.F("new__why"))
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.node}: {self.result or 'under way'}"

    @property
    def mark(self) -> str:
        """What people call the objects that they make for it."""
        return f"drill-{self.public_id[:8]}"


class DrillMark(models.Model):
    """A step that was proved, or what somebody decided; never changed."""

    drill = models.ForeignKey(Drill, on_delete=models.PROTECT, related_name="marks")
    step = models.CharField(max_length=24)
    at = models.DateTimeField()
    text = models.CharField(max_length=500)
    evidence = ArrayField(models.CharField(max_length=400), default=list)
    person = models.UUIDField(null=True)

    class Meta:
        ordering = ["pk"]
        triggers: ClassVar = [
            pgtrigger.Protect(name="drill_mark_kept", operation=pgtrigger.Update | pgtrigger.Delete)
        ]

    def __str__(self) -> str:
        return f"{self.step}: {self.text}"
