"""The nodes of a wave as lanes: which steps are over and how long each took, where each stands."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from migrationplan.models import Move, MoveEvent, WaveNode
from migrationplan.phases import Stand
from migrationplan.steps import WAYS, Direction, Step

#: Columns are the steps that may last; opening is a moment.
HEADS: Mapping[Step, str] = {
    Step.QUIESCING: "Quiescing",
    Step.PLUGIN_OFF: "Plugin off",
    Step.NODE_PROOF: "Node proof",
    Step.DRIVER_ON: "Driver on",
    Step.SETTLING: "Settling",
    Step.DRIVER_OFF: "Driver off",
    Step.SLICES_GONE: "Slices gone",
    Step.PLUGIN_ON: "Plugin on",
    Step.VERIFYING: "Verifying",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One step of one node: `state` is a class of the lanes; since when, or how long it took."""

    state: str
    since: datetime | None = None
    took: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Lane:
    """One node. `home` is since when it is on its new path; `note` what there is to say."""

    row: WaveNode
    cells: tuple[Cell, ...]
    home: datetime | None
    note: str
    called: str = ""


def heads(direction: Direction) -> list[str]:
    """The titles of the columns between the two paths."""
    return [HEADS[step] for step in WAYS[direction] if step in HEADS]


def lanes(rows: Sequence[WaveNode], moves: Iterable[Move], direction: Direction) -> list[Lane]:
    """Each node of a page of them; one query for all that happened."""
    newest = {(move.pool_id, move.node_uid): move for move in moves}
    events: dict[int, list[MoveEvent]] = {}
    for event in MoveEvent.objects.filter(move__in=[move.pk for move in newest.values()]):
        events.setdefault(event.move_id, []).append(event)
    found = []
    for row in rows:
        move = newest.get((row.pool_id, row.node_uid))
        found.append(_lane(row, move, events.get(move.pk, []) if move else [], direction))
    return found


def _lane(
    row: WaveNode, move: Move | None, events: Sequence[MoveEvent], direction: Direction
) -> Lane:
    steps = [step for step in WAYS[direction] if step in HEADS]
    ours = [event for event in events if event.direction == direction]
    began: dict[str, datetime] = {event.step: event.at for event in ours}
    there = move is not None and move.direction == direction
    cells = []
    for step in steps:
        if step.value not in began:
            cells.append(Cell("todo"))
            continue
        later = [at for at in (event.at for event in ours) if at > began[step.value]]
        if there and move is not None and move.ended_at is None and move.step == step:
            cells.append(Cell("here", since=began[step.value]))
        else:
            took = min(later) - began[step.value] if later else None
            cells.append(Cell("done", took=took))
    home = None
    if row.stand == Stand.CONVERTED:
        home = move.ended_at if move is not None and there else None
    return Lane(row, tuple(cells), home, _note(row, move), move.called if move else "")


def _note(row: WaveNode, move: Move | None) -> str:
    if row.skipped:
        return f"left out: {row.skipped}"
    stand = Stand(row.stand)
    if stand in (Stand.CALLED, Stand.STUCK) and move is not None:
        return f"a person is called, {move.why}"
    if stand is Stand.RETURNING and move is not None:
        return f"goes back, at {move.step}" + (f": {row.why}" if row.why else "")
    if stand is Stand.MOVING:
        return row.why
    words = {
        Stand.RETURNED: "is back where it was",
        Stand.CONFLICT: "has two owners: a person has to end that",
        Stand.LOST: "the machine is gone",
        Stand.UNKNOWN: "nobody can tell how it stands",
    }
    return words.get(stand, row.why)
