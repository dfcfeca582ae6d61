"""The words of a wave: phases and the moves between them, rules, what is seen, decisions. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from migrationplan.gates import GateVerdict
from migrationplan.steps import Direction
from migrationplan.windows import Frozen, Window


class Phase(StrEnum):
    """Where a wave stands; the values are stored."""

    DRAFT = "draft"
    IN_REVIEW = "in review"
    APPROVED = "approved"
    RUNNING = "running"
    SOAKING = "soaking"
    DONE = "done"
    PAUSED = "paused"
    ROLLING_BACK = "rolling back"
    ROLLED_BACK = "rolled back"


#: Every move that there is. `docs/plans.md` shows this table, and a test compares the two.
MOVES: Final[Mapping[Phase, frozenset[Phase]]] = {
    Phase.DRAFT: frozenset({Phase.IN_REVIEW, Phase.APPROVED, Phase.ROLLING_BACK}),
    Phase.IN_REVIEW: frozenset({Phase.DRAFT, Phase.APPROVED, Phase.PAUSED, Phase.ROLLING_BACK}),
    Phase.APPROVED: frozenset({Phase.DRAFT, Phase.RUNNING, Phase.PAUSED, Phase.ROLLING_BACK}),
    Phase.RUNNING: frozenset({Phase.SOAKING, Phase.PAUSED, Phase.ROLLING_BACK}),
    Phase.SOAKING: frozenset({Phase.RUNNING, Phase.DONE, Phase.PAUSED, Phase.ROLLING_BACK}),
    Phase.DONE: frozenset({Phase.ROLLING_BACK}),
    Phase.PAUSED: frozenset(
        {Phase.IN_REVIEW, Phase.APPROVED, Phase.RUNNING, Phase.SOAKING, Phase.ROLLING_BACK}
    ),
    Phase.ROLLING_BACK: frozenset({Phase.ROLLED_BACK, Phase.PAUSED}),
    Phase.ROLLED_BACK: frozenset(),
}
#: Phases in which nodes may start, so that what goes wrong in the world stops the wave.
UNDER_WAY: Final = frozenset({Phase.RUNNING, Phase.SOAKING})
#: Phases that nothing leaves by itself.
AT_REST: Final = frozenset({Phase.DRAFT, Phase.DONE, Phase.ROLLED_BACK})


def diagram() -> str:
    """The table of moves as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> draft"]
    for phase, moves in MOVES.items():
        lines += [f"    {_id(phase)} --> {_id(to)}" for to in sorted(moves, key=list(Phase).index)]
        if not moves:
            lines.append(f"    {_id(phase)} --> [*]")
    return "\n".join(lines)


def _id(phase: Phase) -> str:
    return phase.value.replace(" ", "_")


class OnFailure(StrEnum):
    """What a wave does when a gate fails or too many nodes do."""

    PAUSE = "pause"
    ROLL_BACK = "roll back"


class Audience(StrEnum):
    """Whose work a wave touches: nodes start only while nothing else holds their devices."""

    ALL = "all"
    RETRYABLE = "retryable"


class Leave(StrEnum):
    """How the approvals of a wave stand; `GIVEN` also where none is needed."""

    NOT_ASKED = "not asked"
    ASKED = "asked"
    GIVEN = "given"
    REFUSED = "refused"


class Code(StrEnum):
    """Why a wave paused itself or rolls back; the same in page, API, alert and audit."""

    BY_HAND = "WAVE_PAUSED"
    ROLLED_BY_HAND = "WAVE_ROLLED_BACK"
    CONFLICT = "OWNER_CONFLICT"
    DRIFT = "WAVE_DRIFT"
    GATE_FAILED = "GATE_FAILED"
    GATE_INCONCLUSIVE = "GATE_INCONCLUSIVE"
    TOO_MANY_ERRORS = "WAVE_TOO_MANY_ERRORS"
    CLUSTER_AWAY = "CLUSTER_UNREACHABLE"
    STALE = "MIRROR_STALE"
    NO_LEAVE = "WAVE_NOT_APPROVED"
    NOBODY_RUNS_IT = "WAVE_WITHOUT_OPERATOR"


@dataclass(frozen=True, slots=True)
class Rules:
    """What a wave may do; a person set it and others approved it.

    More than `max_errors` failed nodes stop it. `evict_retryable` is the leave to end Pods whose
    owners declared them retryable; nobody else's are ever ended. `rehearsed_within` is how long ago
    at most the rollback was rehearsed on each of its node pools; zero: that is not asked.
    """

    direction: Direction = Direction.TO_DRA
    audience: Audience = Audience.ALL
    concurrency: int = 1
    max_errors: int = 0
    soak: timedelta = timedelta(hours=24)
    windows: tuple[Window, ...] = ()
    on_failure: OnFailure = OnFailure.PAUSE
    evict_retryable: bool = False
    rehearsed_within: timedelta = timedelta(0)


@dataclass(frozen=True, slots=True)
class Wave:
    """One wave as its row has it.

    `since` is the beginning of the phase, `soaked` what of the soak was over before a pause.
    `paused_from` is where resuming goes. `pause`, `resume` and `roll_back` are wishes of people, in
    their words. `waived` are the names of gates that somebody let pass; why is on record.
    """

    rules: Rules
    phase: Phase
    since: datetime
    leave: Leave = Leave.NOT_ASKED
    leave_words: str = ""
    paused_from: Phase | None = None
    paused_why: str = ""
    soaked: timedelta = timedelta(0)
    pause: str = ""
    resume: str = ""
    roll_back: str = ""
    waived: frozenset[str] = frozenset()


class Stand(StrEnum):
    """How one node of a wave stands."""

    WAITING = "waiting"
    MOVING = "moving"
    CALLED = "a person is called"
    CONVERTED = "converted"
    RETURNING = "returning"
    STUCK = "stuck on its way back"
    RETURNED = "returned"
    CONFLICT = "conflict"
    UNKNOWN = "unknown"
    LOST = "lost"


#: Of these nothing is on its way and nothing is left to undo.
AT_HOME: Final = frozenset({Stand.WAITING, Stand.RETURNED, Stand.LOST})
#: Nodes that did not become what they should.
ERRORS: Final = frozenset({Stand.CALLED, Stand.RETURNED, Stand.STUCK})


@dataclass(frozen=True, slots=True)
class Holder:
    """A Pod that a node waits for. `ends` is when it is known to end by itself."""

    pod: str
    words: str
    retryable: bool = False
    ends: datetime | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """One node of the wave, in the wave's order. `source` says that its devices belong to the path
    that it is to leave; `why_not` is a clause where it cannot start. `skipped` is the reason of
    whoever left it out. `opening`: its move ends in a moment and cannot be turned any more.
    `WAITING` is a node that never began, `UNKNOWN` one that did and of which nobody can tell.
    """

    node: str
    stand: Stand
    source: bool = False
    why_not: str = ""
    skipped: str = ""
    holders: tuple[Holder, ...] = ()
    opening: bool = False


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Of a node pool, when a rollback rehearsal last passed there and when one last failed."""

    pool: str
    passed: datetime | None = None
    failed: datetime | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What a turn saw. `away` and `stale` are sentences about how the cluster is not heard, since
    when it lasts; `before` names the earlier waves that are not done; `rehearsals` has one of each
    node pool of the wave.
    """

    nodes: tuple[Seen, ...] = ()
    expected: int = 0
    away: str = ""
    away_since: datetime | None = None
    stale: str = ""
    conflicts: tuple[str, ...] = ()
    drift: tuple[str, ...] = ()
    gates: tuple[GateVerdict, ...] = ()
    calendar: tuple[Frozen, ...] = ()
    before: tuple[str, ...] = ()
    operator_gone: str = ""
    rehearsals: tuple[Rehearsal, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Either `move`, or acts and a wait; `why` is one sentence.

    `start` is the node that may start next; `back` are nodes to be turned or moved back; `evict`
    are Pods to be ended by the eviction API; `freeze` asks that nothing new of the class is taken
    on, `reroute` that new work takes the path that the wave leaves.
    """

    why: str
    move: Phase | None = None
    code: Code | None = None
    start: str | None = None
    back: tuple[str, ...] = ()
    evict: tuple[str, ...] = ()
    freeze: bool = False
    reroute: bool = False
    recheck: timedelta = timedelta(seconds=5)
    facts: Mapping[str, str] = field(default_factory=dict)
