"""Alerts, where they are told, what keeps them quiet, and every attempt to tell them."""

from __future__ import annotations

import secrets
import uuid

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models

from portal.alerts.rules import Happening, Match, Medium, Quiet, Severity, Told

SEVERITIES = [(one.value, one.value) for one in Severity]
MEDIA = [(one.value, one.value) for one in Medium]
HAPPENINGS = [(one.value, one.value) for one in Happening]


def new_public_id() -> str:
    """Not guessable, and fit for an address."""
    return secrets.token_hex(6)


class Alert(models.Model):
    """One state of affairs that somebody should know of, from its beginning to its end.

    `path` leads to its page in Berth; `evidence` are lines {label, value} for people. An alert that
    concerns one person alone (`person`) stands at nobody else's bell.
    """

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id)
    fingerprint = models.CharField(max_length=32)
    code = models.CharField(max_length=64)
    failure_class = models.CharField(max_length=16, blank=True)
    severity = models.CharField(max_length=8, choices=SEVERITIES)
    tenant = models.SlugField(max_length=63, blank=True)
    person = models.UUIDField(null=True)
    subject = models.CharField(max_length=200, help_text="Kind and name of what it is about.")
    title = models.CharField(max_length=200)
    words = models.TextField(blank=True, help_text="What to do, and who.")
    path = models.CharField(max_length=300, blank=True)
    evidence = models.JSONField(default=list)
    request_id = models.CharField(max_length=64, blank=True)
    opened_at = models.DateTimeField()
    seen_at = models.DateTimeField(help_text="When it was last said to be so.")
    times = models.PositiveIntegerField(default=1, help_text="How often it was said.")
    over_at = models.DateTimeField(null=True)
    taken_by = models.UUIDField(null=True)
    taken_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-opened_at", "-pk"]
        indexes = [
            models.Index(fields=["tenant", "-opened_at"]),
            models.Index(fields=["over_at", "-opened_at"]),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["fingerprint"],
                condition=models.Q(over_at=None),
                name="one_open_alert_per_fingerprint",
            )
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.subject}"

    def told(self) -> Told:
        """For the rules."""
        return Told(self.code, self.failure_class, Severity(self.severity), self.tenant)


class Channel(models.Model):
    """Where alerts are told: an address of a webhook, or of mail.

    `secrets` are the keys that sign a webhook, the newest first; an older one is kept for a while
    after a change, so that the receiver can follow.
    """

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id)
    name = models.CharField(max_length=60)
    medium = models.CharField(max_length=8, choices=MEDIA)
    address = models.CharField(max_length=500)
    secrets = ArrayField(models.CharField(max_length=80), default=list, blank=True)
    changed_at = models.DateTimeField(null=True, help_text="When its secret was last changed.")
    made_by = models.UUIDField()
    made_at = models.DateTimeField()
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            # The name of one that was removed may be given again.
            models.UniqueConstraint(
                fields=["name"], condition=models.Q(removed_at=None), name="one_channel_of_a_name"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Matching(models.Model):
    """Which alerts are meant; an empty field means any."""

    code = models.CharField(max_length=64, blank=True)
    failure_class = models.CharField(max_length=16, blank=True)
    tenant = models.SlugField(max_length=63, blank=True)
    least = models.CharField(max_length=8, choices=SEVERITIES, default=Severity.NOTICE.value)

    class Meta:
        abstract = True

    def match(self) -> Match:
        return Match(self.code, self.failure_class, self.tenant, Severity(self.least))


class Route(Matching):
    """Alerts that match are told on `channel`, and later on `then` if nobody took them on."""

    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="routes")
    then = models.ForeignKey(Channel, on_delete=models.CASCADE, null=True, related_name="+")
    after = models.DurationField(null=True, help_text="How long `then` waits.")
    tells_end = models.BooleanField(default=True)
    made_by = models.UUIDField()
    made_at = models.DateTimeField()

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(then=None, after=None)
                | models.Q(then__isnull=False, after__isnull=False),
                name="escalation_has_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"{self.code or 'any alert'} to {self.channel_id}"


class Silence(Matching):
    """Alerts that match are not told until its end; why, and by whom, is asked."""

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id)
    reason = models.CharField(max_length=200)
    made_by = models.UUIDField()
    made_at = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        ordering = ["until"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(until__gt=models.F("made_at")), name="silence_has_an_end"
            )
        ]

    def __str__(self) -> str:
        return f"{self.reason} until {self.until:%F %R}"

    def quiet(self) -> Quiet:
        return Quiet(self.match(), self.until)


class Delivery(models.Model):
    """One thing told on one channel: what was sent, every attempt, and when it is tried again.

    `message_id` is the same in all attempts, so that a receiver can tell a repetition.
    """

    message_id = models.UUIDField(unique=True, default=uuid.uuid4)
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries")
    channel = models.ForeignKey(Channel, on_delete=models.CASCADE, related_name="deliveries")
    happening = models.CharField(max_length=9, choices=HAPPENINGS)
    made_at = models.DateTimeField()
    due_at = models.DateTimeField(null=True, help_text="When to try; nothing once it is settled.")
    attempts = models.PositiveSmallIntegerField(default=0)
    arrived_at = models.DateTimeField(null=True)
    answer = models.CharField(max_length=300, blank=True, help_text="The last answer, or why none.")
    again = models.BooleanField(default=False, help_text="A person asked for it once more.")

    class Meta:
        ordering = ["-pk"]
        indexes = [
            models.Index(fields=["due_at"]),
            models.Index(fields=["channel", "-id"]),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["alert", "channel", "happening"],
                condition=models.Q(again=False),
                name="told_once_each",
            )
        ]
        triggers = [
            pgtrigger.ReadOnly(
                name="same_message", fields=["message_id", "alert", "channel", "happening"]
            )
        ]

    def __str__(self) -> str:
        return f"{self.happening} of {self.alert_id} on {self.channel_id}"


class Glance(models.Model):
    """How far a person has read at the bell."""

    person = models.UUIDField(primary_key=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.person} until {self.seen_at:%F %T}"
