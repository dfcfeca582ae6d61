"""Rolling the accounting out: verbs of people, and the turn that looks and moves.

A turn may run twice or die anywhere: every move is one conditional update, and what stands in a row
is computed anew. Nothing here talks to the cluster; what it holds back it holds by the state of
nodes (`LEDGER_STOPPED`), which requests wait for.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Final

from django.db import IntegrityError, transaction

from devices.dra.ledgerpools import Version, number
from devices.dra.ledgerreport import feature_of, shapes_of
from devices.dra.ledgerrollout import (
    HOLDS,
    MOVES,
    STOPPED_CODE,
    Decision,
    NodeSeen,
    Phase,
    Rollout,
    RolloutSeen,
    decide,
)
from devices.dra.ledgerstate import PASSING
from devices.dra.pools import PoolKey
from devices.dra.snapshot import Snapshot
from devices.dra.wording import some_of
from devices.ledger.exports import export
from devices.models import LedgerNode, LedgerPool, LedgerRollout
from portal import news
from portal.audit.record import record
from portal.errors import Invalid, Refused
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

TOPIC: Final = "ledger"
LONGEST_SOAK: Final = timedelta(days=30)
LONGEST_WHY: Final = 240
MOST_CANARIES: Final = 100


class RolloutNotNow(Refused):
    """The rollout is not in a phase in which this can be done; facts name the phase."""

    code = "LEDGER_ROLLOUT_NOT_NOW"
    http_status = 409


def current() -> LedgerRollout | None:
    """The rollout that is open."""
    return LedgerRollout.objects.exclude(phase=Phase.ENDED.value).first()


def start(
    *,
    access: PlatformAccess,
    canaries: Collection[str],
    soak: timedelta,
    request_id: str,
    now: datetime,
) -> LedgerRollout:
    """Says which nodes come first, and how long they are watched before the others follow.

    Raises `NotPermitted`, `Invalid` (canaries, soak), and `RolloutNotNow` while one is open.
    """
    access.require(PlatformAct.FREEZE)
    names = sorted({name.strip() for name in canaries if name.strip()})
    wrong = {}
    if not 0 < len(names) <= MOST_CANARIES:
        wrong["canaries"] = f"Name 1 to {MOST_CANARIES} nodes."
    else:
        known = set(LedgerNode.objects.filter(node__in=names).values_list("node", flat=True))
        if missing := [name for name in names if name not in known]:
            wrong["canaries"] = f"The ledger knows no node {some_of(missing, 4)}."
    if not timedelta(0) <= soak <= LONGEST_SOAK:
        wrong["soak"] = "From no time to 30 days."
    if wrong:
        raise Invalid("Nothing was started.", fields=wrong)
    try:
        with transaction.atomic():
            row = LedgerRollout.objects.create(
                canaries=names, soak=soak, since=now, started_at=now,
                why="It was started.", started_by=access.user.person,
            )  # fmt: skip
            _told("ledger.rollout started", row, access, request_id, now, nodes=names)
    except IntegrityError as error:
        raise RolloutNotNow("Another rollout is open; end it first.") from error
    return row


@transaction.atomic
def act(
    row: LedgerRollout,
    to: Phase,
    *,
    access: PlatformAccess,
    why: str,
    request_id: str,
    now: datetime,
) -> LedgerRollout:
    """Stops it, resumes it (to canary), or ends it. The same twice is once.

    Raises `NotPermitted`, `Invalid` (why), and `RolloutNotNow`.
    """
    access.require(PlatformAct.FREEZE)
    why = why.strip()
    if not 0 < len(why) <= LONGEST_WHY:
        text = f"Say why, in at most {LONGEST_WHY} characters, for the audit."
        raise Invalid("Nothing was done.", fields={"why": text})
    row = LedgerRollout.objects.select_for_update().get(pk=row.pk)
    was = Phase(row.phase)
    if was is to:
        return row
    if to not in MOVES[was] or (to is Phase.CANARY and was is not Phase.REPAIRED):
        raise RolloutNotNow(f"It is {was}; that cannot be done now.", phase=was.value)
    _move(row, Decision(to, why), now, access.user.person)
    _told(f"ledger.rollout {to}", row, access, request_id, now, before=was.value, why=why)
    return row


def held_nodes(snapshot: Snapshot) -> frozenset[str]:
    """Nodes that requests wait for because a rollout is stopped; one query."""
    row = current()
    if row is None or Phase(row.phase) not in HOLDS:
        return frozenset()
    return _reached(row, snapshot)


def turn(snapshot: Snapshot, now: datetime) -> LedgerRollout | None:
    """Looks at the open rollout, and moves it where that follows from what is seen."""
    row = current()
    if row is None:
        return None
    if row.phase == Phase.STOPPED.value and not row.digest:
        _write_out(row, snapshot, now)
    decision = decide(_spec(row), _seen(row, snapshot), now)
    with transaction.atomic():
        held = LedgerRollout.objects.select_for_update().get(pk=row.pk)
        if held.phase != row.phase:
            return held  # a person was quicker; the next turn looks afresh
        if (decision.phase.value, decision.why, list(decision.waits)) == (
            held.phase, held.why, held.waits,
        ):  # fmt: skip
            return held
        _move(held, decision, now, None)
    return held


def _move(row: LedgerRollout, decision: Decision, now: datetime, person: uuid.UUID | None) -> None:
    before = row.phase
    row.why, row.waits = decision.why, [text[:400] for text in decision.waits]
    if decision.phase.value != before:
        row.phase, row.since = decision.phase.value, now
        if decision.phase is Phase.WIDE:
            row.wide = True
        if decision.phase is Phase.CANARY:
            row.wide = False
        if decision.phase is Phase.STOPPED and before != Phase.REPAIRED.value:
            row.stopped_at, row.digest, row.lines, row.floors = now, "", 0, []
        row.moves.create(frm=before, to=row.phase, at=now, why=decision.why, person=person)
    row.save()
    news.publish([TOPIC], tenant=news.PLATFORM)


def _write_out(row: LedgerRollout, snapshot: Snapshot, now: datetime) -> None:
    """Notes what the log comes to at the stop, and the versions that were published then."""
    header = json.loads(next(iter(export(None, row.stopped_at or now))))
    floors = [[*key, *version] for key, version in _versions(row, snapshot).items() if version]
    LedgerRollout.objects.filter(pk=row.pk, digest="").update(
        digest=header["digest"], lines=header["lines"], floors=floors
    )
    row.refresh_from_db()


def _spec(row: LedgerRollout) -> Rollout:
    return Rollout(
        Phase(row.phase), row.since, tuple(row.canaries), row.soak,
        {(one[0], one[1]): Version(*one[2:]) for one in row.floors}, bool(row.digest),
    )  # fmt: skip


def _seen(row: LedgerRollout, snapshot: Snapshot) -> RolloutSeen:
    shapes = shapes_of(snapshot)
    names = _costly(snapshot) | frozenset(row.canaries)
    if Phase(row.phase) in HOLDS:
        names = _reached(row, snapshot)
    states = {one.node: one for one in LedgerNode.objects.filter(node__in=names)}
    found = {}
    for name in names:
        state = states.get(name)
        codes = [code for code, _ in state.reasons if code != STOPPED_CODE] if state else []
        found[name] = NodeSeen(
            feature_of(snapshot.node(name), shapes),
            safe=state is not None and not codes,
            unsafe=any(code not in PASSING for code in codes),
            code=codes[0] if codes else "",
        )
    return RolloutSeen(found, _versions(row, snapshot))


def _versions(row: LedgerRollout, snapshot: Snapshot) -> dict[PoolKey, Version | None]:
    """Of slice pools whose devices cost something on the rollout's nodes: what is published."""
    nodes = _reached(row, snapshot)
    newest: dict[PoolKey, int] = {}
    for piece in snapshot.slices:
        if piece.reach.node_name in nodes and any(device.node_shares for device in piece.devices):
            key = (piece.driver, piece.pool)
            newest[key] = max(newest.get(key, 0), number(piece.version))
    states = {(one.driver, one.pool): one for one in LedgerPool.objects.all()}
    found: dict[PoolKey, Version | None] = {(one[0], one[1]): None for one in row.floors}
    for key, resource_version in newest.items():
        state = states.get(key)
        found[key] = Version(
            state.epoch if state else 1, state.generation if state else 0, resource_version
        )
    return found


def _reached(row: LedgerRollout, snapshot: Snapshot) -> frozenset[str]:
    return frozenset(row.canaries) | (_costly(snapshot) if row.wide else frozenset())


def _costly(snapshot: Snapshot) -> frozenset[str]:
    """Nodes of which some device costs something."""
    return frozenset(_named(snapshot))


def _named(snapshot: Snapshot) -> Iterator[str]:
    for piece in snapshot.slices:
        if piece.reach.node_name and any(device.node_shares for device in piece.devices):
            yield piece.reach.node_name


def _told(
    action: str,
    row: LedgerRollout,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
    **facts: object,
) -> None:
    record(
        action=action, subject=f"rollout {row.public_id}", request_id=request_id, at=now,
        person=access.user.person, facts=facts,
    )  # fmt: skip
