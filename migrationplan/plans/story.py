"""What is written of plans: events of waves, audit lines, news for open pages, and wake-ups."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from migrationplan.models import Plan, Wave, WaveEvent
from portal import news
from portal.audit.record import record
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess

TURN = "migrationplan.tasks.turn_wave"


def write_event(
    wave: Wave,
    text: str,
    *,
    now: datetime,
    phase: str = "",
    code: str = "",
    person: UUID | None = None,
    node: str = "",
    loud: bool = False,
) -> None:
    """One line of the wave's history."""
    WaveEvent.objects.create(
        wave=wave, at=now, phase=phase or wave.phase, code=code, text=text[:500], person=person,
        node=node, loud=loud,
    )  # fmt: skip


def told(
    plan: Plan,
    action: str,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
    **facts: Any,
) -> None:
    """One audit line, and news for open pages; the last thing in a verb."""
    record(
        action=action,
        subject=f"plan {plan.public_id}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={"plan": plan.number, "name": plan.name, "revision": plan.revision, **facts},
    )
    publish(plan)


def publish(plan: Plan) -> None:
    """Open pages look again, once the transaction is through."""
    topics = ["plans", f"plan-{plan.public_id}"]
    transaction.on_commit(lambda: news.publish(topics, tenant=news.PLATFORM), robust=True)


def wake(wave: Wave, now: datetime) -> None:
    """A turn looks at it soon, and the sweep where the broker is away."""
    Wave.objects.filter(pk=wave.pk).update(wake_at=now)
    transaction.on_commit(lambda: outbox.hint(TURN, wave.public_id), robust=True)
