"""Changes to a text at known places: take entries out of a mapping, put entries and items in.

Everything that is not named stays as it is, byte for byte; comments of what is taken out stay as
lines of their own. Where a place cannot be changed with certainty, `Unsure` says so and nothing is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from devices.translation.tree import Items, Mapping, Node, Scalar, walk

_COMMENT: Final = re.compile(r"(?:^|(?<=[ \t\n]))#[^\r\n]*")


class Unsure(Exception):
    """This place is left as it is: a code, the line (from 1), and a sentence that says why."""

    def __init__(self, code: str, line: int, words: str):
        super().__init__(words)
        self.code = code
        self.line = line
        self.words = words


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """The text from ``start`` up to ``end`` becomes ``text``."""

    start: int
    end: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a document is written: line end, how far lists stand in, and whether it is JSON."""

    newline: str = "\n"
    dash: int = 0
    json: bool = False


@dataclass(slots=True)
class Pen:
    """Collects changes to one text, which must end with a line end."""

    text: str
    manner: Manner
    edits: list[Edit] = field(default_factory=list)

    def change(
        self, mapping: Mapping, *, out: Collection[str], put: Sequence[tuple[str, Any]]
    ) -> None:
        """Takes the entries named ``out`` from a mapping and adds ``put`` at its end."""
        if not out and not put:
            return
        if mapping.flow:
            self._change_flow(mapping, out, put)
            return
        for key, value in mapping.pairs:
            if _named(key) in out:
                self._take_lines(key, value)
        if put:
            self._add_lines(mapping, put)

    def append(self, items: Items, item: Any) -> None:
        """Adds an item at the end of a list."""
        if items.flow:
            last = items.items[-1] if items.items else None
            text = self._inline(item)
            if last is None:
                inside = self.text.index("[", items.start) + 1
                self._insert(inside, text)
            else:
                self._insert(last.end, f"{self._gap(items, last)}{text}")
            return
        lines = _block_item(item, self.manner.dash)
        at = self._line_end(items.items[-1].end)
        self._insert(at, self._lines(lines, items.column))

    def insert(self, at: int, text: str) -> None:
        """Puts a text with plain line ends at a place."""
        self._insert(at, text.replace("\n", self.manner.newline))

    # --- blocks ---

    def _take_lines(self, key: Node, value: Node) -> None:
        start = self.text.rfind("\n", 0, key.start) + 1
        if self.text[start : key.start].strip(" "):
            raise Unsure(
                "NOT_ON_ITS_OWN_LINE",
                key.line,
                "What would be taken out shares its line with something else.",
            )
        end = self._line_end(value.end)
        kept = [f"{' ' * key.column}{each}" for each in self._comments(key, value, end)]
        text = "".join(f"{line}{self.manner.newline}" for line in kept)
        self.edits.append(Edit(start, end, text))

    def _comments(self, key: Node, value: Node, end: int) -> list[str]:
        """Comments between a key and the end of its value's last line."""
        leaves = [key, *(node for node in walk(value) if isinstance(node, Scalar))]
        gaps = zip(
            [leaf.end for leaf in leaves], [*(leaf.start for leaf in leaves[1:]), end], strict=True
        )
        return [
            found.group().rstrip()
            for start, stop in gaps
            for found in _COMMENT.finditer(self.text, start, stop)
        ]

    def _add_lines(self, mapping: Mapping, put: Sequence[tuple[str, Any]]) -> None:
        lines = [line for name, value in put for line in _block(name, value, self.manner.dash)]
        at = self._line_end(mapping.pairs[-1][1].end)
        self._insert(at, self._lines(lines, mapping.pairs[0][0].column))

    def _lines(self, lines: Sequence[str], column: int) -> str:
        return "".join(f"{' ' * column}{line}{self.manner.newline}" for line in lines)

    def _line_end(self, at: int) -> int:
        """Behind the end of the line on which a value ends; a block of text has its own."""
        if at and self.text[at - 1] == "\n":
            return at
        return self.text.index("\n", at) + 1

    # --- braces and brackets ---

    def _change_flow(
        self, mapping: Mapping, out: Collection[str], put: Sequence[tuple[str, Any]]
    ) -> None:
        if _COMMENT.search(self.text, mapping.start, mapping.end) and not self.manner.json:
            raise Unsure(
                "COMMENT_IN_BRACES",
                mapping.line,
                "Comments stand between these braces: write them as a block first.",
            )
        pairs = mapping.pairs
        kept = [n for n, (key, _) in enumerate(pairs) if _named(key) not in out]
        added = [f"{self._key(name)}: {self._inline(value)}" for name, value in put]
        if not kept:
            start, end = self._inside(mapping)
            self.edits.append(Edit(start, end, ", ".join(added)))
            return
        for n, (key, value) in enumerate(pairs):
            if n in kept:
                continue
            if n < kept[-1]:
                self.edits.append(Edit(key.start, pairs[n + 1][0].start))
            else:
                self.edits.append(Edit(pairs[n - 1][1].end, value.end))
        last = pairs[kept[-1]][1]
        if added:
            gap = self._gap(mapping, pairs[0][0])
            self._insert(last.end, "".join(f"{gap}{each}" for each in added))

    def _inside(self, mapping: Mapping) -> tuple[int, int]:
        if not mapping.pairs:
            at = self.text.index("{", mapping.start) + 1
            return at, at
        return mapping.pairs[0][0].start, mapping.pairs[-1][1].end

    def _gap(self, node: Mapping | Items, like: Node) -> str:
        """What parts two entries: a line of its own where the others have one."""
        start = self.text.rfind("\n", 0, like.start) + 1
        before = self.text[start : like.start]
        if start > node.start and not before.strip():
            return f",{self.manner.newline}{before}"
        return ", "

    def _key(self, name: str) -> str:
        return json.dumps(name) if self.manner.json else name

    def _inline(self, value: Any) -> str:
        if self.manner.json:
            return json.dumps(value)
        text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=100_000)
        return text.strip().removesuffix("\n...")

    def _insert(self, at: int, text: str) -> None:
        """Several texts at one place stand in the order in which they came."""
        for n, edit in enumerate(self.edits):
            if edit.start == edit.end == at:
                self.edits[n] = Edit(at, at, edit.text + text)
                return
        self.edits.append(Edit(at, at, text))


def applied(text: str, edits: Sequence[Edit], start: int, end: int) -> str:
    """The text from ``start`` up to ``end`` with the changes in it made.

    Raises ValueError where two of them meet.
    """
    parts, at = [], start
    for edit in sorted(edits):
        if edit.start < at:
            raise ValueError(f"two changes meet at {edit.start}")
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:end]])


def block_text(value: Any, dash: int) -> str:
    """A mapping as a block, lists standing in by ``dash``."""
    lines = [line for name, each in value.items() for line in _block(name, each, dash)]
    return "".join(f"{line}\n" for line in lines)


def _block(name: str, value: Any, dash: int) -> list[str]:
    if isinstance(value, dict):
        inner = [line for key, each in value.items() for line in _block(key, each, dash)]
        return [f"{name}:", *(f"  {line}" for line in inner)]
    if isinstance(value, list):
        inner = [line for each in value for line in _block_item(each, dash)]
        return [f"{name}:", *(f"{' ' * dash}{line}" for line in inner)]
    return [f"{name}: {_scalar(value)}"]


def _block_item(value: dict[str, Any], dash: int) -> list[str]:
    first, *rest = [line for name, each in value.items() for line in _block(name, each, dash)]
    return [f"- {first}", *(f"  {line}" for line in rest)]


def _scalar(value: Any) -> str:
    text = yaml.safe_dump(value, width=100_000, allow_unicode=True)
    return text.removesuffix("...\n").strip()


def _named(key: Node) -> str:
    return key.text if isinstance(key, Scalar) else ""
