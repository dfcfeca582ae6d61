"""Whether the rollback of a wave's node pools was rehearsed, as drills have it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db.models import Max, Q

from devices.models import NodePool
from migrationplan.drills.words import Kind, Result
from migrationplan.models import Wave
from migrationplan.phases import Rehearsal
from migrationplan.wave import unrehearsed
from portal.approvals.rules import Effect


def rehearsals_of(pools: Sequence[NodePool]) -> tuple[Rehearsal, ...]:
    """When the rollback was last rehearsed on each of these node pools; one query."""
    of_kind = Q(drills__kind=Kind.ROLLBACK.value)
    found = NodePool.objects.filter(pk__in=[pool.pk for pool in pools]).annotate(
        passed=Max("drills__ended_at", filter=of_kind & Q(drills__result=Result.PASSED.value)),
        failed=Max("drills__ended_at", filter=of_kind & Q(drills__result=Result.FAILED.value)),
    )
    return tuple(Rehearsal(one.name, one.passed, one.failed) for one in found.order_by("slug"))


def rehearsal_check(wave: Wave, now: datetime) -> Effect:
    """What an approver reads of it, for a wave that asks for one."""
    pools = list(NodePool.objects.filter(wavenode__wave=wave).distinct())
    lacking = unrehearsed(wave.rules(), rehearsals_of(pools), now)
    return Effect(
        "check",
        "Rollback rehearsed",
        f"within {wave.rehearsed_days} days" if not lacking else "not as lately as asked",
        lacking,
        state="fail" if lacking else "done",
    )
