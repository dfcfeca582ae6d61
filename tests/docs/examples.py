"""What stands in README and docs as code: commands, documents, links. Runs nothing of it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Programs that inline code may begin with, so that it is a command.
PROGRAMS = re.compile(
    r"(python |\.venv/bin/python |manage\.py |make |berth |curl |kubectl |helm |docker |pg_\w+ )"
)
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_INDENTED = re.compile(r"(?:^    .*\n)+", re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")
_ASSIGNED = re.compile(r"(?:export )?\w+=\$\((.*)\)\s*$")
_PIPES = {"|", "&&", ";", "||"}


@dataclass(frozen=True, slots=True)
class Block:
    """Code with the line it begins at; `language` is "sh" for indented code of commands."""

    file: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Command:
    """One program with its arguments; `whole` is false where docs only mention it."""

    where: str
    words: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        return f"{self.where} {' '.join(self.words)}"


def files() -> list[Path]:
    """Every page for people."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks() -> Iterator[Block]:
    """Fenced code of all pages, and indented code, which here is always commands."""
    for file in files():
        name, text = str(file.relative_to(ROOT)), file.read_text()
        for found in _FENCE.finditer(text):
            inner = "\n".join(
                line.removeprefix(found[1]) for line in found[3].rstrip("\n").splitlines()
            )
            yield Block(name, _line(text, found.start()), found[2], inner)
        for found in _INDENTED.finditer(_without_fences(text)):
            inner = "\n".join(line[4:] for line in found[0].splitlines())
            if PROGRAMS.search(inner):
                yield Block(name, _line(text, found.start()), "sh", inner)


def commands() -> Iterator[Command]:
    """Every command of every block, part by part of a pipe; then those in running text."""
    for block in blocks():
        if block.language == "sh":
            for words in _commands(block.text):
                yield Command(str(block), words, whole=True)
    for file in files():
        text = _without_fences(file.read_text())
        for found in _INLINE.finditer(text):
            if PROGRAMS.match(found[1]):
                where = f"{file.relative_to(ROOT)}:{_line(text, found.start())}"
                for words in _commands(found[1]):
                    yield Command(where, words, whole=False)


def links(file: Path) -> Iterator[tuple[int, str]]:
    """(line, target) of each link and picture of a page."""
    text = _without_fences(file.read_text())
    for found in re.finditer(r"!?\[[^\]]*\]\(([^)\s]+)\)", text):
        yield _line(text, found.start()), found[1]


def anchors(file: Path) -> set[str]:
    """What can be linked to in a page, as the usual renderers name headings."""
    text = _without_fences(file.read_text())
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-"))
    return found


def _commands(text: str) -> Iterator[tuple[str, ...]]:
    for line in _lines(text):
        assigned = _ASSIGNED.match(line)
        lexer = shlex.shlex(
            assigned[1] if assigned else line, posix=True, punctuation_chars="|&;<>"
        )
        lexer.whitespace_split = True
        part: list[str] = []
        for word in [*lexer, ";"]:
            if word not in _PIPES:
                part.append(word)
            elif part and not re.fullmatch(r"\w+=\S*", part[0]):
                yield tuple(part)
                part = []
            else:
                part = []


def _lines(text: str) -> Iterator[str]:
    """Lines as a shell sees them: those that end in a backslash or within quotes go on."""
    held = ""
    for line in text.splitlines():
        held += line
        if held.endswith("\\"):
            held = held[:-1]
            continue
        try:
            shlex.split(held, comments=True)
        except ValueError:
            held += "\n"
            continue
        if held.strip():
            yield held
        held = ""


def _without_fences(text: str) -> str:
    """The same lines, those of fenced code empty."""
    return _FENCE.sub(lambda found: "\n" * found[0].count("\n"), text)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
