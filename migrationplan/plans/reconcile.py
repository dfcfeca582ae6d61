"""One turn of one wave: load, look, decide, do, record.

A turn may run twice or die at any line; it holds a lease but no lock and no transaction while it
talks to the cluster. What it decides is `wave.decide`'s alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.urls import reverse

from devices.cluster.gateway import Conflict, Gateway
from devices.dra.wording import some_of
from devices.forecasts.warm import fresh
from devices.tenancy import freezes
from migrationplan import wave as rules
from migrationplan.evidence.waves import collect_wave
from migrationplan.models import Wave, WaveNode
from migrationplan.phases import Code, Decision, Observation, Phase, Seen
from migrationplan.phases import Wave as State
from migrationplan.plans import leave
from migrationplan.plans.observe import observe, runner
from migrationplan.plans.perform import perform, rolls_back
from migrationplan.plans.story import TURN, publish, write_event
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox

SWEEP_BATCH: Final = 100
#: Columns by which a wish of a person meanwhile is noticed: it counts more than this look.
WISHES: Final = ("wish_pause", "wish_resume", "wish_roll_back")
NEEDS_APPROVAL: Final = "WAVE_NEEDS_APPROVAL"
DONE: Final = "WAVE_DONE"
BACK: Final = "WAVE_BACK"


def turn(public_id: str, *, gateway: Gateway, now: datetime) -> bool:
    """Takes a wave one phase further, or does what it asks for, or waits. True where something
    moved, so that another turn is worth while; False also where another turn is at work.
    """
    through = outbox.newest(TURN, public_id)
    row = Wave.objects.select_related("plan").get(public_id=public_id)
    holder = secrets.token_hex(8)
    if not row.take_lease(holder, now):
        return False
    moved = False
    try:
        row.refresh_from_db()
        picture = fresh()
        seen = observe(row, gateway=gateway, picture=picture, now=now)
        decision = rules.decide(state_of(row), seen, now)
        access, _ = runner(row)
        if access is not None:
            try:
                perform(row, decision, access=access, gateway=gateway, picture=picture, now=now)
            except Conflict:
                pass  # something changed meanwhile; the next turn asks again
            except Refused as refused:
                tell_refused(row, refused, now)
        moved = _record(row, decision, seen, holder, now)
        outbox.settle(TURN, public_id, through=through)
    finally:
        woken = row.drop_lease(holder, looked_at=now)
    return moved or woken


def tell_refused(row: Wave, refused: Refused, now: datetime) -> None:
    """Writes what was refused and why, once in a phase: turns try it again every few seconds."""
    why = refused.fields.values() if isinstance(refused, Invalid) else ()
    text = " ".join(["Refused:", refused.message, *why])[:500]
    if not row.events.filter(text=text, at__gte=row.since).exists():
        write_event(row, text, now=now, code=refused.code)


def state_of(row: Wave) -> State:
    """The row as the rules take it; at most two queries."""
    given, words = leave.of(row, leave.approval_of(row))
    return State(
        rules=row.rules(),
        phase=Phase(row.phase),
        since=row.since,
        leave=given,
        leave_words=words,
        paused_from=Phase(row.paused_from) if row.paused_from else None,
        paused_why=row.why if row.phase == Phase.PAUSED else "",
        soaked=row.soaked,
        pause=row.wish_pause,
        resume=row.wish_resume,
        roll_back=row.wish_roll_back,
        waived=frozenset(row.waived),
    )


def _record(row: Wave, decision: Decision, seen: Observation, holder: str, now: datetime) -> bool:
    """Stores what was decided, if this turn still has its lease and nobody wished otherwise."""
    moved = decision.move
    changed: dict[str, Any] = {"away_since": seen.away_since}
    if row.phase in (Phase.RUNNING, Phase.SOAKING):
        changed["verdicts"] = [asdict(one) for one in seen.gates]
    if moved is not None:
        changed |= _moved(row, decision, moved, now)
    else:
        rests = Phase(row.phase) in (Phase.DRAFT, Phase.DONE, Phase.ROLLED_BACK)
        changed["wake_at"] = None if rests else now + decision.recheck
        if row.phase != Phase.PAUSED:
            changed["why"] = decision.why[:500]
    with transaction.atomic():
        as_read = Wave.objects.filter(
            pk=row.pk, lease=holder, phase=row.phase, since=row.since,
            **{name: getattr(row, name) for name in WISHES},
        )  # fmt: skip
        if not as_read.update(**changed):
            return True  # somebody wished meanwhile: look again
        _stands(row, seen.nodes)
        if moved is not None:
            _tell(row, decision, moved, now)
        if moved is not None or changed.get("why", row.why) != row.why:
            publish(row.plan)
    return moved is not None


def _moved(row: Wave, decision: Decision, to: Phase, now: datetime) -> dict[str, Any]:
    """The columns that a move changes; it clears the wish that it grants."""
    was = Phase(row.phase)
    changed: dict[str, Any] = {
        "phase": to.value,
        "since": now,
        "why": decision.why[:500],
        "code": decision.code.value if decision.code else "",
        "wake_at": now,
    }
    if to is Phase.PAUSED:
        changed |= {"paused_from": was.value, "wish_pause": "", "wish_resume": ""}
        if was is Phase.SOAKING:
            changed["soaked"] = row.soaked + (now - row.since)
    elif was is Phase.PAUSED:
        changed |= {"wish_resume": "", "paused_from": ""}
    if to is Phase.ROLLING_BACK:
        changed |= {"wish_roll_back": "", "wish_pause": ""}
    if to is Phase.RUNNING:
        if row.started_at is None:
            changed["started_at"] = now
        if was is not Phase.PAUSED:
            changed["soaked"] = timedelta(0)
    if to in (Phase.DRAFT, Phase.DONE, Phase.ROLLED_BACK):
        changed |= {"wish_pause": "", "wish_resume": ""}
    if to is Phase.DRAFT:
        changed |= {"submitted": False, "leave_words": decision.why[:400]}
    return changed


def _stands(row: Wave, nodes: Sequence[Seen]) -> None:
    """How each node stands, for pages; only those that changed are written."""
    rows = {one.node: one for one in row.nodes.all()}
    changed = []
    for seen in nodes:
        one, why = rows.get(seen.node), _why(seen)
        if one is not None and (one.stand, one.why) != (seen.stand.value, why):
            one.stand, one.why = seen.stand.value, why
            changed.append(one)
    WaveNode.objects.bulk_update(changed, ["stand", "why"], batch_size=500)


def _why(seen: Seen) -> str:
    if seen.why_not:
        return seen.why_not[:500]
    if not seen.holders:
        return ""
    return f"waits for {some_of([one.pod for one in seen.holders], 3)}"[:500]


def _tell(row: Wave, decision: Decision, to: Phase, now: datetime) -> None:
    """One event, one audit line, and the bell: opened and ended as the phase says."""
    was = Phase(row.phase)
    code = decision.code.value if decision.code else ""
    asked = {row.wish_pause, row.wish_resume, row.wish_roll_back} - {""}
    # Whoever asked for it said why, in a line of their own.
    words = f"{to.value}, as asked" if decision.why in asked else decision.why
    write_event(row, words, now=now, phase=to.value, code=code)
    for over_code in _over(was, row.code):
        over(over_code, subject(row), now=now)
    if (about := _about(row, decision, to)) is not None:
        raise_alert(about, now=now, request_id=row.plan.request_id)
        if to in (Phase.DONE, Phase.ROLLED_BACK):
            over(about.code, subject(row), now=now, told=False)  # news, and nothing that lasts
    if to in (Phase.DONE, Phase.ROLLED_BACK):
        _next(row, now)
    if to is Phase.ROLLED_BACK:
        freezes.end_for(rolls_back(row), request_id=row.plan.request_id, now=now)
        collect_wave(row, why=f"{row.plan.number}, wave {row.position} rolled back", now=now)
    record(
        action=f"wave.{to.value.replace(' ', '_')}",
        subject=f"plan {row.plan.public_id}",
        request_id=row.plan.request_id,
        at=now,
        facts={
            "plan": row.plan.number,
            "wave": row.position,
            "from": was.value,
            "why": decision.why,
            "code": code,
        },
    )


def subject(row: Wave) -> str:
    """How alerts name a wave."""
    return f"wave {row.public_id}"


def _over(was: Phase, code: str) -> list[str]:
    if was is Phase.PAUSED:
        return [code or Code.BY_HAND.value]
    if was is Phase.ROLLING_BACK:
        return [code]
    return [NEEDS_APPROVAL] if was is Phase.IN_REVIEW else []


#: What rings, by the phase that begins: code, severity, and what to say.
RINGS: Final[Mapping[Phase, tuple[str, Severity, str]]] = {
    Phase.IN_REVIEW: (NEEDS_APPROVAL, Severity.NOTICE, "waits for approval"),
    Phase.PAUSED: ("", Severity.WARNING, "is paused"),
    Phase.ROLLING_BACK: ("", Severity.WARNING, "rolls back"),
    Phase.DONE: (DONE, Severity.NOTICE, "is done"),
    Phase.ROLLED_BACK: (BACK, Severity.NOTICE, "is rolled back"),
}


def _about(row: Wave, decision: Decision, to: Phase) -> About | None:
    if to not in RINGS or (to is Phase.ROLLING_BACK and decision.code is Code.ROLLED_BY_HAND):
        return None
    if to is Phase.ROLLED_BACK and row.started_at is None:
        return None  # discarded before it began: nothing went back
    code, severity, words = RINGS[to]
    if decision.code is Code.CONFLICT:
        severity = Severity.CRITICAL
    ends = {
        Phase.PAUSED: "Begun nodes finish; nothing starts until somebody resumes it.",
        Phase.ROLLING_BACK: "Nothing that runs is ended; nodes go back as they empty.",
    }
    return About(
        code=code or (decision.code.value if decision.code else Code.BY_HAND.value),
        subject=subject(row),
        title=f"{row.plan.name}, wave {row.position} {words}"[:200],
        severity=severity,
        words=f"{decision.why[:1].upper()}{decision.why[1:]}. {ends.get(to, '')}".strip(),
        path=reverse("plan-wave", args=[row.plan.public_id, row.position]),
    )


def _next(row: Wave, now: datetime) -> None:
    """Waves that wait for this one are looked at soon."""
    waiting = row.plan.waves.filter(phase=Phase.APPROVED.value)
    waiting.update(wake_at=now)


def due(now: datetime) -> Sequence[str]:
    """Waves whose time has come, those that nobody has waited for longest first."""
    waves = Wave.objects.filter(wake_at__lte=now).order_by("wake_at")
    return list(waves.values_list("public_id", flat=True)[:SWEEP_BATCH])
