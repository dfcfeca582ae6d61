"""Gates as they are read from rows: whom they look at, where samples come from, what is kept."""

from migrationplan.gating.judging import judge
from migrationplan.gating.subjects import Subject, of_wave

__all__ = ["Subject", "judge", "of_wave"]
