"""Moves: nodes on their way from one path to the other, and everything that happened to them."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from devices.models import NodePool
from devices.models.lease import Leased
from migrationplan.steps import Direction, Step

DIRECTIONS = [(one.value, one.value) for one in Direction]
STEPS = [(one.value, one.value) for one in Step]


def new_public_id() -> str:
    """Not guessable, and fit for an address and for names in the cluster."""
    return secrets.token_hex(6)


class Move(Leased):
    """One node's way from a device plugin to DRA, or back; the wish and all that must be known to
    go on after any interruption. The node is known by uid.

    `reports` are the answers of the node probe, newest last. `called` is the code for which a
    person was called: it goes on when somebody says so.
    """

    lease_time: ClassVar[timedelta] = timedelta(seconds=60)

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id)
    pool = models.ForeignKey(NodePool, on_delete=models.PROTECT, related_name="moves")
    node = models.CharField(max_length=253)
    node_uid = models.CharField(max_length=64)
    direction = models.CharField(max_length=16, choices=DIRECTIONS)
    step = models.CharField(max_length=16, choices=STEPS, default=Step.QUIESCING.value)
    since = models.DateTimeField()
    begun_by = models.UUIDField()
    begun_at = models.DateTimeField()
    request_id = models.CharField(max_length=64)
    ended_at = models.DateTimeField(null=True)
    cancelled = models.BooleanField(default=False)
    empty_since = models.DateTimeField(null=True)
    plugin_off = models.DateTimeField(null=True)
    reports = models.JSONField(default=list)
    trial = models.CharField(max_length=63, blank=True)
    canary = models.CharField(max_length=63, blank=True)
    probe = models.CharField(max_length=63, blank=True)
    tries = models.PositiveIntegerField(
        default=0, help_text="Of Berth's own Pods, for their names."
    )
    called = models.CharField(max_length=48, blank=True)
    why = models.CharField(max_length=500, blank=True)
    evidence = ArrayField(models.CharField(max_length=400), default=list)
    wake_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["node_uid", "pool"],
                condition=Q(ended_at=None),
                name="one_open_move_per_node",
            )
        ]
        indexes = [models.Index(fields=["wake_at"], condition=Q(ended_at=None), name="moves_due")]

    def __str__(self) -> str:
        return f"{self.node} {self.direction}: {self.step}"


class MoveEvent(models.Model):
    """One thing that happened to a move: a step begun, a person called, a wish."""

    move = models.ForeignKey(Move, on_delete=models.PROTECT, related_name="events")
    at = models.DateTimeField()
    step = models.CharField(max_length=16, choices=STEPS)
    direction = models.CharField(max_length=16, choices=DIRECTIONS)
    code = models.CharField(max_length=48, blank=True)
    text = models.CharField(max_length=500)
    person = models.UUIDField(null=True)

    class Meta:
        ordering = ["pk"]
        triggers = [
            pgtrigger.Protect(name="move_event_kept", operation=pgtrigger.Update | pgtrigger.Delete)
        ]

    def __str__(self) -> str:
        return f"{self.step}: {self.text}"
