"""A template as its author writes it: YAML with comments, read strictly, each part with its line.

Pure. The text itself is kept, so comments stay; what it says is JSON. Only what both mean alike is
taken: `yes` and `010` are words, a key counts once, and nothing refers to anything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

LONGEST: Final = 100_000
"""Characters of a text; the largest template that anybody needs is a tenth of it."""
DEEPEST: Final = 24

# The part of YAML 1.2's core schema that YAML 1.1 reads alike, so that what is written by any
# program comes back as it was. Source: yaml.org/spec/1.2.2 §10.3.2.
_NULL: Final = re.compile(r"|~|null")
_TRUE: Final = re.compile(r"true|True|TRUE")
_FALSE: Final = re.compile(r"false|False|FALSE")
_INT: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?[0-9]{1,19}\.[0-9]{0,19}([eE][-+][0-9]{1,2})?", re.ASCII)

_RARE_ENDS: Final = re.compile("[\r\x85\u2028\u2029]")


class Unreadable(ValueError):
    """The text is no YAML that we read; `line` counts from 1."""

    def __init__(self, text: str, line: int) -> None:
        super().__init__(text)
        self.text = text
        self.line = line


@dataclass(frozen=True, slots=True)
class Written:
    """What a text says, and on which line each path begins ("parameters[0].options[1].value")."""

    content: Any
    lines: Mapping[str, int] = field(repr=False)

    def line_of(self, path: str) -> int:
        """The line of a path, or of the nearest thing around it that is there; 1 for the whole."""
        while path and path not in self.lines:
            cut = max(path.rfind("."), path.rfind("["))
            path = path[: max(cut, 0)]
        return self.lines.get(path, 1)


def read(text: str) -> Written:
    """A text → what it says. Raises `Unreadable` with the first thing that cannot be read.

    JSON is read too, also where it is indented by tabs.
    """
    if len(text) > LONGEST:
        raise Unreadable(f"Keep it below {LONGEST:,} characters.", 1)
    if text.lstrip().startswith("{"):
        text = text.expandtabs(4)
    try:
        node = _Loader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = min((mark.line if mark else 0) + 1, len(text.splitlines()))
        raise Unreadable(_sentence(error), line) from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise Unreadable("A character that nobody can see stands here; remove it.", line) from error
    if node is None:
        raise Unreadable("Nothing is written yet.", 1)
    lines: dict[str, int] = {}
    return Written(_value(node, "", lines), lines)


def write(content: Any) -> str:
    """The text that an author starts with: what `content` says, without comments."""
    return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


class _Loader(yaml.SafeLoader):
    """Composes nodes; refuses references, tags, and what is nested too deep."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Unreadable("Write it out; references (& and *) are not read.", line)
        if getattr(event, "tag", None) is not None:
            raise Unreadable("Tags (!) are not read.", line)
        self.depth += 1
        if self.depth > DEEPEST:
            raise Unreadable(f"Nested deeper than {DEEPEST} levels.", line)
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


class _Dumper(yaml.SafeDumper):
    """Quotes what would else not come back: the rarer ends of lines."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '"' if _RARE_ENDS.search(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _value(node: yaml.Node, path: str, lines: dict[str, int]) -> Any:
    lines.setdefault(path, node.start_mark.line + 1)
    if isinstance(node, yaml.SequenceNode):
        return [_value(one, f"{path}[{number}]", lines) for number, one in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        found: dict[str, Any] = {}
        for key, one in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise Unreadable("A name must be one word.", line)
            if key.value in found:
                raise Unreadable(f"{key.value} stands here twice.", line)
            at = f"{path}.{key.value}" if path else key.value
            lines[at] = line
            found[key.value] = _value(one, at, lines)
        return found
    return _scalar(node)


def _scalar(node: Any) -> Any:
    text: str = node.value
    if node.style is not None:  # quoted, or a block of text
        return text
    if _NULL.fullmatch(text):
        return None
    if _TRUE.fullmatch(text):
        return True
    if _FALSE.fullmatch(text):
        return False
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def _sentence(error: yaml.MarkedYAMLError) -> str:
    """What PyYAML says, as one sentence: "while parsing a block mapping: expected <block end>"."""
    said = ": ".join(part for part in (error.context, error.problem) if part)
    return said[:1].upper() + said[1:] + "."
