"""A rollout of the accounting: canaries, soak, the rest; a stop holds until mappings are newer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.ledgerpools import Version
from devices.dra.ledgerreport import Feature
from devices.dra.ledgerrollout import (
    MOVES,
    NodeSeen,
    Phase,
    Rollout,
    RolloutSeen,
    decide,
)
from tests.factories import NOON

HOUR = timedelta(hours=1)
POOL = ("d.example.com", "n1")
GOOD = NodeSeen(Feature.DECLARED, safe=True)
WITHOUT = NodeSeen(Feature.ABSENT, safe=True)
REBUILDS = NodeSeen(Feature.DECLARED, safe=False, code="LEDGER_REBUILDING")
UNSAFE = NodeSeen(Feature.DECLARED, safe=False, unsafe=True, code="LEDGER_COUNTED_TWICE")


def at(phase: Phase, **changes: object) -> Rollout:
    return replace(Rollout(phase, NOON, ("n1",), 4 * HOUR), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "phase, n1, n2, hours, after, says",
    [
        pytest.param("canary", WITHOUT, WITHOUT, 0, "canary", "1 node", id="waits for the gate"),
        pytest.param("canary", REBUILDS, GOOD, 0, "canary", "1 node", id="waits for safety"),
        pytest.param("canary", GOOD, WITHOUT, 0, "soaking", "safe ledger", id="canary is ready"),
        pytest.param("canary", UNSAFE, GOOD, 0, "stopped", "COUNTED_TWICE", id="unsafe canary"),
        pytest.param("soaking", GOOD, WITHOUT, 3, "soaking", "1 hour of the soak", id="soaks"),
        pytest.param("soaking", GOOD, UNSAFE, 3, "soaking", "1 hour of", id="others do not vote"),
        pytest.param("soaking", REBUILDS, GOOD, 5, "soaking", "rebuilds", id="rebuilds at the end"),
        pytest.param("soaking", WITHOUT, GOOD, 3, "canary", "lost", id="gate went off"),
        pytest.param("soaking", UNSAFE, GOOD, 3, "stopped", "relied on", id="differs"),
        pytest.param("soaking", GOOD, WITHOUT, 4, "wide", "soaked", id="soak is over"),
        pytest.param("wide", GOOD, WITHOUT, 9, "wide", "1 node", id="the rest"),
        pytest.param("wide", GOOD, UNSAFE, 9, "stopped", "n2", id="any node stops it then"),
        pytest.param("wide", GOOD, GOOD, 9, "done", "Every node", id="done"),
        pytest.param("done", GOOD, WITHOUT, 9, "done", "1 node", id="a new node, later"),
        pytest.param("done", GOOD, UNSAFE, 9, "stopped", "n2", id="still watched"),
        pytest.param("ended", GOOD, UNSAFE, 9, "ended", "over", id="over"),
    ],
)
def test_what_follows_from_what_is_seen(phase, n1, n2, hours, after, says) -> None:
    seen = RolloutSeen({"n1": n1, "n2": n2})
    found = decide(at(Phase(phase)), seen, NOON + hours * HOUR)
    assert (found.phase, says in found.why) == (after, True), found


STOPPED = at(Phase.STOPPED, floors={POOL: Version(1, 4, 70)}, exported=True)


@pytest.mark.parametrize(
    "rollout, n1, version, after",
    [
        pytest.param(
            replace(STOPPED, exported=False), GOOD, Version(1, 5, 90), "stopped", id="not exported"
        ),
        pytest.param(STOPPED, GOOD, Version(1, 4, 70), "stopped", id="nothing was repaired"),
        pytest.param(STOPPED, GOOD, Version(1, 3, 99), "stopped", id="an older generation"),
        pytest.param(STOPPED, GOOD, None, "stopped", id="nothing is published"),
        pytest.param(STOPPED, UNSAFE, Version(1, 5, 90), "stopped", id="still unsafe"),
        pytest.param(STOPPED, GOOD, Version(1, 5, 90), "repaired", id="a newer generation"),
        pytest.param(STOPPED, GOOD, Version(1, 4, 71), "repaired", id="a newer slice"),
        pytest.param(STOPPED, GOOD, Version(2, 1, 99), "repaired", id="a new epoch"),
        pytest.param(
            replace(STOPPED, phase=Phase.REPAIRED), UNSAFE, Version(1, 5, 90), "stopped",
            id="broken again before it was resumed",
        ),
    ],
)  # fmt: skip
def test_it_is_repaired_by_version_and_a_person_resumes(rollout, n1, version, after) -> None:
    found = decide(rollout, RolloutSeen({"n1": n1}, {POOL: version}), NOON)
    assert found.phase == after, found


nodes = st.builds(
    NodeSeen, st.sampled_from(Feature), safe=st.booleans(), unsafe=st.booleans(), code=st.just("C")
)


@given(
    phase=st.sampled_from(Phase),
    seen=st.builds(RolloutSeen, st.dictionaries(st.sampled_from(["n1", "n2", "n3"]), nodes)),
    hours=st.integers(0, 9),
    exported=st.booleans(),
)
def test_every_decision_is_a_move_of_the_table_and_says_why(phase, seen, hours, exported) -> None:
    rollout = at(phase, exported=exported)
    found = decide(rollout, seen, NOON + hours * HOUR)
    assert found.phase is phase or found.phase in MOVES[phase]
    assert found.why
    assert not (phase in (Phase.STOPPED, Phase.REPAIRED) and found.phase is Phase.CANARY)
