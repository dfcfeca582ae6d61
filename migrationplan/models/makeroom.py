"""Room made for requests that wait: who was to end for whom, who said yes, and what it took."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from devices.models import Claim
from devices.models.claim import new_public_id
from devices.models.lease import Leased
from migrationplan.makingroom.words import ENDED, State

STATES = [(one.value, one.value) for one in State]


class MakeRoom(Leased):
    """One choice of Pods to end so that a request may fit. What was chosen never changes.

    `approval` is empty where the tenants' own policy was leave enough.
    """

    lease_time: ClassVar[timedelta] = timedelta(seconds=60)

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    claim = models.ForeignKey(Claim, on_delete=models.PROTECT, related_name="rooms")
    priority = models.IntegerField(help_text="Of the Pods that wait.")
    node = models.CharField(max_length=253)
    devices = ArrayField(models.CharField(max_length=640), help_text="driver/pool/device.")
    holders = ArrayField(models.CharField(max_length=320), help_text="Claims that are to go free.")
    takes = models.DurationField(help_text="The longest that the Pods may take to end.")
    reason = models.CharField(max_length=240)
    asked_by = models.UUIDField()
    asked_at = models.DateTimeField()
    request_id = models.CharField(max_length=64)
    approval = models.BigIntegerField(null=True)
    leave = models.CharField(max_length=300, help_text="Why it may be done, or who has to say so.")
    state = models.CharField(max_length=9, choices=STATES)
    since = models.DateTimeField()
    code = models.CharField(max_length=48, blank=True)
    why = models.CharField(max_length=500, blank=True)
    wake_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["claim"], condition=Q(ended_at=None), name="one_open_room_per_claim"
            )
        ]
        indexes = [
            models.Index(fields=["wake_at"], condition=~Q(wake_at=None), name="rooms_due"),
        ]
        triggers: ClassVar = [
            pgtrigger.Protect(name="room_kept", operation=pgtrigger.Delete),
            pgtrigger.ReadOnly(
                name="room_as_chosen",
                fields=[
                    "claim", "priority", "node", "devices", "holders", "takes", "reason",
                    "asked_by", "asked_at", "request_id", "leave",
                ],
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"room {self.public_id}"

    @property
    def ended(self) -> bool:
        return self.state in {one.value for one in ENDED}


class RoomPod(models.Model):
    """A Pod that is to end for it. Times are when Berth asked, and saw it gone and its devices
    free; `refused` are the API server's words where a disruption budget said no.
    """

    room = models.ForeignKey(MakeRoom, on_delete=models.PROTECT, related_name="pods")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    tenant = models.SlugField(max_length=63, blank=True, help_text="Empty: of no tenant.")
    priority = models.IntegerField()
    grace = models.DurationField()
    classes = ArrayField(models.CharField(max_length=253), default=list)
    evicted_at = models.DateTimeField(null=True)
    gone_at = models.DateTimeField(null=True)
    free_at = models.DateTimeField(null=True)
    refused = models.CharField(max_length=400, blank=True)

    class Meta:
        ordering = ["pk"]
        triggers: ClassVar = [pgtrigger.Protect(name="room_pod_kept", operation=pgtrigger.Delete)]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def took(self) -> timedelta | None:
        """From the eviction until its devices were free."""
        if self.evicted_at is None or self.free_at is None:
            return None
        return self.free_at - self.evicted_at
