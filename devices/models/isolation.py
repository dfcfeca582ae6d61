"""Places that are closed because preparations fail there, and the preparations that say so."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from django.db import models
from django.db.models import Q

from devices.dra.isolation import Place, Rule
from devices.dra.isolation import Preparation as PreparationSeen
from devices.dra.isolationobjects import DryRun, Target
from devices.models.claim import new_public_id
from devices.models.lease import Leased

LEASE = timedelta(seconds=60)


class Preparation(models.Model):
    """One Pod's devices of one driver: when its node first failed to prepare them, and when it did.

    Kept for a day after it was last seen.
    """

    pod = models.CharField(max_length=64, help_text="The Pod's uid.")
    name = models.CharField(max_length=320, help_text="Its namespace/name.")
    node = models.CharField(max_length=253)
    driver = models.CharField(max_length=63)
    device_class = models.CharField(max_length=253, blank=True)
    devices = models.JSONField(help_text="Driver, pool and name of each.")
    seen_at = models.DateTimeField()
    failed_at = models.DateTimeField(null=True)
    ready_at = models.DateTimeField(null=True)
    code = models.CharField(max_length=48, blank=True)
    text = models.CharField(max_length=500, blank=True, help_text="The node's own words.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["pod", "driver"], name="prepared_once")]
        indexes = [models.Index(fields=["seen_at"], name="preparations_by_time")]

    def __str__(self) -> str:
        return f"{self.name} on {self.node}"

    def value(self) -> PreparationSeen:
        """As the rules take it."""
        return PreparationSeen(
            pod=self.name,
            node=self.node,
            driver=self.driver,
            devices=tuple((driver, pool, name) for driver, pool, name in self.devices),
            seen_at=self.seen_at,
            failed_at=self.failed_at,
            ready_at=self.ready_at,
            code=self.code,
        )


class IsolationPolicy(models.Model):
    """What an admin lets Berth do by itself; one row. Off until somebody switches it on."""

    automatic = models.BooleanField(default=False, help_text="Close without asking a person.")
    share = models.PositiveSmallIntegerField(
        default=25, help_text="Per cent of a pool's devices that may be closed at most."
    )
    least_failed = models.PositiveSmallIntegerField(default=3)
    window = models.DurationField(default=timedelta(minutes=30))
    probe_every = models.DurationField(
        null=True, default=timedelta(minutes=15), help_text="Null: only when somebody asks."
    )
    changed_by = models.UUIDField(null=True)
    changed_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return "isolation by itself" if self.automatic else "isolation by people"

    @classmethod
    def current(cls) -> IsolationPolicy:
        """The row; what holds before anybody wrote one."""
        return cls.objects.first() or cls(pk=1)

    def rule(self) -> Rule:
        """As the rules take it."""
        return Rule(window=self.window, least_failed=self.least_failed, share=self.share / 100)


class Isolation(Leased):
    """One place from the proposal to close it until it is open again.

    `wish` is what somebody wants done; a turn does it and empties the wish. `by` fields are empty
    where the policy or Berth itself did it.
    """

    class State(models.TextChoices):
        PROPOSED = "proposed", "Proposed"
        TRIED = "tried", "Waits for a person"
        APPLIED = "applied", "Isolated"
        ENDED = "ended", "Over"

    class Wish(models.TextChoices):
        NONE = "", "Nothing"
        LOOK = "look", "Look anew at what it would touch"
        APPLY = "apply", "Close it"
        PROBE = "probe", "Try it"
        LIFT = "lift", "Open it"

    class End(models.TextChoices):
        NONE = "", "Not over"
        DISMISSED = "dismissed", "Somebody said no"
        PASSED = "passed", "It works again, nothing was closed"
        LIFTED = "lifted", "Somebody opened it"
        PROBED = "probed", "A trial Pod ran"
        RECOVERED = "recovered", "Pods became ready there again"
        LOST = "lost", "Its node is gone"

    OPEN: ClassVar = Q(ended_at=None)
    lease_time = LEASE

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id, editable=False)
    driver = models.CharField(max_length=63)
    pool = models.CharField(max_length=253, help_text="The slice pool.")
    node = models.CharField(max_length=253)
    node_uid = models.CharField(max_length=64, blank=True)
    device = models.CharField(max_length=63, blank=True, help_text="Empty: all of them.")
    device_class = models.CharField(max_length=253, blank=True, help_text="For its trial Pod.")
    evidence = models.JSONField(default=dict, help_text="Figures, Pods and codes.")
    why = models.TextField(blank=True)
    proposed_at = models.DateTimeField()
    proposed_by = models.UUIDField(null=True)

    state = models.CharField(max_length=8, choices=State, default=State.PROPOSED)
    since = models.DateTimeField()
    wish = models.CharField(max_length=5, choices=Wish, blank=True)
    wished_by = models.UUIDField(null=True)
    wished_at = models.DateTimeField(null=True)
    wished_why = models.CharField(max_length=240, blank=True)
    request_id = models.CharField(max_length=64)

    node_taint = models.BooleanField(default=False, help_text="Rules are not served here.")
    looks = models.PositiveIntegerField(default=1, help_text="How often it was looked at anew.")
    looking_since = models.DateTimeField(null=True)
    dry_run = models.JSONField(null=True)
    dry_run_at = models.DateTimeField(null=True)
    code = models.CharField(
        max_length=48, blank=True, help_text="What stood in the last wish's way."
    )
    answer = models.TextField(blank=True)

    canary = models.CharField(max_length=63, blank=True, help_text="The trial under way.")
    canary_at = models.DateTimeField(null=True)
    canaries = models.PositiveIntegerField(default=0)
    trial = models.CharField(max_length=240, blank=True, help_text="What came of the last one.")
    trial_at = models.DateTimeField(null=True)

    applied_at = models.DateTimeField(null=True)
    applied_by = models.UUIDField(null=True)
    ended_at = models.DateTimeField(null=True)
    ended_by = models.UUIDField(null=True)
    end = models.CharField(max_length=9, choices=End, blank=True)
    end_why = models.CharField(max_length=240, blank=True)

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["state"], condition=Q(ended_at=None), name="isolations_on")]
        constraints = [
            models.UniqueConstraint(
                fields=["driver", "node", "pool", "device"],
                condition=Q(ended_at=None),
                name="isolated_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.place} ({self.public_id})"

    @property
    def place(self) -> Place:
        """As the rules take it."""
        key = (self.driver, self.pool, self.device) if self.device else None
        return Place(self.driver, self.node, key)

    @property
    def target(self) -> Target:
        """As objects take it."""
        return Target(self.public_id, self.driver, self.pool, self.device)

    @property
    def found(self) -> DryRun | None:
        """What closing it would touch, as it was read last."""
        return DryRun(**self.dry_run) if self.dry_run else None
