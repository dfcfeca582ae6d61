"""Shapes of plans, waves, strategies and the freeze calendar in the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from migrationplan.models import CalendarFreeze, Plan, Strategy, Wave, WaveEvent, WaveNode
from migrationplan.models.plan import windows_from
from migrationplan.phases import Audience, OnFailure
from migrationplan.plans.wishes import WaveWish, wish_from_json
from migrationplan.steps import Direction
from portal.api.bodies import Body


class WindowShape(serializers.Serializer):
    """Weekdays (Monday is 0), from when to when, on the clocks of a time zone."""

    days = serializers.ListField(child=serializers.IntegerField(min_value=0, max_value=6))
    begins = serializers.RegexField(r"^([01]\d|2[0-3]):[0-5]\d$")
    ends = serializers.RegexField(r"^([01]\d|2[0-3]):[0-5]\d$")
    zone = serializers.CharField(max_length=64)


class WaveIn(Body):
    """What a wave may do. Either `percent` of each pool's nodes that no wave before took, or
    `nodes` by name. `soak` in seconds. `gates` are slugs. `rehearsed_days`: nodes start only
    while a rollback rehearsal passed so lately on each of its node pools; 0: it is not asked.
    """

    name = serializers.CharField(max_length=80)
    percent = serializers.IntegerField(
        min_value=1, max_value=100, required=False, allow_null=True, default=None
    )
    nodes = serializers.ListField(child=serializers.CharField(max_length=253), default=list)
    audience = serializers.ChoiceField(
        choices=[one.value for one in Audience], default=Audience.ALL.value
    )
    concurrency = serializers.IntegerField(min_value=1, default=1)
    max_errors = serializers.IntegerField(min_value=0, default=0)
    soak = serializers.IntegerField(min_value=0, max_value=30 * 86_400, default=86_400)
    windows = WindowShape(many=True, default=list)
    on_failure = serializers.ChoiceField(
        choices=[one.value for one in OnFailure], default=OnFailure.PAUSE.value
    )
    evict_retryable = serializers.BooleanField(default=False)
    approvals_needed = serializers.IntegerField(min_value=0, max_value=5, default=1)
    rehearsed_days = serializers.IntegerField(min_value=0, max_value=365, default=0)
    gates = serializers.ListField(child=serializers.SlugField(), default=list)

    def wish(self) -> WaveWish:
        return wave_wish(self.validated_data)


def wave_wish(asked: dict[str, Any]) -> WaveWish:
    """What `WaveIn` took, as a wish."""
    return WaveWish(
        name=asked["name"],
        percent=asked["percent"],
        nodes=tuple(asked["nodes"]),
        audience=Audience(asked["audience"]),
        concurrency=asked["concurrency"],
        max_errors=asked["max_errors"],
        soak=timedelta(seconds=asked["soak"]),
        windows=windows_from(asked["windows"]),
        on_failure=OnFailure(asked["on_failure"]),
        evict_retryable=asked["evict_retryable"],
        approvals_needed=asked["approvals_needed"],
        rehearsed_days=asked["rehearsed_days"],
        gates=tuple(asked["gates"]),
    )


class ChangedWaveIn(WaveIn):
    """`revision` is that of the plan that was looked at."""

    revision = serializers.IntegerField()


class PlanIn(Body):
    """Which node pools go which way: by a strategy, or by these waves."""

    name = serializers.CharField(max_length=80)
    words = serializers.CharField(max_length=240, default="", allow_blank=True)
    pools = serializers.ListField(child=serializers.SlugField(), allow_empty=False)
    direction = serializers.ChoiceField(choices=[one.value for one in Direction])
    strategy = serializers.SlugField(default="", allow_blank=True)
    waves = WaveIn(many=True, default=list)


class WaveOut(serializers.ModelSerializer[Wave]):
    """A wave. `why` is one sentence on what it waits for; `code` why it paused or rolls back."""

    id = serializers.CharField(source="public_id")
    soak = serializers.SerializerMethodField()
    paused_from = serializers.CharField(
        read_only=True, help_text="The phase in which it was paused; empty: it is not paused."
    )

    class Meta:
        model = Wave
        fields: ClassVar = [
            "id", "position", "name", "phase", "since", "why", "code", "percent", "audience",
            "concurrency", "max_errors", "soak", "windows", "on_failure", "evict_retryable",
            "approvals_needed", "rehearsed_days", "gates", "verdicts", "waived",
            "paused_from", "started_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_soak(self, wave: Wave) -> int:
        return int(wave.soak.total_seconds())


class WaveNodeOut(serializers.ModelSerializer[WaveNode]):
    """How one node of a wave stands; `skipped` is why it was left out."""

    pool = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    move = serializers.CharField(source="move.public_id", default=None, allow_null=True)

    class Meta:
        model = WaveNode
        fields: ClassVar = ["node", "node_uid", "pool", "stand", "why", "skipped", "move"]
        read_only_fields = fields


class WaveEventOut(serializers.ModelSerializer[WaveEvent]):
    """One thing that happened to a wave; `loud`: somebody went past what the plan says."""

    class Meta:
        model = WaveEvent
        fields: ClassVar = ["at", "phase", "code", "text", "person", "node", "loud"]
        read_only_fields = fields


class PlanOut(serializers.ModelSerializer[Plan]):
    """A plan with its waves. `revision` is what a change must name."""

    id = serializers.CharField(source="public_id")
    number = serializers.CharField()
    strategy = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)
    pools = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, many=True)
    waves = WaveOut(many=True, read_only=True)

    class Meta:
        model = Plan
        fields: ClassVar = [
            "id", "number", "name", "words", "direction", "pools", "strategy", "revision",
            "changed", "made_at", "waves",
        ]  # fmt: skip
        read_only_fields = fields


class ReasonIn(Body):
    """Why; it is kept."""

    reason = serializers.CharField(max_length=240)


class SubmitPlanIn(Body):
    """What approvers read beside the wave."""

    reason = serializers.CharField(max_length=2000, default="", allow_blank=True)


class NodeReasonIn(ReasonIn):
    """Which node, and why."""

    node = serializers.CharField(max_length=253)


class NodeIn(Body):
    """Which node."""

    node = serializers.CharField(max_length=253)


class StrategyIn(Body):
    """A strategy; its waves have shares, not nodes."""

    name = serializers.CharField(max_length=80)
    words = serializers.CharField(max_length=240, default="", allow_blank=True)
    waves = WaveIn(many=True)

    def fields_of(self) -> dict[str, Any]:
        asked = self.validated_data
        waves = tuple(wave_wish(one) for one in asked["waves"])
        return {"name": asked["name"], "words": asked["words"], "waves": waves}


class NewStrategyIn(StrategyIn):
    """A new one has a name for addresses too."""

    slug = serializers.SlugField(max_length=63)


class ChangedStrategyIn(StrategyIn):
    """`revision` is that of the strategy that was looked at."""

    revision = serializers.IntegerField()


class StrategyOut(serializers.ModelSerializer[Strategy]):
    """A strategy."""

    waves = serializers.SerializerMethodField()

    class Meta:
        model = Strategy
        fields: ClassVar = ["slug", "name", "words", "waves", "revision", "made_at"]
        read_only_fields = fields

    @extend_schema_field(WaveIn(many=True))
    def get_waves(self, strategy: Strategy) -> list[dict[str, Any]]:
        wishes = [wish_from_json(one) for one in strategy.waves]
        return [{**wish.as_json(), "soak": int(wish.soak.total_seconds())} for wish in wishes]


class CalendarIn(Body):
    """A time in which no node of these pools (none: of any) starts."""

    reason = serializers.CharField(max_length=240)
    begins = serializers.DateTimeField()
    ends = serializers.DateTimeField()
    pools = serializers.ListField(child=serializers.SlugField(), default=list)


class CalendarOut(serializers.ModelSerializer[CalendarFreeze]):
    """One entry; with `removed_at` it counts no more."""

    id = serializers.CharField(source="public_id")

    class Meta:
        model = CalendarFreeze
        fields: ClassVar = [
            "id",
            "reason",
            "begins_at",
            "ends_at",
            "pools",
            "made_at",
            "removed_at",
        ]
        read_only_fields = fields
