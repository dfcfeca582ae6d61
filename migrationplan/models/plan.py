"""Plans: strategies, waves with their nodes, all that happened, and the freeze calendar."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, time, timedelta
from typing import Any, ClassVar

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from devices.models import NodePool
from devices.models.lease import Leased
from migrationplan.models.move import DIRECTIONS, Move, new_public_id
from migrationplan.phases import Audience, OnFailure, Phase, Rules, Stand
from migrationplan.steps import Direction
from migrationplan.windows import Frozen, Window

PHASES = [(one.value, one.value) for one in Phase]
STANDS = [(one.value, one.value) for one in Stand]
AUDIENCES = [(one.value, one.value) for one in Audience]
ON_FAILURE = [(one.value, one.value) for one in OnFailure]


class Strategy(models.Model):
    """A way to move any node pool: waves by share, reused by many plans.

    `waves` is a list of what `plans.wishes.WaveWish` says, without node names.
    """

    slug = models.SlugField(max_length=63, unique=True)
    name = models.CharField(max_length=80)
    words = models.CharField(max_length=240, blank=True)
    waves = models.JSONField(default=list)
    revision = models.PositiveIntegerField(default=1)
    made_by = models.UUIDField()
    made_at = models.DateTimeField()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Plan(models.Model):
    """Waves over the nodes of node pools, in order. `revision` counts its changes; what was
    approved of another revision is void.
    """

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id)
    name = models.CharField(max_length=80)
    words = models.CharField(max_length=240, blank=True)
    strategy = models.ForeignKey(Strategy, on_delete=models.SET_NULL, null=True)
    pools = models.ManyToManyField(NodePool, related_name="plans")
    direction = models.CharField(max_length=16, choices=DIRECTIONS, default=Direction.TO_DRA.value)
    revision = models.PositiveIntegerField(default=1)
    changed = models.CharField(max_length=400, blank=True, help_text="By the newest change.")
    made_by = models.UUIDField()
    made_at = models.DateTimeField()
    run_by = models.UUIDField(null=True, help_text="Whose rights the waves use: who submitted.")
    request_id = models.CharField(max_length=64)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def number(self) -> str:
        """How people call it: P-14."""
        return f"P-{self.pk}"


class Wave(Leased):
    """One wave: what it may do, how it stands, and the wishes of people about it.

    `wish_pause`, `wish_resume` and `wish_roll_back` are in people's words; the move that they ask
    for clears them. `approval` is the newest one that asked about it; `withdrawn` says who took
    a yes back, and why. `gates` are slugs of gates, `verdicts` what they said at the last turn.
    """

    lease_time: ClassVar[timedelta] = timedelta(seconds=60)

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id)
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="waves")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=80)
    percent = models.PositiveSmallIntegerField(
        null=True, help_text="Of each pool's nodes; null: nodes are named."
    )
    audience = models.CharField(max_length=9, choices=AUDIENCES, default=Audience.ALL.value)
    concurrency = models.PositiveSmallIntegerField(default=1)
    max_errors = models.PositiveSmallIntegerField(default=0)
    soak = models.DurationField(default=timedelta(hours=24))
    windows = models.JSONField(default=list)
    on_failure = models.CharField(max_length=9, choices=ON_FAILURE, default=OnFailure.PAUSE.value)
    evict_retryable = models.BooleanField(default=False)
    approvals_needed = models.PositiveSmallIntegerField(default=1)
    rehearsed_days = models.PositiveSmallIntegerField(
        default=0, help_text="How long ago the rollback was rehearsed at most; 0: not asked."
    )
    gates = models.JSONField(default=list)
    verdicts = models.JSONField(default=list)

    phase = models.CharField(max_length=12, choices=PHASES, default=Phase.DRAFT.value)
    since = models.DateTimeField()
    why = models.CharField(max_length=500, blank=True)
    code = models.CharField(max_length=48, blank=True)
    paused_from = models.CharField(max_length=12, choices=PHASES, blank=True)
    soaked = models.DurationField(default=timedelta(0))
    started_at = models.DateTimeField(null=True, help_text="First time that it ran.")
    waived = ArrayField(models.CharField(max_length=80), default=list)
    wish_pause = models.CharField(max_length=300, blank=True)
    wish_resume = models.CharField(max_length=300, blank=True)
    wish_roll_back = models.CharField(max_length=300, blank=True)
    submitted = models.BooleanField(default=False)
    approval = models.BigIntegerField(null=True)
    withdrawn = models.CharField(max_length=300, blank=True)
    leave_words = models.CharField(max_length=400, blank=True)
    away_since = models.DateTimeField(null=True)
    wake_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["plan", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["plan", "position"],
                name="one_wave_a_place",
                deferrable=models.Deferrable.DEFERRED,
            ),
            models.CheckConstraint(condition=Q(concurrency__gte=1), name="wave_moves_one_at_least"),
        ]
        indexes = [
            models.Index(fields=["wake_at"], condition=Q(wake_at__isnull=False), name="waves_due")
        ]

    def __str__(self) -> str:
        return f"{self.position} {self.name}"

    def rules(self) -> Rules:
        """What it may do, for the rules."""
        return Rules(
            direction=Direction(self.plan.direction),
            audience=Audience(self.audience),
            concurrency=self.concurrency,
            max_errors=self.max_errors,
            soak=self.soak,
            windows=windows_from(self.windows),
            on_failure=OnFailure(self.on_failure),
            evict_retryable=self.evict_retryable,
            rehearsed_within=timedelta(days=self.rehearsed_days),
        )


class WaveNode(models.Model):
    """A node of a wave, known by uid, in the order in which it may start. `stand`, `why` and
    `holders` are what the last turn saw; `skipped` is the reason of whoever left it out.
    """

    wave = models.ForeignKey(Wave, on_delete=models.CASCADE, related_name="nodes")
    pool = models.ForeignKey(NodePool, on_delete=models.PROTECT)
    node = models.CharField(max_length=253)
    node_uid = models.CharField(max_length=64)
    position = models.PositiveIntegerField()
    move = models.ForeignKey(Move, on_delete=models.PROTECT, null=True, related_name="+")
    stand = models.CharField(max_length=24, choices=STANDS, default=Stand.WAITING.value)
    why = models.CharField(max_length=500, blank=True)
    skipped = models.CharField(max_length=300, blank=True)
    skipped_by = models.UUIDField(null=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["wave", "pool", "node_uid"], name="once_in_a_wave")
        ]

    def __str__(self) -> str:
        return f"{self.node}: {self.stand}"


class WaveEvent(models.Model):
    """One thing that happened to a wave. `loud`: somebody went past what the plan says."""

    wave = models.ForeignKey(Wave, on_delete=models.PROTECT, related_name="events")
    at = models.DateTimeField()
    phase = models.CharField(max_length=12, choices=PHASES)
    code = models.CharField(max_length=48, blank=True)
    text = models.CharField(max_length=500)
    person = models.UUIDField(null=True)
    node = models.CharField(max_length=253, blank=True)
    loud = models.BooleanField(default=False)

    class Meta:
        ordering = ["pk"]
        triggers = [
            pgtrigger.Protect(name="wave_event_kept", operation=pgtrigger.Update | pgtrigger.Delete)
        ]

    def __str__(self) -> str:
        return f"{self.phase}: {self.text}"


class CalendarQuerySet(models.QuerySet["CalendarFreeze"]):
    """Questions that turns and pages ask."""

    def to_come(self, now: datetime) -> CalendarQuerySet:
        """Entries in force or to come."""
        return self.filter(removed_at=None, ends_at__gt=now)

    def of(self, pools: Iterable[str]) -> CalendarQuerySet:
        """Those that concern any of these node pools, by slug."""
        return self.filter(Q(pools=[]) | Q(pools__overlap=list(pools)))


class CalendarFreeze(models.Model):
    """A time in which no node starts, whatever a plan says; without pools it is of all of them."""

    public_id = models.CharField(max_length=12, unique=True, default=new_public_id)
    reason = models.CharField(max_length=240)
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    pools = ArrayField(models.CharField(max_length=63), default=list)
    made_by = models.UUIDField()
    made_at = models.DateTimeField()
    removed_by = models.UUIDField(null=True)
    removed_at = models.DateTimeField(null=True)
    request_id = models.CharField(max_length=64)

    objects = CalendarQuerySet.as_manager()

    class Meta:
        ordering = ["begins_at", "pk"]
        constraints = [
            models.CheckConstraint(
                condition=Q(ends_at__gt=F("begins_at")), name="calendar_freeze_ends_later"
            )
        ]
        triggers = [
            pgtrigger.Protect(name="calendar_kept", operation=pgtrigger.Delete),
            pgtrigger.ReadOnly(name="calendar_as_written", exclude=["removed_by", "removed_at"]),
        ]

    def __str__(self) -> str:
        return self.reason

    def frozen(self) -> Frozen:
        """For the rules."""
        return Frozen(self.begins_at, self.ends_at, self.reason)


def windows_from(stored: Iterable[dict[str, Any]]) -> tuple[Window, ...]:
    """What a JSON column keeps of windows: `{"days": [0, 1], "begins": "22:00", …}`."""
    return tuple(
        Window(
            days=frozenset(one["days"]),
            begins=time.fromisoformat(one["begins"]),
            ends=time.fromisoformat(one["ends"]),
            zone=one["zone"],
        )
        for one in stored
    )


def windows_as_json(windows: Iterable[Window]) -> list[dict[str, Any]]:
    """The other way."""
    return [
        {
            "days": sorted(one.days),
            "begins": f"{one.begins:%H:%M}",
            "ends": f"{one.ends:%H:%M}",
            "zone": one.zone,
        }
        for one in windows
    ]
