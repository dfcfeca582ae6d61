"""The tables of the migration: what moves, by which plan, and what was measured on the way."""

from migrationplan.models.drill import Drill, DrillMark
from migrationplan.models.evidence import Evidence, Exhibit, Sighting
from migrationplan.models.makeroom import MakeRoom, RoomPod
from migrationplan.models.move import Move, MoveEvent
from migrationplan.models.plan import CalendarFreeze, Plan, Strategy, Wave, WaveEvent, WaveNode
from migrationplan.models.reading import Gate, Reading

__all__ = [
    "CalendarFreeze",
    "Drill",
    "DrillMark",
    "Evidence",
    "Exhibit",
    "Gate",
    "MakeRoom",
    "Move",
    "MoveEvent",
    "Plan",
    "Reading",
    "RoomPod",
    "Sighting",
    "Strategy",
    "Wave",
    "WaveEvent",
    "WaveNode",
]
