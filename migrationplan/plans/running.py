"""Verbs about waves under way: pause, resume, leave a node out, take it in again, roll back.

Each is a wish on the row; the turn makes it a move. So a wish and a turn never cross.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from migrationplan.models import Plan, Wave, WaveNode
from migrationplan.phases import Phase, Stand
from migrationplan.plans.making import NOT_BEGUN, WaveRefused
from migrationplan.plans.story import told, wake, write_event
from migrationplan.wave import PAUSABLE
from portal.errors import Invalid
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

LONGEST_REASON = 240
#: A node on its way finishes or goes back; only these may be left out.
SKIPPABLE = frozenset({Stand.WAITING, Stand.CALLED, Stand.RETURNED, Stand.CONFLICT, Stand.LOST})


@transaction.atomic
def pause(
    wave: Wave, *, reason: str, access: PlatformAccess, request_id: str, now: datetime
) -> Wave:
    """No new node starts; begun ones finish. Raises `WaveRefused`, `Invalid` (reason)."""
    wave = _lock(wave, access, reason)
    if Phase(wave.phase) not in PAUSABLE:
        raise WaveRefused(f"It is {wave.phase}: nothing is under way that could pause.")
    return _wish(wave, "wish_pause", "paused", reason, access, request_id, now)


@transaction.atomic
def resume(
    wave: Wave, *, reason: str, access: PlatformAccess, request_id: str, now: datetime
) -> Wave:
    """It goes on where it was, with the rights of who resumes it. Gates that fail or say nothing
    now are let pass, by name, in red. What else stopped it stops it again while it lasts.
    """
    wave = _lock(wave, access, reason)
    if wave.phase != Phase.PAUSED:
        raise WaveRefused(f"It is {wave.phase}, not paused.")
    against = [one for one in wave.verdicts if not one["trial"] and one["verdict"] != "pass"]
    waived = sorted({*wave.waived, *(one["name"] for one in against)})
    Wave.objects.filter(pk=wave.pk).update(waived=waived)
    Plan.objects.filter(pk=wave.plan_id).update(run_by=access.user.person)
    for one in against:
        words = f"{one['name']} let pass: {one['sentence']}"
        write_event(wave, words, now=now, person=access.user.person, loud=True)
    return _wish(
        wave, "wish_resume", "resumed", reason, access, request_id, now,
        loud=bool(wave.code), waived=[one["name"] for one in against],
    )  # fmt: skip


@transaction.atomic
def roll_back(
    wave: Wave, *, reason: str, access: PlatformAccess, request_id: str, now: datetime
) -> Wave:
    """At any time: nothing that runs is ended, nodes go back as they empty, new work takes the old
    path. One that has not begun is discarded by it: nothing goes back, and its nodes are free.
    Raises `WaveRefused` where it is rolled back already.
    """
    wave = _lock(wave, access, reason)
    if wave.phase in (Phase.ROLLED_BACK, Phase.ROLLING_BACK):
        raise WaveRefused(f"It is {wave.phase} already.")
    Plan.objects.filter(pk=wave.plan_id).update(run_by=access.user.person)
    word = "discarded" if Phase(wave.phase) in NOT_BEGUN else "rolling_back"
    return _wish(wave, "wish_roll_back", word, reason, access, request_id, now)


@transaction.atomic
def skip(
    wave: Wave,
    node: str,
    *,
    reason: str,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> WaveNode:
    """Leaves a node out of the wave, for a reason that stands in red in its log."""
    wave = _lock(wave, access, reason)
    row = _node(wave, node)
    if Stand(row.stand) not in SKIPPABLE:
        raise WaveRefused(
            f"{node} is {row.stand}: turn it back first, or wait until it is through."
        )
    WaveNode.objects.filter(pk=row.pk).update(
        skipped=reason.strip()[:300], skipped_by=access.user.person
    )
    words = f"Left out: {reason.strip()}"
    write_event(wave, words, now=now, person=access.user.person, node=node, loud=True)
    _told(wave, "wave.node_skipped", access, request_id, now, node=node, reason=reason.strip())
    row.refresh_from_db()
    return row


@transaction.atomic
def take_in(
    wave: Wave, node: str, *, access: PlatformAccess, request_id: str, now: datetime
) -> WaveNode:
    """A node that was left out counts again."""
    wave = _lock(wave, access, "again")
    row = _node(wave, node)
    if not row.skipped:
        raise WaveRefused(f"{node} is not left out.")
    if wave.phase in (Phase.DONE, Phase.ROLLING_BACK, Phase.ROLLED_BACK):
        raise WaveRefused(f"The wave is {wave.phase}.")
    WaveNode.objects.filter(pk=row.pk).update(skipped="", skipped_by=None)
    write_event(wave, "Taken in again.", now=now, person=access.user.person, node=node)
    _told(wave, "wave.node_taken_in", access, request_id, now, node=node)
    row.refresh_from_db()
    return row


def _lock(wave: Wave, access: PlatformAccess, reason: str) -> Wave:
    access.require(PlatformAct.CONVERT)
    if not 0 < len(reason.strip()) <= LONGEST_REASON:
        raise Invalid(
            "Nothing was done.",
            fields={"reason": f"Say why, in at most {LONGEST_REASON} characters; it is kept."},
        )
    return Wave.objects.select_for_update(of=("self",)).select_related("plan").get(pk=wave.pk)


def _node(wave: Wave, node: str) -> WaveNode:
    found = wave.nodes.select_for_update().filter(node=node).first()
    if found is None:
        raise Invalid("Nothing was done.", fields={"node": f"{node} is not in this wave."})
    return found


def _wish(
    wave: Wave,
    field: str,
    word: str,
    reason: str,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
    *,
    loud: bool = False,
    **facts: Any,
) -> Wave:
    said = reason.strip()
    Wave.objects.filter(pk=wave.pk).update(**{field: said})
    write_event(
        wave, f"{word.replace('_', ' ').capitalize()} by hand: {said}",
        now=now, person=access.user.person, loud=loud,
    )  # fmt: skip
    _told(wave, f"wave.{word}", access, request_id, now, reason=said, **facts)
    wave.refresh_from_db()
    return wave


def _told(
    wave: Wave, action: str, access: PlatformAccess, request_id: str, now: datetime, **facts: Any
) -> None:
    told(
        wave.plan, action, access, request_id, now,
        wave=wave.position, phase=wave.phase, **facts,
    )  # fmt: skip
    wake(wave, now)
