"""What changes in a text, line by line, with a few lines around each change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from devices.translation.edits import Edit, applied

AROUND: Final = 3


@dataclass(frozen=True, slots=True)
class Line:
    """One line: ``sign`` is "-", "+", " ", or "…" where lines are left out. Numbers count from 1;
    None where the line is not in that text.
    """

    sign: str
    text: str
    before: int | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """Whole lines ``first`` up to ``last`` (from 0) of the old text, and what stands there now."""

    first: int
    last: int
    new: tuple[str, ...]


def lines_of(text: str, edits: Sequence[Edit]) -> Iterator[Line]:
    """The changed lines and those around them. ``text`` ends with a line end.

    Made from the changes themselves: comparing two long texts that repeat themselves takes minutes.
    """
    old = _split(text)
    shown, moved = 0, 0
    changes = list(_changes(text, edits))
    for n, change in enumerate(changes):
        start = max(change.first - AROUND, shown)
        if start > shown:
            yield Line("…", "")
        yield from (_same(old, each, moved) for each in range(start, change.first))
        yield from _replaced(old, change, moved)
        moved += len(change.new) - (change.last - change.first)
        following = changes[n + 1].first if n + 1 < len(changes) else len(old)
        shown = min(change.last + AROUND, following)
        yield from (_same(old, each, moved) for each in range(change.last, shown))
    if changes and shown < len(old):
        yield Line("…", "")


def _same(old: Sequence[str], n: int, moved: int) -> Line:
    return Line(" ", old[n], n + 1, n + 1 + moved)


def _replaced(old: Sequence[str], change: _Change, moved: int) -> Iterator[Line]:
    """One change, its unchanged lines in between apart."""
    before, base = old[change.first : change.last], change.first
    matcher = SequenceMatcher(None, before, change.new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            for n in range(i2 - i1):
                at = base + i1 + n
                yield Line(" ", old[at], at + 1, base + moved + j1 + n + 1)
            continue
        yield from (Line("-", before[n], base + n + 1) for n in range(i1, i2))
        after = (Line("+", change.new[n], None, base + moved + n + 1) for n in range(j1, j2))
        yield from after


def _changes(text: str, edits: Sequence[Edit]) -> Iterator[_Change]:
    """Whole lines that change, those that touch each other together."""
    groups: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(edits):
        start = text.rfind("\n", 0, edit.start) + 1
        whole = edit.start == start and edit.end > 0 and text[edit.end - 1] == "\n"
        end = edit.end if whole else text.find("\n", edit.end) + 1 or len(text)
        if groups and start <= groups[-1][1]:
            first, last, inside = groups.pop()
            groups.append((first, max(last, end), [*inside, edit]))
        else:
            groups.append((start, end, [edit]))
    line, at = 0, 0
    for start, end, inside in groups:
        line += text.count("\n", at, start)
        lines = text.count("\n", start, end)
        new = _split(applied(text, inside, start, end))
        yield _Change(line, line + lines, tuple(new))
        line, at = line + lines, end


def _split(text: str) -> list[str]:
    """Lines without their ends; only a line feed ends one, as editors count."""
    return [line.removesuffix("\r") for line in text.split("\n")[:-1]]
