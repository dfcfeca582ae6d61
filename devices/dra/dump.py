"""What `kubectl get … -o yaml` or `-o json` printed → objects, each with where it stands.

Reads bytes of any number of files: single objects, lists, several documents, lines of JSON. What
cannot be read becomes a sentence with file and line, and everything else is read all the same.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import yaml

from devices.dra.reading import Raw
from devices.dra.shapes import wrong_shape

#: YAML beyond this takes minutes; JSON of that size takes a second.
MOST_YAML: Final = 64 * 1024 * 1024
_MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands; line 0 is a file as a whole."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was not read, or not as it stands, in a sentence for people."""

    place: Place
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


@dataclass(frozen=True, slots=True)
class Found:
    """One object and where it stands."""

    raw: Raw
    place: Place

    @property
    def title(self) -> str:
        """``Kind/namespace/name``, as snapshots name what they could not read."""
        meta = self.raw["metadata"]
        parts = (self.raw["kind"], meta.get("namespace"), meta["name"])
        return "/".join(str(part) for part in parts if part)


@dataclass(frozen=True, slots=True)
class Dump:
    """Everything that was read. Of two objects with one name the later one is kept."""

    objects: tuple[Found, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def places(self) -> dict[str, Place]:
        """Where each object stands, by its title."""
        return {found.title: found.place for found in self.objects}


@dataclass(slots=True)
class _Reading:
    file: str
    #: Whether the text writes halves of characters, which JSON allows and no text can hold.
    halves: bool = False
    found: list[Found] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def wrong(self, line: int, text: str) -> None:
        self.problems.append(Problem(Place(self.file, line), text))

    def take(self, value: object, line: int) -> None:
        """One value that should be an object, or a list of them."""
        if isinstance(value, list):
            for item in value:
                self.take(item, line)
        elif not isinstance(value, dict):
            self.wrong(line, f"this is {_named(value)}, not a Kubernetes object")
        elif isinstance(value.get("items"), list):
            for item in value["items"]:
                self.item(item, str(value.get("kind") or ""), line)
        else:
            self.item(value, "", line)

    def item(self, value: object, list_kind: str, line: int) -> None:
        if not isinstance(value, dict):
            self.wrong(line, f"this is {_named(value)}, not a Kubernetes object")
            return
        if self.halves and not _is_text(value):
            self.wrong(line, "this object is left out: it holds half a character, as \\ud800 is")
            return
        kind = value.get("kind") or list_kind.removesuffix("List")
        meta = value.get("metadata")
        name = meta.get("name") if isinstance(meta, dict) else None
        if not isinstance(kind, str) or not kind:
            self.wrong(line, "this is no Kubernetes object: it has no kind")
        elif not isinstance(name, str) or not name:
            self.wrong(line, f"this {kind} has no metadata.name")
        else:
            found = Found({**value, "kind": kind}, Place(self.file, line))
            wrong = wrong_shape(found.raw)
            if wrong:
                self.wrong(line, f"{found.title} is left out: {wrong}")
            else:
                self.found.append(found)


def read_dump(files: Iterable[tuple[str, bytes]]) -> Dump:
    """Pairs of file name and content → Dump. Never raises for what a file holds."""
    found: list[Found] = []
    problems: list[Problem] = []
    for name, content in files:
        reading = _Reading(name)
        _read_file(reading, content)
        found += reading.found
        problems += reading.problems
    kept: dict[str, Found] = {}
    for each in found:
        before = kept.pop(each.title, None)
        if before is not None:
            text = f"{each.title} stands at {before.place} already; this one counts"
            problems.append(Problem(each.place, text))
        kept[each.title] = each
    return Dump(tuple(kept.values()), tuple(problems))


def _read_file(reading: _Reading, content: bytes) -> None:
    text = _decoded(reading, content)
    if text is None:
        return
    start = text.lstrip()
    if not start:
        reading.wrong(1, "the file is empty")
    elif start[0] in "{[":
        _read_json(reading, text)
    elif len(content) > MOST_YAML:
        size, most = len(content) // _MEBIBYTE, MOST_YAML // _MEBIBYTE
        reading.wrong(
            1,
            f"{size} MiB of YAML would take minutes (at most {most} are read); "
            "print it with -o json instead, which is read in seconds",
        )
    else:
        _read_yaml(reading, text)


def _decoded(reading: _Reading, content: bytes) -> str | None:
    """The text of a file; some shells write what a program prints as UTF-16."""
    encoding = "utf-8-sig"
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reading.wrong(line, "this is no text: it is not encoded as UTF-8")
        return None


# --- JSON ---


def _read_json(reading: _Reading, text: str) -> None:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        reading.halves = _HALF.search(text) is not None
        _read_json_by_parts(reading, text)
        return
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        for item, line in zip(value["items"], _item_lines(text, value["items"]), strict=True):
            reading.item(item, str(value.get("kind") or ""), line)
    else:
        reading.take(value, 1)


def _item_lines(text: str, items: list[Any]) -> Iterator[int]:
    """The line on which each item of a printed list begins: where its braces are one level in."""
    starts = [match.start() for match in _ITEM.finditer(text)]
    if len(starts) != len(items):
        yield from (1 for _ in items)
        return
    line, before = 1, 0
    for start in starts:
        line += text.count("\n", before, start)
        before = start
        yield line + 1


#: kubectl indents the items of a list by eight spaces.
_ITEM: Final = re.compile(r"\n        \{(?=\n)")


#: The first or second half of a character that JSON writes as two.
_HALF: Final = re.compile(r"\\u[dD][89a-fA-F]")


def _is_text(value: object) -> bool:
    """Whether every text in it can be written down."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_json_by_parts(reading: _Reading, text: str) -> None:
    """Several documents one after the other, or one that breaks off: as much as can be read."""
    decoder, position = json.JSONDecoder(), 0
    lines = _Lines(text)
    while position < len(text):
        position = _blank(text, position)
        if position >= len(text):
            return
        try:
            value, end = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError) as error:
            at = error.pos if isinstance(error, json.JSONDecodeError) else position
            what = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
            reading.wrong(lines.of(at), f"the JSON breaks off here: {what}")
            _read_items_until(reading, text, position, lines)
            return
        reading.take(value, lines.of(position))
        position = end


def _read_items_until(reading: _Reading, text: str, start: int, lines: _Lines) -> None:
    """The complete items of a list whose end is missing."""
    opening = re.compile(r'"items"\s*:\s*\[').search(text, start)
    kind = re.compile(r'"kind"\s*:\s*"(\w+List)"').search(text, start)
    if opening is None:
        return
    decoder, position = json.JSONDecoder(), opening.end()
    while True:
        position = _blank(text, position, ",")
        try:
            value, end = decoder.raw_decode(text, position)
        except (json.JSONDecodeError, RecursionError):
            return
        reading.item(value, kind.group(1) if kind is not None else "", lines.of(position))
        position = end


def _blank(text: str, position: int, more: str = "") -> int:
    while position < len(text) and (text[position].isspace() or text[position] in more):
        position += 1
    return position


class _Lines:
    """Line numbers by position, for a text that is asked often."""

    def __init__(self, text: str) -> None:
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def of(self, position: int) -> int:
        return bisect_right(self._ends, position - 1) + 1


# --- YAML ---


class _Loader(yaml.CSafeLoader):
    """Values as they are in JSON: time stamps stay text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}

_SEPARATOR: Final = re.compile(r"^---(?=\s|$)[^\n]*\n?", re.MULTILINE)


def _read_yaml(reading: _Reading, text: str) -> None:
    for document, line in _documents(text):
        if document.strip():
            _read_document(reading, document, line)


def _documents(text: str) -> Iterator[tuple[str, int]]:
    """Each document with the line on which it begins."""
    start, line = 0, 1
    for mark in _SEPARATOR.finditer(text):
        yield text[start : mark.start()], line
        line += text.count("\n", start, mark.end())
        start = mark.end()
    yield text[start:], line


def _read_document(reading: _Reading, document: str, line: int) -> None:
    try:
        _take_document(reading, document, line)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = mark.line if mark is not None else 0
        what = getattr(error, "problem", None) or "it cannot be read"
        reading.wrong(line + at, f"the YAML breaks off here: {what}")
        before = _complete_items(document, at)
        if before:
            _take_rest(reading, before, line)
    except (RecursionError, ValueError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        reading.wrong(line, f"this document cannot be read: {why}")


def _take_rest(reading: _Reading, document: str, line: int) -> None:
    """What stands before the place where a list breaks off."""
    try:
        _take_document(reading, document, line)
    except (yaml.YAMLError, RecursionError, ValueError):
        return  # the sentence about the first break says it


def _take_document(reading: _Reading, document: str, line: int) -> None:
    loader = _Loader(document)
    try:
        node = loader.get_single_node()
        if node is None:
            return
        if "&" in document and _shared(node):
            reading.wrong(line, "this document has anchors, which kubectl never prints")
            return
        items = _list_items(node)
        if items is None:
            reading.take(loader.construct_document(node), line + node.start_mark.line)
            return
        kind = _scalar(node, "kind")
        for item in items.value:
            value = loader.construct_document(item)
            reading.item(value, kind, line + item.start_mark.line)
    finally:
        loader.dispose()


def _list_items(node: yaml.Node) -> yaml.SequenceNode | None:
    if isinstance(node, yaml.SequenceNode):
        return node
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == "items" and isinstance(value, yaml.SequenceNode):
            return value
    return None


def _scalar(node: yaml.Node, name: str) -> str:
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == name and isinstance(value, yaml.ScalarNode):
            return str(value.value)
    return ""


def _shared(node: yaml.Node) -> bool:
    """Whether a node stands in more than one place, as anchors make it."""
    seen: set[int] = set()
    todo = [node]
    while todo:
        each = todo.pop()
        if id(each) in seen:
            return True
        seen.add(id(each))
        if isinstance(each, yaml.MappingNode):
            todo += [part for pair in each.value for part in pair]
        elif isinstance(each, yaml.SequenceNode):
            todo += each.value
    return False


def _complete_items(document: str, broken: int) -> str:
    """A printed list up to the item that breaks off; empty where it is no list."""
    lines = document.splitlines(keepends=True)
    starts = [n for n, text in enumerate(lines[: broken + 1]) if text.startswith("- ")]
    return "".join(lines[: starts[-1]]) if len(starts) > 1 else ""


def _named(value: object) -> str:
    names = {str: "a text", list: "a list", bool: "yes or no", type(None): "nothing"}
    return names.get(type(value), "a number")
