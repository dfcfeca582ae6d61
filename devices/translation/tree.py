"""Text → YAML documents as trees that know where each part stands in the text.

Nothing is resolved: an alias stays an alias, a scalar stays its text. What is not YAML becomes a
problem of its document, and the other documents are read all the same. Must not change anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

#: More than this, once all aliases are written out, is read no further.
MOST_NODES: Final = 1_000_000

_SEPARATOR: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_DIRECTIVES: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n|%[^\n]*\n)*")
_BRACES: Final = re.compile(r"\{\{.*?\}\}|\{\{")


@dataclass(slots=True, eq=False)
class Node:
    """Any part of a document: from ``start`` up to ``end``, ``line`` counted from 1.

    ``column`` counts from 0. Trailing comments and line ends of a block do not belong to it.
    ``shared`` says that another place means it too, by an alias.
    """

    start: int
    end: int
    line: int
    column: int
    shared: bool = False
    #: How many nodes this is once every alias in it is written out.
    size: int = 1


@dataclass(slots=True, eq=False)
class Scalar(Node):
    """A single value, as text; ``plain`` where it stands without quotes."""

    text: str = ""
    plain: bool = True

    @property
    def empty(self) -> bool:
        return self.plain and self.text in ("", "~", "null", "Null", "NULL")


@dataclass(slots=True, eq=False)
class Mapping(Node):
    """Pairs in their order; ``flow`` where it stands in braces."""

    pairs: list[tuple[Node, Node]] = field(default_factory=list)
    flow: bool = False

    def get(self, name: str) -> Node | None:
        """The value under a name; the last one, as readers of YAML take it."""
        found = None
        for key, value in self.pairs:
            if isinstance(key, Scalar) and key.text == name:
                found = value
        return found

    def text(self, name: str) -> str:
        """The text under a name; empty where there is no single value."""
        found = self.get(name)
        return found.text if isinstance(found, Scalar) and not found.empty else ""


@dataclass(slots=True, eq=False)
class Items(Node):
    """A list; ``flow`` where it stands in brackets."""

    items: list[Node] = field(default_factory=list)
    flow: bool = False


@dataclass(slots=True, eq=False)
class Alias(Node):
    """Another place of the same document, meant by name."""

    name: str = ""
    target: Node | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a document cannot be read: a code, the line (from 1), and a sentence."""

    code: str
    line: int
    words: str


@dataclass(frozen=True, slots=True)
class Document:
    """One document: the text from ``start`` to ``end``, ``number`` counted from 1.

    ``root`` is None where it is empty or has a problem. ``opened`` says that it begins with its own
    separator.
    """

    number: int
    start: int
    end: int
    line: int
    opened: bool
    root: Node | None
    problem: Problem | None = None

    def text(self, whole: str) -> str:
        return whole[self.start : self.end]


class Loader(yaml.CSafeLoader):
    """Values as Kubernetes reads them: time stamps and ``12:30`` stay text."""


_INT, _FLOAT, _TIME = (f"tag:yaml.org,2002:{name}" for name in ("int", "float", "timestamp"))
_NUMBERS: Final = {
    _INT: re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$"),
    _FLOAT: re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+"
        r"|\.[0-9]+(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$|\.(?:nan|NaN|NAN)$"
    ),
}
Loader.yaml_implicit_resolvers = {
    first: [(tag, _NUMBERS.get(tag, pattern)) for tag, pattern in found if tag != _TIME]
    for first, found in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def value_of(text: str) -> Any:
    """What one document says, as JSON would. Raises yaml.YAMLError, ValueError, RecursionError."""
    return yaml.load(text, Loader=Loader)


def documents(text: str) -> Iterator[Document]:
    """Every document of a text, in order; those that cannot be read have a problem."""
    starts = [found.start() for found in _SEPARATOR.finditer(text)]
    if not starts or text[: starts[0]].strip():
        starts = [0, *starts] if not starts or starts[0] else starts
    line, before, number = 1, 0, 0
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        line += text.count("\n", before, start)
        before = start
        part = text[start:end]
        if _DIRECTIVES.fullmatch(part):
            continue
        number += 1
        opened = bool(_SEPARATOR.match(part))
        yield _read(part, Document(number, start, end, line, opened, None))


def walk(node: Node) -> Iterator[Node]:
    """A node and everything in it, aliases not followed."""
    todo = [node]
    while todo:
        each = todo.pop()
        yield each
        if isinstance(each, Mapping):
            todo += [part for pair in reversed(each.pairs) for part in reversed(pair)]
        elif isinstance(each, Items):
            todo += reversed(each.items)


def _read(part: str, empty: Document) -> Document:
    try:
        roots = _compose(part, empty.start, empty.line)
    except yaml.YAMLError as error:
        return _with(empty, None, _broken(part, empty.line, error))
    except UnicodeEncodeError as error:
        line = empty.line + part.count("\n", 0, error.start)
        return _with(empty, None, Problem("NOT_TEXT", line, "A character here is no character."))
    if not roots:
        return empty
    root = roots[0]
    if len(roots) > 1:
        words = "Two documents follow each other without a line --- between them: put one there."
        return _with(empty, None, Problem("DOCUMENTS_NOT_PARTED", roots[1].line, words))
    if root.size > MOST_NODES:
        words = "Written out, the aliases of this document are larger than any manifest."
        return _with(empty, None, Problem("ALIASES_TOO_LARGE", root.line, words))
    if (braces := _templated(root)) is not None:
        return _with(empty, None, _braces(braces))
    return _with(empty, root, None)


def _with(empty: Document, root: Node | None, problem: Problem | None) -> Document:
    return Document(empty.number, empty.start, empty.end, empty.line, empty.opened, root, problem)


def _broken(part: str, line: int, error: yaml.YAMLError) -> Problem:
    """What to say where a document is not YAML: braces of a template explain most of it."""
    if (found := _BRACES.search(part)) is not None:
        return _braces(line + part.count("\n", 0, found.start()))
    mark = getattr(error, "problem_mark", None)
    at = line + (mark.line if mark is not None else 0)
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", "") or error)
    lines = part.split("\n")
    here = lines[at - line] if at - line < len(lines) else ""
    if re.match(r"[ ]*\t", here):
        words = "This line is indented with a tab; YAML wants spaces there."
        return Problem("TAB_INDENTATION", at, words)
    return Problem("NOT_YAML", at, f"The YAML breaks off here: {problem}.")


def _braces(line: int) -> Problem:
    words = (
        "Template braces ({{ … }}) stand here: this is no manifest until they are filled in. "
        "Paste what `helm template` (or your own tool) prints."
    )
    return Problem("TEMPLATE_BRACES", line, words)


def _templated(root: Node) -> int | None:
    """The line of braces that YAML takes for a mapping within a mapping's key; None without any."""
    for node in walk(root):
        if isinstance(node, Mapping) and node.flow and node.pairs:
            key = node.pairs[0][0]
            if isinstance(key, Mapping) and key.flow:
                return node.line
    return None


def _compose(part: str, offset: int, line: int) -> list[Node]:
    """The roots of a text's documents; positions are those of the whole text."""
    roots: list[Node] = []
    open_: list[Mapping | Items] = []
    keys: list[Node | None] = []
    anchors: dict[str, Node] = {}

    def place(event: Any) -> dict[str, Any]:
        start, end = event.start_mark, event.end_mark
        return {
            "start": offset + start.index,
            "end": offset + end.index,
            "line": line + start.line,
            "column": start.column,
        }

    def put(node: Node) -> None:
        if not open_:
            roots.append(node)
            return
        parent = open_[-1]
        if isinstance(parent, Items):
            parent.items.append(node)
        elif keys[-1] is None:
            keys[-1] = node
        else:
            parent.pairs.append((keys[-1], node))
            keys[-1] = None

    def named(event: Any, node: Node) -> None:
        if event.anchor:
            anchors[event.anchor] = node

    events: Iterator[Any] = yaml.parse(part, Loader=yaml.CSafeLoader)
    for event in events:
        match event:
            case yaml.ScalarEvent():
                plain = not event.style
                scalar = Scalar(**place(event), text=str(event.value), plain=plain)
                named(event, scalar)
                put(scalar)
            case yaml.AliasEvent():
                where, target = place(event), anchors.get(str(event.anchor))
                if target is None:
                    problem = f"nothing before it is called &{event.anchor}"
                    mark: Any = event.start_mark
                    raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
                alias = Alias(**where, name=str(event.anchor), target=target)
                alias.size, target.shared = target.size, True
                put(alias)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                kind = Mapping if isinstance(event, yaml.MappingStartEvent) else Items
                begun = kind(**place(event), flow=bool(event.flow_style))
                named(event, begun)
                open_.append(begun)
                keys.append(None)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                ended = open_.pop()
                keys.pop()
                _close(ended, place(event)["end"])
                put(ended)
            case _:
                pass
    return roots


def _close(node: Mapping | Items, end: int) -> None:
    """Where a collection ends and how large it is, once everything in it is known."""
    inside: Sequence[Node] = (
        node.items if isinstance(node, Items) else [part for pair in node.pairs for part in pair]
    )
    node.size += sum(part.size for part in inside)
    node.end = end if node.flow or not inside else inside[-1].end
