"""What holds of a wave from any phase with any observation, and whatever becomes of its turns."""

from __future__ import annotations

from dataclasses import replace
from datetime import time, timedelta

from hypothesis import given, settings
from hypothesis import strategies as some

from migrationplan.gates import GateVerdict, Outcome
from migrationplan.phases import (
    AT_HOME,
    MOVES,
    Audience,
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
from migrationplan.wave import BACK_AT_ONCE, decide
from migrationplan.windows import Frozen
from tests.migrationplan.test_wave import NIGHTS, NOW, a_wave, node, saw

TEXTS = some.sampled_from(["", "because"])
HOLDERS = some.lists(
    some.builds(
        Holder, pod=some.sampled_from(["a/x", "a/y"]), words=some.just("Pod"),
        retryable=some.booleans(),
        ends=some.none() | some.integers(-5, 500).map(lambda n: NOW + timedelta(minutes=n)),
    ),
    max_size=2,
).map(tuple)  # fmt: skip
GATES = some.builds(
    GateVerdict, name=some.sampled_from(["a", "b"]), verdict=some.sampled_from(Outcome),
    sentence=some.just("s"), trial=some.booleans(),
)  # fmt: skip
CALENDAR = some.lists(
    some.integers(-3, 3).map(
        lambda n: Frozen(NOW + timedelta(days=n), NOW + timedelta(days=n + 2), "frozen")
    ),
    max_size=2,
).map(tuple)
REHEARSALS = some.builds(
    Rehearsal, pool=some.just("H100"),
    passed=some.sampled_from([None, NOW - timedelta(days=9), NOW - timedelta(days=40)]),
    failed=some.sampled_from([None, NOW - timedelta(days=1)]),
)  # fmt: skip
RULES = some.builds(
    Rules, audience=some.sampled_from(Audience), concurrency=some.integers(1, 3),
    max_errors=some.integers(0, 2), soak=some.sampled_from([timedelta(0), timedelta(hours=2)]),
    windows=some.sampled_from([(), (NIGHTS,), (replace(NIGHTS, begins=time(10), ends=time(20)),)]),
    on_failure=some.sampled_from(OnFailure), evict_retryable=some.booleans(),
    rehearsed_within=some.sampled_from([timedelta(0), timedelta(0), timedelta(days=30)]),
)  # fmt: skip
WAVES = some.builds(
    Wave, rules=RULES, phase=some.sampled_from(Phase), since=some.just(NOW - timedelta(hours=1)),
    leave=some.sampled_from(Leave), leave_words=TEXTS,
    paused_from=some.sampled_from(
        [None, Phase.IN_REVIEW, Phase.APPROVED, Phase.RUNNING, Phase.SOAKING, Phase.ROLLING_BACK]
    ),
    paused_why=TEXTS, pause=TEXTS, resume=TEXTS, roll_back=TEXTS,
    waived=some.frozensets(some.sampled_from(["a", "b"])),
)  # fmt: skip


@some.composite
def observations(draw: some.DrawFn) -> Observation:
    nodes = tuple(
        Seen(
            f"n{number}", draw(some.sampled_from(Stand)), source=draw(some.booleans()),
            why_not=draw(TEXTS), skipped=draw(TEXTS), holders=draw(HOLDERS),
            opening=draw(some.booleans()),
        )
        for number in range(draw(some.integers(0, 5)))
    )  # fmt: skip
    away = draw(some.sampled_from([None, 0, 100]))
    return Observation(
        nodes=nodes,
        expected=draw(some.sampled_from([len(nodes), len(nodes), len(nodes) + 1])),
        away="away" if away is not None else "",
        away_since=None if away is None else NOW - timedelta(seconds=away),
        stale=draw(TEXTS),
        conflicts=draw(some.sampled_from([(), (), ("n0",)])),
        drift=draw(some.sampled_from([(), (), ("n1",)])),
        gates=draw(some.lists(GATES, max_size=2).map(tuple)),
        calendar=draw(CALENDAR),
        before=draw(some.sampled_from([(), (), ("1 Canary",)])),
        operator_gone=draw(TEXTS),
        rehearsals=draw(some.lists(REHEARSALS, max_size=2).map(tuple)),
    )


@settings(max_examples=1500)
@given(wave=WAVES, seen=observations())
def test_from_any_phase_with_any_observation(wave: Wave, seen: Observation) -> None:
    found = decide(wave, seen, NOW)
    by_name = {one.node: one for one in seen.nodes}
    acts = (found.start, *found.back, *found.evict)
    assert found.why, "every decision has its sentence"
    if found.move is not None:
        assert found.move in MOVES[wave.phase], "only moves of the table"
        assert not any(acts) and not found.freeze and not found.reroute, "moves or asks, never both"
    assert decide(wave, seen, NOW) == found, "looking twice changes nothing"

    if found.start is not None:
        one = by_name[found.start]
        assert wave.phase is Phase.RUNNING and wave.leave is Leave.GIVEN
        assert one.stand is Stand.WAITING and one.source and not one.why_not and not one.skipped
        assert not seen.conflicts and not seen.drift and not seen.stale and not seen.away
        assert not any(one.begins <= NOW < one.ends for one in seen.calendar)
        if wave.rules.rehearsed_within:
            assert seen.rehearsals and all(
                one.passed == NOW - timedelta(days=9) and one.failed is None
                for one in seen.rehearsals
            )
        busy = [one for one in seen.nodes if one.stand in (Stand.MOVING, Stand.RETURNING)]
        assert len([one for one in busy if not one.skipped]) < wave.rules.concurrency
        assert found.start not in found.back
    for name in found.back:
        assert wave.phase is Phase.ROLLING_BACK and len(found.back) <= BACK_AT_ONCE
        assert by_name[name].stand in (Stand.MOVING, Stand.CALLED, Stand.CONVERTED)
    if found.evict:
        assert wave.rules.evict_retryable and wave.phase is Phase.RUNNING
        allowed = {h.pod for one in seen.nodes for h in one.holders if h.retryable}
        assert set(found.evict) <= allowed, "only those that declare themselves retryable"


@given(wave=WAVES, seen=observations())
def test_there_is_always_a_way_to_rolled_back(wave: Wave, seen: Observation) -> None:
    """Whatever stands in its way: one wish, and news of the nodes."""
    if wave.phase is Phase.ROLLED_BACK:
        return
    wave = replace(wave, roll_back="back", pause="", resume="")
    nodes = list(seen.nodes) or [node(0)]
    for _ in range(12):
        seen = Observation(
            nodes=tuple(nodes), expected=len(nodes), conflicts=seen.conflicts, gates=seen.gates,
            calendar=seen.calendar, drift=seen.drift,
        )  # fmt: skip
        found = decide(wave, seen, NOW)
        if found.move is not None:
            wave = replace(wave, phase=found.move, roll_back="")
        if wave.phase is Phase.ROLLED_BACK:
            assert all(one.stand in AT_HOME for one in nodes)
            return
        nodes = [_goes_back(one, one.node in found.back) for one in nodes]
    raise AssertionError(f"{wave.phase}: {found.why}")


def _goes_back(one: Seen, asked: bool) -> Seen:
    """What a cluster and a person do of it in a while."""
    if asked or one.stand in (Stand.STUCK, Stand.CONFLICT, Stand.UNKNOWN):
        return replace(one, stand=Stand.RETURNING, holders=())
    if one.opening and one.stand in (Stand.MOVING, Stand.CALLED):
        return replace(one, stand=Stand.CONVERTED, opening=False)
    if one.opening:
        return replace(one, opening=False)
    return replace(one, stand=Stand.RETURNED) if one.stand is Stand.RETURNING else one


@settings(max_examples=300)
@given(
    turns=some.lists(some.sampled_from(["turn", "lost", "doubled", "time"]), max_size=60),
    concurrency=some.integers(1, 3),
)
def test_lost_and_doubled_turns_change_nothing(turns: list[str], concurrency: int) -> None:
    """The wave arrives, each phase is passed once, and never are more nodes under way."""
    wave = a_wave(Phase.APPROVED, concurrency=concurrency, soak=timedelta(hours=1))
    nodes, now, phases = [node(number) for number in range(5)], NOW, [Phase.APPROVED]

    def turn(kind: str) -> None:
        nonlocal wave, nodes, now
        found: Decision = decide(wave, saw(*nodes), now)
        if kind == "lost":
            return
        for _ in range(2 if kind == "doubled" else 1):
            if found.start:
                nodes = [
                    replace(one, stand=Stand.MOVING, source=False)
                    if one.node == found.start and one.stand is Stand.WAITING
                    else one
                    for one in nodes
                ]
        if found.move is not None:
            wave = replace(wave, phase=found.move, since=now)
            phases.append(found.move)
        assert sum(one.stand is Stand.MOVING for one in nodes) <= concurrency
        if kind == "time":
            now += timedelta(minutes=30)
            nodes = [
                replace(one, stand=Stand.CONVERTED) if one.stand is Stand.MOVING else one
                for one in nodes
            ]

    for kind in [*turns, *(["turn", "time"] * 20)]:
        turn(kind)
    assert phases == [Phase.APPROVED, Phase.RUNNING, Phase.SOAKING, Phase.DONE]
