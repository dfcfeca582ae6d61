"""A note in a real node's folder: what a fault keeps down, which is no crash to be mended."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from playground.running.processes import look_up
from playground.running.supervisor import write_whole

FILE = "held.json"
NODE = "node"


@dataclass(frozen=True, slots=True)
class Held:
    """`keeper`: the process with which the machine ended, 0 where it stood by itself."""

    what: str = ""
    keeper: int = 0


def note(folder: Path, what: str, keeper: int = 0) -> None:
    write_whole(folder / FILE, json.dumps(asdict(Held(what, keeper))))


def read(folder: Path) -> Held:
    """A keeper that is gone keeps nothing any more."""
    try:
        found = Held(**json.loads((folder / FILE).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return Held()
    return found if found.keeper and look_up(found.keeper) else Held(found.what)


def forget(folder: Path) -> None:
    (folder / FILE).unlink(missing_ok=True)
