"""The arithmetic of the audit chain: each line's digest covers the line and the digest before it.

Pure; knows no database. Changing, dropping or reordering a line changes every digest after it, so
each of these is found; the end of the chain alone needs a digest that was kept elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

GENESIS = "0" * 64

Line = tuple[int, str, str, Mapping[str, Any]]
"""(number, previous digest, own digest, content)"""


@dataclass(frozen=True, slots=True)
class Break:
    """Where a chain stops being provable: the number of the line, and what is wrong with it."""

    number: int
    why: str


def digest(previous: str, content: Mapping[str, Any]) -> str:
    """The hex SHA-256 over the digest before and the line's canonical JSON.

    `content` holds JSON values only; keys are sorted, so their order does not count.
    """
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{previous}\n{canonical}".encode()).hexdigest()


def breaks(
    lines: Iterable[Line], place_of: Callable[[str], int | None] = lambda digest: None
) -> Iterator[Break]:
    """Every break, in the order of the lines; a whole chain has none.

    `lines` come in the order of their numbers. `place_of` says under which number a digest stands
    now; with it a line that was moved is told from one that was changed: its digest still fits the
    number under which it was written, which is the one after the digest that it names.
    """
    last, before = 0, GENESIS
    moved = False
    for number, previous, own, content in lines:
        gap = number != last + 1
        if gap:
            several = number > last + 2
            missing = f"lines {last + 1} to {number - 1} are" if several else f"line {last + 1} is"
            yield Break(number, f"{missing} missing")
        if digest(previous, content) != own:
            was = _written_as(previous, own, content, place_of)
            moved = was is not None
            why = f"it was written as line {was}" if moved else "its content was changed"
            yield Break(number, why)
        else:
            # Behind a line that was moved here, the one that it follows stands elsewhere now.
            astray = moved and place_of(previous) is not None
            if not gap and previous != before and not astray:
                yield Break(number, "it does not follow the line before")
            moved = False
        last, before = number, own


def _written_as(
    previous: str, own: str, content: Mapping[str, Any], place_of: Callable[[str], int | None]
) -> int | None:
    """The number under which a line was written, where it is just that which was changed."""
    here = int(content["number"])
    found = 0 if previous == GENESIS else place_of(previous)
    # Two neighbours that changed places name each other's places too, hence the tries around.
    around = [] if found is None else [found + 1]
    for number in [*around, here - 1, here + 1]:
        if number > 0 and number != here and digest(previous, {**content, "number": number}) == own:
            return number
    return None
