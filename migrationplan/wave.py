"""What a wave does next: which phase, which node, and one sentence why. Pure.

A decision moves, or asks for acts, never both; acts say how things should be and are asked for
again until they are seen. So a lost or a doubled turn changes nothing. A node starts only while its
devices belong to the path that it leaves; what its own way is, and that no device has two owners on
it, is `node.decide`'s. No news is not good news: whoever is not seen is waited for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from devices.dra.wording import some_of
from migrationplan.gates import GateVerdict, Outcome
from migrationplan.phases import (
    AT_HOME,
    ERRORS,
    Audience,
    Code,
    Decision,
    Holder,
    Leave,
    Observation,
    OnFailure,
    Phase,
    Rehearsal,
    Rules,
    Seen,
    Stand,
    Wave,
)
from migrationplan.windows import about, frozen_by, is_open, may_start, said

#: So long the cluster may not answer before a wave pauses itself; nothing starts meanwhile.
AWAY_PATIENCE: Final = timedelta(seconds=60)
LONGEST_SLEEP: Final = timedelta(seconds=30)
#: Nodes that one turn sends back; the next turn sends more.
BACK_AT_ONCE: Final = 20
#: Names that a sentence carries.
NAMED: Final = 3
#: These take a place among the nodes at once.
BUSY: Final = frozenset({Stand.MOVING, Stand.RETURNING, Stand.UNKNOWN})


def decide(wave: Wave, seen: Observation, now: datetime) -> Decision:
    """What comes next, from any phase and with any observation."""
    if wave.roll_back and wave.phase not in (Phase.ROLLING_BACK, Phase.ROLLED_BACK):
        return Decision(wave.roll_back, move=Phase.ROLLING_BACK, code=Code.ROLLED_BY_HAND)
    if wave.pause and wave.phase in PAUSABLE:
        return Decision(wave.pause, move=Phase.PAUSED, code=Code.BY_HAND)
    return RULES[wave.phase](wave, seen, now)


PAUSABLE: Final = frozenset(
    {Phase.IN_REVIEW, Phase.APPROVED, Phase.RUNNING, Phase.SOAKING, Phase.ROLLING_BACK}
)


# --- one rule per phase ---


def _draft(wave: Wave, seen: Observation, now: datetime) -> Decision:
    if wave.leave is Leave.ASKED:
        return Decision("waits for its approvals", move=Phase.IN_REVIEW)
    if wave.leave is Leave.GIVEN:
        return Decision(wave.leave_words or "no approval is needed", move=Phase.APPROVED)
    return Decision(wave.leave_words or "a draft: nothing happens until it is submitted")


def _in_review(wave: Wave, seen: Observation, now: datetime) -> Decision:
    if wave.leave is Leave.GIVEN:
        return Decision(wave.leave_words or "approved", move=Phase.APPROVED)
    if wave.leave is not Leave.ASKED:
        return Decision(wave.leave_words or "nobody asks for approval any more", move=Phase.DRAFT)
    return Decision(wave.leave_words or "waits for its approvals")


def _approved(wave: Wave, seen: Observation, now: datetime) -> Decision:
    """Waits for the waves before it, the window and the calendar, then runs."""
    if wave.leave is not Leave.GIVEN:
        why = wave.leave_words or "its approval is gone"
        return Decision(why, move=Phase.DRAFT, code=Code.NO_LEAVE)
    if seen.before:
        return Decision(f"starts after {_list(seen.before)}", recheck=LONGEST_SLEEP)
    for trouble in (seen.away, seen.stale, seen.operator_gone):
        if trouble:
            return Decision(f"does not start: {trouble}")
    if seen.conflicts:
        return Decision(f"does not start: two owners on {_list(seen.conflicts)}")
    for lacking in (_unseen(seen), unrehearsed(wave.rules, seen.rehearsals, now)):
        if lacking:
            return Decision(f"does not start: {lacking}", recheck=LONGEST_SLEEP)
    if shut := _shut(wave, seen, now):
        return Decision(shut, recheck=_sleep(wave, seen, now))
    return Decision("approved, and its time has come", move=Phase.RUNNING)


def _running(wave: Wave, seen: Observation, now: datetime) -> Decision:
    if stopped := _stops(wave, seen, now):
        return stopped
    progress = _progress(seen, now)
    if waits := seen.away or _unseen(seen):
        return Decision(f"nothing starts, {waits}: {progress}")
    left = [one for one in seen.nodes if not _finished(one)]
    if not left:
        return Decision(f"every node is through: {progress}", move=Phase.SOAKING)
    evict = _evictable(wave, seen)
    busy = [one for one in left if one.stand in BUSY]
    waiting = [one for one in left if one.stand is Stand.WAITING]
    if shut := _shut(wave, seen, now):
        words = shut if waiting else "no node is left to start"
        return Decision(f"{words}: {progress}", evict=evict, recheck=_sleep(wave, seen, now))
    if not waiting:
        return Decision(f"no node is left to start: {progress}", evict=evict)
    if lacking := unrehearsed(wave.rules, seen.rehearsals, now):
        return Decision(f"nothing starts, {lacking}: {progress}", evict=evict)
    if len(busy) >= wave.rules.concurrency:
        names = _list([one.node for one in busy])
        words = f"next node may start when {names} {'is' if len(busy) == 1 else 'are'} through"
        return Decision(f"{words}: {progress}", evict=evict)
    ready = next((one for one in waiting if not _stays(wave, one)), None)
    if ready is None:
        stays = f"{waiting[0].node} cannot start, {_stays(wave, waiting[0])}"
        more = f", and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        return Decision(f"{stays}{more}: {progress}", evict=evict)
    return Decision(f"{ready.node} starts: {progress}", start=ready.node, evict=evict)


def _soaking(wave: Wave, seen: Observation, now: datetime) -> Decision:
    """Nothing happens, and what the gates say counts; its time stands still while paused."""
    if stopped := _stops(wave, seen, now):
        return stopped
    progress = _progress(seen, now)
    if waits := seen.away or _unseen(seen):
        return Decision(f"soaks on, {waits}: {progress}")
    if left := [one.node for one in seen.nodes if not _finished(one)]:
        return Decision(f"{_list(left)} is not through", move=Phase.RUNNING)
    ends = wave.since + wave.rules.soak - wave.soaked
    if now < ends:
        zone = _zone(wave)
        until = f"soaks until {said(ends, now, zone)} ({about(ends - now)})"
        return Decision(f"{until}: {progress}", recheck=min(ends - now, LONGEST_SLEEP))
    open_gates = [
        gate for gate in _voting(wave, seen) if gate.verdict in (Outcome.INCONCLUSIVE, Outcome.NONE)
    ]
    if open_gates:
        first = open_gates[0]
        why = f"{first.name} is inconclusive, a person decides: {first.sentence}"
        return Decision(why, move=Phase.PAUSED, code=Code.GATE_INCONCLUSIVE)
    return Decision(f"soaked, and no gate is against it: {progress}", move=Phase.DONE)


def _paused(wave: Wave, seen: Observation, now: datetime) -> Decision:
    """Begun nodes finish by themselves; nothing starts until a person resumes it."""
    back_to = wave.paused_from or Phase.ROLLING_BACK
    if wave.resume:
        leave_counts = back_to in (Phase.APPROVED, Phase.RUNNING, Phase.SOAKING)
        if not leave_counts or wave.leave is Leave.GIVEN:
            return Decision(wave.resume, move=back_to)
        words = wave.leave_words or "it is not approved"
        return Decision(f"resumes when it is approved: {words}", freeze=bool(seen.conflicts))
    why = wave.paused_why or "paused"
    return Decision(why, freeze=bool(seen.conflicts), recheck=LONGEST_SLEEP)


def _rolling_back(wave: Wave, seen: Observation, now: datetime) -> Decision:
    """Takes nothing new, ends nothing that runs, and sends every node back as it empties."""
    if waits := seen.away or seen.stale or _unseen(seen):
        return Decision(f"goes on rolling back when the cluster is heard: {waits}", reroute=True)
    out = [one for one in seen.nodes if one.stand not in AT_HOME]
    home = len(seen.nodes) - len(out)
    told = f"{home} of {len(seen.nodes)} nodes are where they were"
    if not out:
        return Decision(told, move=Phase.ROLLED_BACK)
    if seen.operator_gone:
        return Decision(f"{told}; nobody may turn the others: {seen.operator_gone}", reroute=True)
    turnable = (Stand.MOVING, Stand.CALLED, Stand.CONVERTED)
    back = tuple(one.node for one in out if one.stand in turnable and not one.opening)
    stuck = [one.node for one in out if one.stand in (Stand.STUCK, Stand.CONFLICT)]
    if stuck:
        told += f"; at {_list(stuck)} a person has to look"
    elif waits := _waits(seen.nodes, now):
        told += f"; {waits}"
    return Decision(told, back=back[:BACK_AT_ONCE], reroute=True)


def _ended(wave: Wave, seen: Observation, now: datetime) -> Decision:
    return Decision("it has ended", recheck=timedelta(0))


Rule = Callable[[Wave, Observation, datetime], Decision]
RULES: Final[Mapping[Phase, Rule]] = {
    Phase.DRAFT: _draft,
    Phase.IN_REVIEW: _in_review,
    Phase.APPROVED: _approved,
    Phase.RUNNING: _running,
    Phase.SOAKING: _soaking,
    Phase.DONE: _ended,
    Phase.PAUSED: _paused,
    Phase.ROLLING_BACK: _rolling_back,
    Phase.ROLLED_BACK: _ended,
}


# --- what stops a wave that is under way ---


def _stops(wave: Wave, seen: Observation, now: datetime) -> Decision | None:
    if seen.conflicts:
        where = f"two owners on {_list(seen.conflicts)}"
        return Decision(where, move=Phase.PAUSED, code=Code.CONFLICT)
    if wave.leave is not Leave.GIVEN:
        why = wave.leave_words or "it is not approved any more"
        return Decision(why, move=Phase.PAUSED, code=Code.NO_LEAVE)
    if seen.operator_gone:
        return Decision(seen.operator_gone, move=Phase.PAUSED, code=Code.NOBODY_RUNS_IT)
    if seen.away_since is not None and now - seen.away_since >= AWAY_PATIENCE:
        return Decision(seen.away, move=Phase.PAUSED, code=Code.CLUSTER_AWAY)
    if seen.stale:
        return Decision(seen.stale, move=Phase.PAUSED, code=Code.STALE)
    if seen.drift:
        words = f"not as they were proved: {_list(seen.drift)}"
        return Decision(words, move=Phase.PAUSED, code=Code.DRIFT)
    for gate in _voting(wave, seen):
        if gate.verdict is Outcome.FAIL:
            why = f"{gate.name} failed: {gate.sentence}"
            return _fails(wave, seen, now, why, Code.GATE_FAILED)
    wrong = [one.node for one in seen.nodes if one.stand in ERRORS and not one.skipped]
    if len(wrong) > wave.rules.max_errors:
        most = wave.rules.max_errors
        why = f"{len(wrong)} failed, {most or 'none'} may: {_list(wrong)}"
        return _fails(wave, seen, now, why, Code.TOO_MANY_ERRORS)
    return None


def _fails(wave: Wave, seen: Observation, now: datetime, why: str, code: Code) -> Decision:
    """By the wave's setting. The calendar keeps a wave from rolling back by itself; people may."""
    back = wave.rules.on_failure is OnFailure.ROLL_BACK
    if back and frozen_by(seen.calendar, now) is not None:
        return Decision(
            f"{why} (paused, not rolled back: the calendar is frozen)",
            move=Phase.PAUSED,
            code=code,
        )
    return Decision(why, move=Phase.ROLLING_BACK if back else Phase.PAUSED, code=code)


def _voting(wave: Wave, seen: Observation) -> list[GateVerdict]:
    return [gate for gate in seen.gates if not gate.trial and gate.name not in wave.waived]


def _unseen(seen: Observation) -> str:
    """A sentence where the turn saw fewer nodes than the wave has."""
    if seen.expected == 0 or len(seen.nodes) != seen.expected:
        return f"{len(seen.nodes)} of {seen.expected} nodes are seen"
    return ""


def unrehearsed(rules: Rules, rehearsals: Sequence[Rehearsal], now: datetime) -> str:
    """Where the rollback was not rehearsed as lately as the wave asks, as a clause; empty where it
    was, or where it is not asked. A rehearsal that failed later than one passed takes it back.
    """
    within = rules.rehearsed_within
    if not within:
        return ""
    asked = f"the rollback is to be rehearsed within {within.days} days"
    if not rehearsals:
        return f"{asked}, and nobody knows when it was"
    for one in sorted(rehearsals, key=lambda one: (one.passed is not None, one.pool)):
        if one.passed is None:
            return f"{asked}, and no rehearsal ever passed on {one.pool}"
        if one.failed is not None and one.failed > one.passed:
            return f"{asked}, and the last rehearsal on {one.pool} failed"
        if now - one.passed > within:
            return f"{asked}, and on {one.pool} one last passed {one.passed:%Y-%m-%d}"
    return ""


# --- which node, and when ---


def _finished(one: Seen) -> bool:
    """Whether the wave is through with this node; one that a person is called to is not."""
    if one.skipped:
        return one.stand not in BUSY
    return one.stand in (Stand.CONVERTED, Stand.LOST, Stand.RETURNED)


def _stays(wave: Wave, one: Seen) -> str:
    """Why a waiting node cannot start now, as a clause; empty where it can."""
    if one.why_not:
        return one.why_not
    if not one.source:
        return "its devices do not belong to the path that it is to leave"
    if wave.rules.audience is Audience.RETRYABLE:
        others = [holder.words for holder in one.holders if not holder.retryable]
        if others:
            return f"this wave is for retryable work and {_list(others)} is not"
    return ""


def _evictable(wave: Wave, seen: Observation) -> tuple[str, ...]:
    """Pods that the wave has leave to end: retryable ones on nodes that wait for them."""
    if not wave.rules.evict_retryable:
        return ()
    return tuple(
        holder.pod
        for one in seen.nodes
        if one.stand is Stand.MOVING and not one.skipped
        for holder in one.holders
        if holder.retryable
    )


def _shut(wave: Wave, seen: Observation, now: datetime) -> str:
    """Why no node may start now, with the moment at which one may; empty where one may."""
    frozen = frozen_by(seen.calendar, now)
    if frozen is None and is_open(wave.rules.windows, now):
        return ""
    moment = may_start(wave.rules.windows, seen.calendar, now)
    at = f"may start {said(moment, now, _zone(wave))}" if moment else "has no time to start"
    return f"next node {at}" + (f" (frozen: {frozen.reason})" if frozen else "")


def _sleep(wave: Wave, seen: Observation, now: datetime) -> timedelta:
    moment = may_start(wave.rules.windows, seen.calendar, now)
    if moment is None or moment <= now:
        return LONGEST_SLEEP
    return min(moment - now, LONGEST_SLEEP)


def _zone(wave: Wave) -> str:
    return wave.rules.windows[0].zone if wave.rules.windows else "UTC"


# --- words ---


def _progress(seen: Observation, now: datetime) -> str:
    """ "3 of 8 converted, 1 waits for job train-7 (about 2 h)"."""
    through = sum(one.stand is Stand.CONVERTED for one in seen.nodes)
    parts = [f"{through} of {seen.expected} converted"]
    if waits := _waits(seen.nodes, now):
        parts.append(waits)
    if called := [one.node for one in seen.nodes if one.stand in (Stand.CALLED, Stand.STUCK)]:
        parts.append(f"a person is called to {_list(called)}")
    if left_out := sum(bool(one.skipped) for one in seen.nodes):
        parts.append(f"{left_out} left out")
    return ", ".join(parts)


def _waits(nodes: Iterable[Seen], now: datetime) -> str:
    """Whom nodes on their way wait for, and how long that may take."""
    moving = [one for one in nodes if one.stand in (Stand.MOVING, Stand.RETURNING)]
    held = [one for one in moving if one.holders]
    parts = []
    if free := len(moving) - len(held):
        parts.append(f"{free} under way")
    holders = [holder for one in held for holder in one.holders]
    if len(holders) == 1:
        parts.append(f"1 waits for {holders[0].words} ({_ends(holders, now)})")
    elif holders:
        many = f"{len(held)} {'wait' if len(held) > 1 else 'waits'} for {len(holders)} Pods"
        parts.append(f"{many} ({_ends(holders, now)})")
    return ", ".join(parts)


def _ends(holders: Sequence[Holder], now: datetime) -> str:
    known = [holder.ends for holder in holders if holder.ends is not None]
    if len(known) < len(holders):
        return "no end known"
    return about(max(known) - now)


def _list(names: Sequence[str]) -> str:
    """ "a, b and c", "a, b, c and 2 more"."""
    if not 1 < len(names) <= NAMED:
        return some_of(names, NAMED)
    return f"{', '.join(names[:-1])} and {names[-1]}"
