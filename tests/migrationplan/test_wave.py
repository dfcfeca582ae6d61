"""What a wave does next: a table of cases, and what holds from any phase with any observation."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from migrationplan.gates import GateVerdict, Outcome
from migrationplan.phases import (
    Audience,
    Code,
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
    diagram,
)
from migrationplan.wave import decide
from migrationplan.windows import Frozen, Window

#: A Monday.
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
DOCS = Path(__file__).parents[2] / "docs" / "plans.md"
NIGHTS = Window(frozenset({0, 1, 2, 3}), time(22), time(4), "Europe/Berlin")
TRAIN = Holder("lumen/train-7", "job train-7", ends=NOW + timedelta(hours=2))
MONTH = timedelta(days=30)
RETRY = Holder("lumen/sweep-1", "job sweep-1", retryable=True)


def a_wave(phase: Phase = Phase.RUNNING, **fields: Any) -> Wave:
    rules = Rules(**{name: fields.pop(name) for name in Rules.__slots__ if name in fields})
    given = {"since": NOW, "leave": Leave.GIVEN, **fields}
    return Wave(rules=rules, phase=phase, **given)


def node(number: int, stand: Stand = Stand.WAITING, **fields: Any) -> Seen:
    return Seen(f"n{number}", stand, **{"source": stand is Stand.WAITING, **fields})


def saw(*nodes: Seen, **fields: Any) -> Observation:
    return Observation(nodes=nodes, **{"expected": len(nodes), **fields})


THREE_OF_EIGHT = (
    *(node(number, Stand.CONVERTED) for number in range(3)),
    node(3, Stand.MOVING, holders=(TRAIN,)),
    *(node(number) for number in range(4, 8)),
)
FAILED = GateVerdict("Prepare time, p95", Outcome.FAIL, "13.4 s, at most 9.6 s")
UNSURE = GateVerdict("Claim to Ready, p95", Outcome.INCONCLUSIVE, "11 of 30 samples")
SILENT = GateVerdict("Useful device time", Outcome.NONE, "no reading yet")
HOLIDAYS = Frozen(NOW - timedelta(days=1), NOW + timedelta(days=20), "Year's end")
CONVERTED = saw(node(1, Stand.CONVERTED), node(2, Stand.CONVERTED))
SOAKED: dict[str, Any] = {"phase": Phase.SOAKING, "since": NOW - timedelta(hours=24)}


@pytest.mark.parametrize(
    ("wave", "seen", "move", "code", "start", "words"),
    [
        # --- before it runs ---
        pytest.param(
            a_wave(Phase.DRAFT, leave=Leave.NOT_ASKED), saw(), None, None, None,
            "a draft: nothing happens until it is submitted", id="a draft waits",
        ),
        pytest.param(
            a_wave(Phase.DRAFT, leave=Leave.ASKED), saw(), Phase.IN_REVIEW, None, None,
            "waits for its approvals", id="a draft is submitted",
        ),
        pytest.param(
            a_wave(Phase.DRAFT), saw(), Phase.APPROVED, None, None, "no approval is needed",
            id="a draft that needs no approval",
        ),
        pytest.param(
            a_wave(Phase.IN_REVIEW, leave=Leave.ASKED, leave_words="1 of 2 approvals"), saw(),
            None, None, None, "1 of 2 approvals", id="in review it waits",
        ),
        pytest.param(
            a_wave(Phase.IN_REVIEW), saw(), Phase.APPROVED, None, None, "approved", id="approved",
        ),
        pytest.param(
            a_wave(Phase.IN_REVIEW, leave=Leave.REFUSED, leave_words="Sent back: too wide"), saw(),
            Phase.DRAFT, None, None, "Sent back: too wide", id="sent back",
        ),
        pytest.param(
            a_wave(Phase.APPROVED, leave=Leave.NOT_ASKED, leave_words="nodes at once 1 → 2"), saw(),
            Phase.DRAFT, Code.NO_LEAVE, None, "nodes at once 1 → 2", id="changed after approval",
        ),
        pytest.param(
            a_wave(Phase.APPROVED), saw(node(1), before=("1 Canary",)), None, None, None,
            "starts after 1 Canary", id="waits for the wave before",
        ),
        pytest.param(
            a_wave(Phase.APPROVED, windows=(NIGHTS,)), saw(node(1)), None, None, None,
            "next node may start Mon 22:00 CET", id="waits for its window",
        ),
        pytest.param(
            a_wave(Phase.APPROVED), saw(node(1), conflicts=("n9",)), None, None, None,
            "does not start: two owners on n9", id="does not start beside a conflict",
        ),
        pytest.param(
            a_wave(Phase.APPROVED), saw(node(1)), Phase.RUNNING, None, None,
            "approved, and its time has come", id="runs",
        ),
        pytest.param(
            a_wave(Phase.APPROVED, rehearsed_within=MONTH),
            saw(node(1), rehearsals=(Rehearsal("H100", NOW - 2 * MONTH),)), None, None, None,
            "does not start: the rollback is to be rehearsed within 30 days, and on H100 one last "
            "passed 2026-10-01", id="does not start when its rollback was rehearsed too long ago",
        ),
        pytest.param(
            a_wave(Phase.APPROVED, rehearsed_within=MONTH), saw(node(1)), None, None, None,
            "does not start: the rollback is to be rehearsed within 30 days, and nobody knows when "
            "it was", id="no news of rehearsals is not good news",
        ),
        pytest.param(
            a_wave(Phase.APPROVED, rehearsed_within=MONTH),
            saw(node(1), rehearsals=(Rehearsal("H100", NOW - MONTH),)), Phase.RUNNING, None, None,
            "approved, and its time has come", id="starts when its rollback was rehearsed in time",
        ),
        pytest.param(
            a_wave(rehearsed_within=MONTH),
            saw(node(1), rehearsals=(Rehearsal("L4", NOW), Rehearsal("H100"))), None, None, None,
            "nothing starts, the rollback is to be rehearsed within 30 days, and no rehearsal ever "
            "passed on H100: 0 of 1 converted", id="every node pool of the wave counts",
        ),
        pytest.param(
            a_wave(rehearsed_within=MONTH),
            saw(node(1), rehearsals=(Rehearsal("L4", NOW - MONTH / 2, failed=NOW),)), None, None,
            None, "nothing starts, the rollback is to be rehearsed within 30 days, and the last "
            "rehearsal on L4 failed: 0 of 1 converted", id="a later failure takes a rehearsal back",
        ),
        # --- running ---
        pytest.param(
            a_wave(), saw(node(1), node(2)), None, None, "n1", "n1 starts: 0 of 2 converted",
            id="the first node starts",
        ),
        pytest.param(
            a_wave(), saw(node(1, why_not="its object has no uid"), node(2)), None, None, "n2",
            "n2 starts: 0 of 2 converted", id="one that cannot is passed over",
        ),
        pytest.param(
            a_wave(), saw(node(1, why_not="its object has no uid")), None, None, None,
            "n1 cannot start, its object has no uid: 0 of 1 converted", id="and named at last",
        ),
        pytest.param(
            a_wave(), saw(node(1, source=False)), None, None, None,
            "n1 cannot start, its devices do not belong to the path that it is to leave: "
            "0 of 1 converted", id="never one that has another owner",
        ),
        pytest.param(
            a_wave(), saw(*THREE_OF_EIGHT), None, None, None,
            "next node may start when n3 is through: 3 of 8 converted, "
            "1 waits for job train-7 (about 2 h)", id="one after the other",
        ),
        pytest.param(
            a_wave(concurrency=2), saw(*THREE_OF_EIGHT), None, None, "n4",
            "n4 starts: 3 of 8 converted, 1 waits for job train-7 (about 2 h)", id="two at once",
        ),
        pytest.param(
            a_wave(windows=(replace(NIGHTS, begins=time(9), ends=time(10)),), concurrency=2),
            saw(*THREE_OF_EIGHT), None, None, None,
            "next node may start Tue 09:00 CET: 3 of 8 converted, "
            "1 waits for job train-7 (about 2 h)", id="the window has closed; begun ones finish",
        ),
        pytest.param(
            a_wave(concurrency=9), saw(*THREE_OF_EIGHT, calendar=(HOLIDAYS,)), None, None, None,
            "next node may start Sun 20 Dec 12:00 UTC (frozen: Year's end): 3 of 8 converted, "
            "1 waits for job train-7 (about 2 h)", id="the calendar beats everything",
        ),
        pytest.param(
            a_wave(), Observation(nodes=(node(1),), expected=2), None, None, None,
            "nothing starts, 1 of 2 nodes are seen: 0 of 2 converted", id="no news is not good",
        ),
        pytest.param(
            a_wave(), Observation(expected=0), None, None, None,
            "nothing starts, 0 of 0 nodes are seen: 0 of 0 converted", id="an empty list",
        ),
        pytest.param(
            a_wave(audience=Audience.RETRYABLE), saw(node(1, holders=(TRAIN,)),
            node(2, holders=(RETRY,))), None, None, "n2", "n2 starts: 0 of 2 converted",
            id="only where all work is retryable",
        ),
        pytest.param(
            a_wave(), saw(node(1, skipped="faulty"), node(2)), None, None, "n2",
            "n2 starts: 0 of 2 converted, 1 left out", id="one is left out",
        ),
        pytest.param(
            a_wave(), saw(node(1, Stand.CALLED, skipped="faulty"), node(2, Stand.CONVERTED)),
            Phase.SOAKING, None, None, "every node is through: 1 of 2 converted, "
            "a person is called to n1, 1 left out", id="left out, it is no error",
        ),
        pytest.param(
            a_wave(), saw(node(1, Stand.LOST), node(2, Stand.CONVERTED)), Phase.SOAKING, None, None,
            "every node is through: 1 of 2 converted", id="a machine that is gone holds nobody up",
        ),
        # --- what stops it ---
        pytest.param(
            a_wave(on_failure=OnFailure.ROLL_BACK), saw(node(1), conflicts=("n9",)), Phase.PAUSED,
            Code.CONFLICT, None, "two owners on n9", id="a conflict pauses, whatever the setting",
        ),
        pytest.param(
            a_wave(), saw(node(1), drift=("n1",)), Phase.PAUSED, Code.DRIFT, None,
            "not as they were proved: n1", id="drift pauses",
        ),
        pytest.param(
            a_wave(), saw(node(1), stale="no news for 5 min"), Phase.PAUSED, Code.STALE, None,
            "no news for 5 min", id="a stale mirror pauses",
        ),
        pytest.param(
            a_wave(), saw(node(1), away="the API does not answer", away_since=NOW), None, None,
            None, "nothing starts, the API does not answer: 0 of 1 converted", id="away a moment",
        ),
        pytest.param(
            a_wave(), saw(node(1), away="the API does not answer",
            away_since=NOW - timedelta(minutes=1)), Phase.PAUSED, Code.CLUSTER_AWAY, None,
            "the API does not answer", id="away too long",
        ),
        pytest.param(
            a_wave(), saw(node(1), gates=(FAILED,)), Phase.PAUSED, Code.GATE_FAILED, None,
            "Prepare time, p95 failed: 13.4 s, at most 9.6 s", id="a gate fails",
        ),
        pytest.param(
            a_wave(on_failure=OnFailure.ROLL_BACK), saw(node(1), gates=(FAILED,)),
            Phase.ROLLING_BACK, Code.GATE_FAILED, None,
            "Prepare time, p95 failed: 13.4 s, at most 9.6 s", id="a gate fails and it rolls back",
        ),
        pytest.param(
            a_wave(on_failure=OnFailure.ROLL_BACK),
            saw(node(1), gates=(FAILED,), calendar=(HOLIDAYS,)), Phase.PAUSED, Code.GATE_FAILED,
            None, "Prepare time, p95 failed: 13.4 s, at most 9.6 s "
            "(paused, not rolled back: the calendar is frozen)", id="not in the holidays",
        ),
        pytest.param(
            a_wave(), saw(node(1), gates=(replace(FAILED, trial=True),)), None, None, "n1",
            "n1 starts: 0 of 1 converted", id="a trial gate does not vote",
        ),
        pytest.param(
            a_wave(waived=frozenset({FAILED.name})), saw(node(1), gates=(FAILED,)), None, None,
            "n1", "n1 starts: 0 of 1 converted", id="a person let it pass",
        ),
        pytest.param(
            a_wave(), saw(node(1, Stand.CALLED), node(2)), Phase.PAUSED, Code.TOO_MANY_ERRORS,
            None, "1 failed, none may: n1", id="a node fails",
        ),
        pytest.param(
            a_wave(max_errors=1), saw(node(1, Stand.CALLED), node(2)), None, None, "n2",
            "n2 starts: 0 of 2 converted, a person is called to n1", id="one may fail",
        ),
        pytest.param(
            a_wave(leave=Leave.REFUSED, leave_words="olm took the approval back"), saw(node(1)),
            Phase.PAUSED, Code.NO_LEAVE, None, "olm took the approval back", id="leave is gone",
        ),
        pytest.param(
            a_wave(), saw(node(1), operator_gone="olm may not convert nodes any more"),
            Phase.PAUSED, Code.NOBODY_RUNS_IT, None, "olm may not convert nodes any more",
            id="nobody runs it",
        ),
        pytest.param(
            a_wave(pause="for the audit"), saw(node(1)), Phase.PAUSED, Code.BY_HAND, None,
            "for the audit", id="a person pauses",
        ),
        # --- soaking ---
        pytest.param(
            a_wave(Phase.SOAKING, soak=timedelta(hours=5)), CONVERTED, None, None, None,
            "soaks until Mon 17:00 UTC (about 5 h): 2 of 2 converted", id="soaks",
        ),
        pytest.param(
            a_wave(Phase.SOAKING, soak=timedelta(hours=5), soaked=timedelta(hours=5)), CONVERTED,
            Phase.DONE, None, None, "soaked, and no gate is against it: 2 of 2 converted",
            id="what was soaked before a pause counts",
        ),
        pytest.param(
            a_wave(**SOAKED), CONVERTED, Phase.DONE, None, None,
            "soaked, and no gate is against it: 2 of 2 converted", id="done",
        ),
        pytest.param(
            a_wave(**SOAKED), replace(CONVERTED, gates=(UNSURE,)), Phase.PAUSED,
            Code.GATE_INCONCLUSIVE, None, "Claim to Ready, p95 is inconclusive, a person decides: "
            "11 of 30 samples", id="too few samples are never a pass",
        ),
        pytest.param(
            a_wave(**SOAKED), replace(CONVERTED, gates=(SILENT,)), Phase.PAUSED,
            Code.GATE_INCONCLUSIVE, None, "Useful device time is inconclusive, a person decides: "
            "no reading yet", id="no reading is no pass",
        ),
        pytest.param(
            a_wave(**SOAKED, waived=frozenset({UNSURE.name})), replace(CONVERTED, gates=(UNSURE,)),
            Phase.DONE, None, None, "soaked, and no gate is against it: 2 of 2 converted",
            id="a person decided",
        ),
        pytest.param(
            a_wave(Phase.SOAKING), saw(node(1, Stand.CONVERTED), node(2)), Phase.RUNNING, None,
            None, "n2 is not through", id="a node is taken in again",
        ),
        # --- paused ---
        pytest.param(
            a_wave(Phase.PAUSED, paused_from=Phase.RUNNING, paused_why="drift"), saw(node(1)),
            None, None, None, "drift", id="paused, nothing starts",
        ),
        pytest.param(
            a_wave(Phase.PAUSED, paused_from=Phase.SOAKING, resume="looked at"), saw(node(1)),
            Phase.SOAKING, None, None, "looked at", id="resumed where it was",
        ),
        pytest.param(
            a_wave(Phase.PAUSED, paused_from=Phase.RUNNING, resume="on", leave=Leave.ASKED,
                   leave_words="0 of 1 approvals"), saw(node(1)),
            None, None, None, "resumes when it is approved: 0 of 1 approvals", id="no leave",
        ),
        pytest.param(
            a_wave(Phase.PAUSED, paused_from=Phase.ROLLING_BACK, resume="on", leave=Leave.REFUSED),
            saw(node(1)), Phase.ROLLING_BACK, None, None, "on", id="rolling back needs no leave",
        ),
        # --- rolling back ---
        pytest.param(
            a_wave(Phase.DONE, roll_back="tenants complain"), CONVERTED, Phase.ROLLING_BACK,
            Code.ROLLED_BY_HAND, None, "tenants complain", id="a wave that is done rolls back",
        ),
        pytest.param(
            a_wave(Phase.ROLLING_BACK), saw(node(1), node(2, Stand.RETURNED)), Phase.ROLLED_BACK,
            None, None, "2 of 2 nodes are where they were", id="all are back",
        ),
        pytest.param(
            a_wave(Phase.ROLLING_BACK), saw(node(1), node(2, Stand.RETURNING, holders=(TRAIN,))),
            None, None, None,
            "1 of 2 nodes are where they were; 1 waits for job train-7 (about 2 h)", id="they end",
        ),
        pytest.param(
            a_wave(Phase.ROLLING_BACK), saw(node(1, Stand.STUCK), node(2)), None, None, None,
            "1 of 2 nodes are where they were; at n1 a person has to look", id="stuck on the way",
        ),
    ],
)  # fmt: skip
def test_a_wave(
    wave: Wave, seen: Observation, move: Phase | None, code: Code | None, start: str | None,
    words: str,
) -> None:  # fmt: skip
    found = decide(wave, seen, NOW)
    assert (found.why, found.move, found.code, found.start) == (words, move, code, start)


def test_a_rollback_sends_back_what_has_left_and_takes_nothing_new() -> None:
    seen = saw(
        node(1, Stand.CONVERTED), node(2, Stand.MOVING), node(3, Stand.CALLED), node(4),
        node(5, Stand.MOVING, opening=True), node(6, Stand.LOST),
    )  # fmt: skip
    found = decide(a_wave(Phase.ROLLING_BACK), seen, NOW)
    assert found.back == ("n1", "n2", "n3") and found.reroute and found.start is None


def test_a_conflict_stays_frozen_until_it_is_over() -> None:
    paused = a_wave(Phase.PAUSED, paused_from=Phase.RUNNING)
    assert decide(paused, saw(node(1), conflicts=("n1",)), NOW).freeze
    assert not decide(paused, saw(node(1)), NOW).freeze


def test_nobody_is_ended_but_retryable_pods_and_only_with_leave() -> None:
    seen = saw(node(1, Stand.MOVING, holders=(TRAIN, RETRY)), node(2, holders=(RETRY,)))
    assert decide(a_wave(), seen, NOW).evict == ()
    assert decide(a_wave(evict_retryable=True), seen, NOW).evict == (RETRY.pod,)


def test_the_diagram_in_the_docs_is_the_table() -> None:
    assert f"```mermaid\n{diagram()}\n```" in DOCS.read_text()
